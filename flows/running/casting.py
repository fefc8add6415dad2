"""Cast ballots: many shards at once; each vote is saved in the warehouse within a second.

While another process has the warehouse open, judges are still asked: their ballots were claimed
before, votes wait in memory, and the replies are in the journal.
"""

import asyncio
import math
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import polars as pl
from pandera.typing.polars import DataFrame

from flows.results.preparation import prepare_results
from flows.running.counts import RunCounts
from flows.running.progress import Progress, notifier
from flows.running.provider_batches import Batching
from flows.running.recovery import discard_journal, journal_of, mark_dead_runs
from flows.serving.local_models import model_servers
from schemas.judging import Ballots, Pairs, Votes
from tasks import stages
from tasks.engine.worker_client import Session, shared_worker
from tasks.judge import SHARD, shards, vote_frame
from tasks.judging.sequential_stopping import KEY, Schedule, mark_stops, probes
from tasks.progress import Status, current_status
from tasks.providers import JUDGES, PROVIDERS
from warehouse.store import Saving, Warehouse, WarehouseBusyError

SECONDS_BETWEEN_SAVES = 1.0
SAVE_WAIT_SECONDS = 5.0
"""How long saving waits for the warehouse while asking goes on; the last save waits longer."""

PACKED = 2048
"""Waiting votes are packed into frames of this size, which take a fraction of the memory."""

LONGEST_WAIT_SECONDS = 5.0
SECONDS_TO_SEND = 0.2
"""After this time the first ballots are sent, so importing does not delay them."""


class RunBallots:
    """The ballots of one run: waiting, claimed (only this run asks them), voted."""

    def __init__(self, run: str, warehouse: Warehouse, counts: RunCounts) -> None:
        self.run, self.warehouse, self.counts = run, warehouse, counts
        self.journal = journal_of(warehouse, run)

    def waiting(self, ballots: DataFrame[Ballots]) -> DataFrame[Ballots]:
        """Return the ballots without a vote, and count all ballots."""
        cast = self.warehouse.read(Votes, among=ballots.select("ballot_id"))
        waiting = Ballots.of(ballots.join(cast, on="ballot_id", how="anti"))
        planned = ballots["ballot_id"].n_unique()
        self.counts.numbers["planned"] = planned
        self.counts.numbers["from_warehouse"] = planned - waiting["ballot_id"].n_unique()
        return waiting

    def claim(self, ballots: DataFrame[Ballots]) -> tuple[DataFrame[Ballots], DataFrame[Ballots]]:
        """Claim ballots; return the ones this run got, and the ones that another run asks."""
        if ballots.is_empty():
            return ballots, ballots
        mine = self.warehouse.claim(ballots, self.run)
        ours = ballots.join(mine, on="ballot_id", how="semi")
        rest = ballots.join(mine, on="ballot_id", how="anti")
        cast = self.warehouse.read(Votes, among=rest.select("ballot_id")) if rest.height else rest
        self.counts.numbers["from_warehouse"] += cast.height
        return Ballots.of(ours), Ballots.of(rest.join(cast, on="ballot_id", how="anti"))

    async def save(
        self,
        votes: DataFrame[Votes],
        errors: list[str],
        *,
        release: pl.DataFrame | None = None,
        patience_seconds: float | None = None,
    ) -> None:
        """Save votes; the first vote of a ballot is kept. Only saved votes are counted.

        The claims on the ballots to ``release`` are removed.
        """
        await asyncio.to_thread(
            self.warehouse.save,
            [Saving(Votes, votes, first_wins=True)],
            run=self.run,
            counts={**self.counts.columns(votes, errors), "seen_at": datetime.now(UTC)},
            release=release,
            patience_seconds=patience_seconds,
        )
        self.counts.add_votes(votes, errors)

    def votes(self, ballots: DataFrame[Ballots]) -> DataFrame[Votes]:
        """Return the votes on ``ballots``."""
        return self.warehouse.read(Votes, among=ballots.select("ballot_id"))


