"""How much may be asked at once and per minute."""

import asyncio

from aiolimiter import AsyncLimiter

from tasks.providers import Limits

BURST_SECONDS = 2.0
"""Of a minute's allowance, what may be used at once: a full one would let double through."""

TOKEN_BURST_SECONDS = 6.0


class Gate:
    """The limits of one provider or one judge."""

    def __init__(self, limits: Limits) -> None:
        self._slots = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._requests = _bucket(limits.requests_per_minute, BURST_SECONDS)
        self._tokens = _bucket(limits.tokens_per_minute, TOKEN_BURST_SECONDS)

    async def enter(self, tokens: float) -> None:
        """Wait for a slot, and for the minute's allowance."""
        if self._slots:
            await self._slots.acquire()
        try:
            if self._requests:
                await self._requests.acquire()
            if self._tokens:
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Free the slot."""
        if self._slots:
            self._slots.release()


def _bucket(per_minute: int | None, burst: float) -> AsyncLimiter | None:
    if per_minute is None:
        return None
    size = max(1.0, per_minute * burst / 60)
    return AsyncLimiter(size, size * 60 / per_minute)
