"""A circuit breaker that makes callers wait, and gives up in the end."""

import asyncio

FAULTS_IN_A_ROW = 20
"""By chance one call in two may fail, and this happens once in a million."""

PAUSES = 4
"""Each twice as long as the one before."""


class GivenUpError(Exception):
    """The provider failed through all pauses."""


class Breaker:
    """Pauses a provider that fails persistently; after each pause one call tries it out."""

    def __init__(self, provider: str, pause_seconds: float) -> None:
        self._provider, self._pause_seconds = provider, pause_seconds
        self._in_a_row = self._pauses = 0
        self._ticket = False
        self._news = asyncio.Event()
        self.paused = False
        self.given_up: str | None = None

    async def passage(self) -> bool:
        """Wait until calls may be made; tell whether this one tries the provider out.

        Raises
        ------
        GivenUpError
            If the provider failed again after its last pause.
        """
        while self.paused and not self.given_up:
            if self._ticket:
                self._ticket = False
                return True
            await self._news.wait()
        if self.given_up:
            raise GivenUpError(self.given_up)
        return False

    def succeed(self) -> None:
        """Record a reply, or an error that tells that the provider works."""
        self._in_a_row = 0
        if self.paused:
            self.paused, self._pauses = False, 0
            self._tell()

    def fail(self, error: str, *, trial: bool) -> None:
        """Record a passing fault; those of calls that began before a pause prolong nothing."""
        self._in_a_row += 1
        if not trial and (self.paused or self._in_a_row < FAULTS_IN_A_ROW):
            return
        if self._pauses == PAUSES:
            self.given_up = (
                f"{self._provider} failed {self._in_a_row} times in a row, through {PAUSES} "
                f"pauses, and was left alone. Last: {error}"
            )
            self._tell()
            return
        self.paused = True
        pause = self._pause_seconds * 2**self._pauses
        self._pauses += 1
        asyncio.get_running_loop().call_later(pause, self._try_out)

    def hand_back(self) -> None:
        """Return the trial unused."""
        self._try_out()

    def _try_out(self) -> None:
        self._ticket = True
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