class VoteBuffer:
    """Votes that are not saved yet, and claims that can be released."""

    def __init__(self, claims: RunBallots, status: Status) -> None:
        self._claims, self.status = claims, status
        self.progress = Progress(status)
        self._begun: Counter[str] = Counter()
        self._votes: list[dict[str, Any]] = []
        self._packed: list[DataFrame[Votes]] = []
        self._errors: list[str] = []
        self._released: list[pl.DataFrame] = []
        self._flushing = asyncio.Lock()
        self.ended = asyncio.Event()
        """Set when no more votes arrive."""
        self.choices: dict[str, str] = {}
        """The choices of this run's votes, by ballot."""

    def receive(self, judge: str, vote: dict[str, Any] | None, error: str | None) -> None:
        """Add the vote or the error of one ballot."""
        if vote is not None:
            self._votes.append(vote)
            self.choices[vote["ballot_id"]] = vote["choice"]
        if error is not None:
            self._errors.append(error)
        if len(self._votes) == PACKED:
            self._pack()
        self.status.unanswered += vote is None
        cost = 0.0 if vote is None else vote["cost_usd"]
        self.status.advance(judge, cost_usd=cost)

    def name_shard(self, judge: str, ballots: int) -> str:
        """Name the next ballots of a judge that are cast together, as in ``cast ada 1-256``."""
        first = self._begun[judge] + 1
        self._begun[judge] += ballots
        # With a hyphen, as the graph of a run in the UI leaves dashes out.
        return f"cast {judge} {first}-{self._begun[judge]}"

    def release(self, ballots: pl.DataFrame) -> None:
        """Release claims as soon as the votes are saved, so that other runs may ask the rest."""
        self._released.append(ballots.select("ballot_id"))

    async def flush(self, patience_seconds: float | None = None) -> None:
        """Save the votes; what cannot be saved stays in the buffer.

        Raise WarehouseBusyError if another process has the file open for longer than
        ``patience_seconds``.
        """
        async with self._flushing:
            self._pack()
            # More may arrive while this is saved.
            votes, errors, released = [*self._packed], [*self._errors], [*self._released]
            if votes or errors or released:
                await self._claims.save(
                    cast("DataFrame[Votes]", pl.concat([Votes.empty(), *votes])),
                    errors,
                    release=pl.concat(released) if released else None,
                    patience_seconds=patience_seconds,
                )
                del self._packed[: len(votes)]
                del self._errors[: len(errors)]
                del self._released[: len(released)]

    async def keep_flushing(self) -> None:
        """Save votes and show the progress every second, until ``ended`` is set.

        It is not only cancelled, because a library that it calls may lose a cancellation.
        """
        while not self.ended.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(SECONDS_BETWEEN_SAVES):
                    await self.ended.wait()
                    return
            with suppress(WarehouseBusyError):
                await self.flush(SAVE_WAIT_SECONDS)
            await self.progress.publish()

    def _pack(self) -> None:
        votes, self._votes = self._votes, []
        if votes:
            self._packed.append(vote_frame(votes))


async def cast_all(
    ballots: DataFrame[Ballots],
    waiting: DataFrame[Ballots],
    pairs: DataFrame[Pairs],
    schedule: Schedule,
    claims: RunBallots,
) -> DataFrame[Votes]:
    """Cast the waiting ballots of all judges at the same time; return the votes on all ballots."""
    if waiting.is_empty():
        return claims.votes(ballots)
    # Judges with equal requests share a vote: the first one asks.
    waiting = Ballots.of(waiting.sort("judge").unique("ballot_id", keep="first"))
    budget_usd = claims.counts.study.budget_usd
    status = current_status()
    status.plan(dict(waiting.group_by("judge").len().sort("judge").iter_rows()), budget_usd)
    buffer = VoteBuffer(claims, status)
    session = Session(shared_worker(), claims.run, claims.journal, budget_usd, notifier())
    status.waits = lambda: session.waits
    batching = Batching(pairs, claims, session, buffer.receive, buffer.flush)
    casting = _Casting(pairs, schedule, claims, buffer, session, batching, asyncio.Event(), {})
    try:
        await asyncio.to_thread(casting.claim_all, waiting)
        async with model_servers(status.planned), asyncio.TaskGroup() as group:
            group.create_task(buffer.keep_flushing())
            group.create_task(casting.prepare_results())
            judges = ((_of(ballots, judge), _of(waiting, judge)) for judge in status.planned)
            cast_judges = (group.create_task(casting.cast_judge(*both)) for both in judges)
            try:
                await asyncio.gather(*cast_judges)
            finally:
                buffer.ended.set()
            casting.asking.set()
            # The last votes do not wait for a message to the Prefect server.
            await buffer.flush()
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    finally:
        status.end_asking()
        try:
            await buffer.flush()
        finally:
            await asyncio.to_thread(session.close)
    # All replies are saved; after an interrupt some may be in the journal only.
    discard_journal(claims.journal)
    await buffer.progress.publish()
    return claims.votes(ballots)


