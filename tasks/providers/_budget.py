"""A hard cap on what a run may spend."""

import asyncio
from collections.abc import Callable

STEP = 0.01
"""Share of the cap by which what may be spent is told in advance, so that it is told rarely."""


class BudgetError(Exception):
    """The call could cross the cap."""


class Budget:
    """Lets a call start only if even the dearest outcome stays below the cap."""

    def __init__(self, usd: float | None) -> None:
        self._cap = usd
        self.spent = self._reserved = 0.0
        self._news = asyncio.Event()
        self._told = 0.0
        self.tell: Callable[[float], None] | None = None
        """Is told the most that the calls begun so far can cost, before the next one begins."""

    async def reserve(self, worst: float) -> None:
        """Set the worst case of a call aside; wait while calls in flight may still free enough.

        Raises
        ------
        BudgetError
            If what was spent leaves too little for this call.
        """
        while self._cap is not None and self.spent + self._reserved + worst > self._cap:
            if self.spent + worst > self._cap:
                raise self._used_up()
            await self._news.wait()
        self._commit(worst)

    def take(self, worst: float) -> None:
        """Set a worst case aside at once: what else is set aside may be for hours.

        Raises
        ------
        BudgetError
            If what was spent and set aside leaves too little.
        """
        if self._cap is not None and self.spent + self._reserved + worst > self._cap:
            raise self._used_up()
        self._commit(worst)

    def _commit(self, worst: float) -> None:
        self._reserved += worst
        committed = self.spent + self._reserved
        if self._cap is not None and self.tell and committed > self._told:
            self._told = min(committed + STEP * self._cap, self._cap)
            self.tell(self._told)

    def _used_up(self) -> BudgetError:
        # The same words for all calls, so that a summary tells it once.
        return BudgetError(
            f"the budget of {self._cap:g} USD is used up: one more call could cross it. "
            "Raise it (--budget) and run again"
        )

    def settle(self, worst: float, cost: float) -> None:
        """Replace what was set aside by what the call cost."""
        self._reserved -= worst
        self.spent += cost
        self._news.set()
        self._news = asyncio.Event()
