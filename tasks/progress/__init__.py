"""Progress of a command: what its work is doing now, for views in other threads."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from time import monotonic

STARTING = "starting"
WINDOW_SECONDS = 30.0
"""The rate is computed over this many last seconds."""

SAMPLE_SECONDS = 0.5
FEWEST_SECONDS = 1.0
"""Before this time no rate is shown."""


class Status:
    """What a command is doing. Its work writes it; views read it at any time."""

    def __init__(self, what: str, clock: Callable[[], float] = monotonic) -> None:
        self.what, self.clock = what, clock
        self.began = clock()
        self.step = STARTING
        self.planned: dict[str, int] = {}
        """Ballots to cast, by judge."""
        self.done: dict[str, int] = {}
        self.asking = False
        self.cap_usd: float | None = None
        self.cost_usd: float | None = 0.0
        """Null if a price is unknown."""
        self.unanswered = 0
        """Ballots that are done without a reply."""
        self.waits: Callable[[], Mapping[str, str]] = dict
        """What each provider waits for now."""
        self.tell: Callable[[str], None] = lambda _: None
        """Shows a line, for example why nothing moves for a while."""
        self._samples = deque([(self.began, 0)])

    def plan(self, planned: Mapping[str, int], cap_usd: float | None = None) -> None:
        """Begin to ask judges."""
        self.planned, self.done = dict(planned), dict.fromkeys(planned, 0)
        self.step, self.cap_usd, self.asking = "asking judges", cap_usd, True
        self.unanswered = 0
        self._samples = deque([(self.clock(), 0)])

    def advance(self, judge: str, ballots: int = 1, cost_usd: float | None = 0.0) -> None:
        """Count ballots, and what their votes cost."""
        self.done[judge] += ballots
        known = self.cost_usd is not None and cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (cost_usd or 0.0) if known else None
        now = self.clock()
        if now - self._samples[-1][0] >= SAMPLE_SECONDS:
            self._samples.append((now, sum(self.done.values())))
            while len(self._samples) > 2 and now - self._samples[1][0] > WINDOW_SECONDS:
                self._samples.popleft()

    def finish(self, judge: str) -> None:
        """Record that the remaining ballots of a judge are not needed."""
        self.planned[judge] = self.done[judge]

    def end_asking(self) -> None:
        """Record that no judge is asked any more."""
        self.asking, self.waits = False, dict

    def counts(self) -> tuple[int, int]:
        """Return the number of ballots that are done, and of all."""
        return sum(self.done.values()), sum(self.planned.values())

    def rate(self) -> float | None:
        """Return the ballots per second, of late; null if it is too early to tell."""
        since, before = self._samples[0]
        seconds = self.clock() - since
        return (self.counts()[0] - before) / seconds if seconds >= FEWEST_SECONDS else None

    def seconds(self) -> float:
        """Return how long the command has run."""
        return self.clock() - self.began

    def facts(self) -> list[str]:
        """Return ballots, rate, time left and cost, as far as they are known."""
        done, total = self.counts()
        if not total:
            return []
        said = [f"{done} of {total} ballots ({100 * done // total} %)"]
        said += [f"{self.unanswered} without a reply"] if self.unanswered else []
        if self.asking and done < total:
            rate = self.rate()
            said += [per_time(rate), f"{duration((total - done) / rate)} left"] if rate else []
        cap = "" if self.cap_usd is None else f" of {usd(self.cap_usd)}"
        cost = "not known" if self.cost_usd is None else f"{usd(self.cost_usd)}{cap} USD"
        return [*said, f"cost {cost}"]

    def waiting(self) -> list[str]:
        """Say what each provider waits for."""
        return [f"{provider}: {why}" for provider, why in sorted(self.waits().items())]


def duration(seconds: float) -> str:
    """Write a duration: ``0:09``, ``12:30``, ``2:05:00``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def per_time(rate: float) -> str:
    """Write a rate per second, or per minute if it is low."""
    return f"{rate:.0f}/s" if rate >= 1 else f"{60 * rate:.1f}/min"


def usd(amount: float) -> str:
    """Write an amount in US dollars: two decimals, or two digits if it is small."""
    if amount >= 0.01 or not amount:
        return f"{amount:.2f}"
    return f"{Decimal(f'{amount:.2g}'):f}"


_current: ContextVar[Status | None] = ContextVar("status", default=None)


def current_status() -> Status:
    """Return the status of the command or flow that calls; a new one if nobody shows it."""
    return _current.get() or Status("")


def step(name: str) -> None:
    """Say which step begins, such as ``measuring: asr (3 of 66 statistics)``."""
    if status := _current.get():
        status.step = name


@contextmanager
def followed(status: Status) -> Iterator[Status]:
    """Let the block, and the tasks and threads that it starts with its context, write a status."""
    token = _current.set(status)
    try:
        yield status
    finally:
        _current.reset(token)