def _first(error: BaseException) -> BaseException:
    """Return the cause of a group of errors: the first one, which ended the others."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Casting(NamedTuple):
    """The ballots of one run that are being cast."""

    pairs: DataFrame[Pairs]
    schedule: Schedule
    claims: RunBallots
    buffer: VoteBuffer
    session: Session
    batching: Batching
    asking: asyncio.Event
    """Set when the first ballots are sent, or none need be."""
    claimed: dict[str, tuple[DataFrame[Ballots], DataFrame[Ballots]]]
    """Judge -> its ballots that are claimed before it begins, and those that another run asks."""

    def claim_all(self, waiting: DataFrame[Ballots]) -> None:
        """Claim the ballots of all live judges in one visit, which takes longer than the claims.

        Judges with ballots in batches of ended runs wait for these first.
        """
        held = self.batching.unfinished(waiting)
        batched = {*waiting.join(held, on="ballot_id", how="semi")["judge"]}
        live = (judge for judge in self.buffer.status.planned if JUDGES[judge].mode == "live")
        free = [judge for judge in live if judge not in batched]
        mine, others = self.claims.claim(Ballots.of(waiting.filter(pl.col("judge").is_in(free))))
        self.claimed.update((judge, (_of(mine, judge), _of(others, judge))) for judge in free)

    async def prepare_results(self) -> None:
        """Import what results and the report need, as soon as the first ballots are sent.

        What cannot be imported ends the run: it would later, after more calls that cost money.
        """
        await self.asking.wait()
        await asyncio.sleep(SECONDS_TO_SEND)
        await asyncio.to_thread(prepare_results)

    async def cast_judge(self, ballots: DataFrame[Ballots], waiting: DataFrame[Ballots]) -> None:
        """Cast the ballots of one judge: all at once, or pair by pair if it may stop early."""
        if not self.schedule.sequential:
            await self.cast(waiting)
            return
        votes = await asyncio.to_thread(self._votes_on, ballots)
        held = Ballots.empty()
        if _is_live(waiting):
            # All are claimed now, because the file may be busy later.
            held, _ = await self._claim(await self._adopt(waiting))
        tried = waiting.clear().select("ballot_id")
        turn = probes(ballots) if self.schedule.probe else ballots.clear()
        while True:
            turn = Ballots.of(turn.join(waiting, on="ballot_id", how="semi"))
            turn = Ballots.of(turn.join(tried, on="ballot_id", how="anti"))
            votes = pl.concat([votes, await self._cast_turn(turn, held)]).unique("ballot_id")
            # A ballot that failed is not tried again in this run, nor those that depend on it.
            tried = pl.concat([tried, turn.select("ballot_id")]).unique()
            marked = mark_stops(ballots, cast("DataFrame[Votes]", votes), self.schedule)
            turn = Ballots.of(
                ballots.join(marked.filter("open"), on=KEY, how="semi").join(
                    tried, on="ballot_id", how="anti"
                )
            )
            if turn.is_empty():
                self.buffer.release(held)
                self.buffer.status.finish(ballots["judge"][0])
                return

    async def cast(self, waiting: DataFrame[Ballots]) -> None:
        """Cast ballots; wait for those that another run asks, because it can use their votes."""
        pause = SECONDS_BETWEEN_SAVES
        while not (waiting := await self._adopt(waiting)).is_empty():
            waiting = await self._cast_free(waiting)
            if not waiting.is_empty():
                await asyncio.sleep(pause)
                await asyncio.to_thread(mark_dead_runs, self.claims.warehouse)
                # The other run may wait hours for a batch.
                pause = min(1.1 * pause, LONGEST_WAIT_SECONDS)

    async def _cast_turn(self, turn: DataFrame[Ballots], held: DataFrame[Ballots]) -> pl.DataFrame:
        """Cast ballots, of which ``held`` are claimed; return the choices of their votes."""
        mine = Ballots.of(turn.join(held, on="ballot_id", how="semi"))
        others = Ballots.of(turn.join(held, on="ballot_id", how="anti"))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ask(mine))
            group.create_task(self.cast(others))
        found = (
            mine.select("ballot_id")
            .unique()
            .with_columns(
                choice=pl.col("ballot_id").replace_strict(self.buffer.choices, default=None)
            )
        )
        if others.is_empty():
            return found.drop_nulls()
        await self.buffer.flush()
        return pl.concat([found.drop_nulls(), await asyncio.to_thread(self._votes_on, others)])

    async def _cast_free(self, waiting: DataFrame[Ballots]) -> DataFrame[Ballots]:
        """Cast the ballots that no other run asks; return the others."""
        mine, others = await self._claim(waiting)
        if _is_live(waiting):
            await self._ask(mine)
        else:
            left = await asyncio.to_thread(self.batching.unfinished, mine)
            if not left.is_empty():
                # The run that asked them has just ended and left a batch to wait for.
                return Ballots.of(pl.concat([mine, others]))
            await self.batching.cast(mine)
        self.buffer.release(mine)
        return others

    async def _adopt(self, waiting: DataFrame[Ballots]) -> DataFrame[Ballots]:
        """Wait for the batches of ended runs, unless ``claim_all`` found none."""
        known = not waiting.is_empty() and waiting["judge"][0] in self.claimed
        return waiting if known else await self.batching.adopt(waiting)

    async def _claim(
        self, waiting: DataFrame[Ballots]
    ) -> tuple[DataFrame[Ballots], DataFrame[Ballots]]:
        """Claim ballots; return the ones this run got, and the ones that another run asks."""
        once = Ballots.of(waiting.unique("ballot_id"))
        judge = next(iter(once["judge"]), "")
        if judge in self.claimed:
            mine, others = self.claimed.pop(judge)
        else:
            mine, others = await asyncio.to_thread(self.claims.claim, once)
        if done := once.height - mine.height - others.height:
            self.buffer.status.advance(judge, done)
        return mine, others

    async def _ask(self, mine: DataFrame[Ballots]) -> None:
        """Ask claimed ballots in shards."""
        if mine.is_empty():
            return
        # As many shards as keep a judge busy even while one ends and one begins.
        provider = PROVIDERS[mine["judge"][0].split("/", maxsplit=1)[0]].provider
        limit = asyncio.Semaphore(1 + math.ceil((provider.concurrency or SHARD) / SHARD))
        self.asking.set()

        async def ask(shard: DataFrame[Ballots]) -> None:
            async with limit:
                name = self.buffer.name_shard(shard["judge"][0], shard.height)
                cast_votes = stages.cast_votes.with_options(task_run_name=lambda: name)
                await cast_votes(shard, self.pairs, self.session, self.buffer.receive)

        async with asyncio.TaskGroup() as group:
            for shard in shards(mine):
                group.create_task(ask(shard))

    def _votes_on(self, ballots: DataFrame[Ballots]) -> pl.DataFrame:
        return self.claims.votes(ballots).select("ballot_id", "choice")


def _is_live(ballots: DataFrame[Ballots]) -> bool:
    """Tell whether the judge of these ballots is called directly, not in batches."""
    return not ballots.is_empty() and JUDGES[ballots["judge"][0]].mode == "live"


def _of(ballots: DataFrame[Ballots], judge: str) -> DataFrame[Ballots]:
    return Ballots.of(ballots.filter(pl.col("judge") == judge))
