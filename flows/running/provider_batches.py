"""Cast ballots in provider batches; an interrupted run loses no batch.

A batch is recorded in the warehouse before it is sent, and its key is sent with it. So the next run
finds the batches of a run that has ended, waits for them, and saves their votes.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame
from prefect import get_run_logger

from flows.running.recovery import save_recovered
from schemas.judging import Ballots, Pairs
from schemas.runs import UNFINISHED, BatchedBallots, Batches
from tasks.engine.journal import CallError, Reply
from tasks.engine.worker_client import DraftsLostError, Session, WorkerAnswer
from tasks.judge import askings, vote_row
from tasks.providers import JUDGES, Judge

if TYPE_CHECKING:
    from flows.running.casting import RunBallots

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 60.0
GROWTH = 1.2
"""Factor between two pauses: the longest is reached after five minutes."""

KEPT_FOR = timedelta(days=30)
"""How long OpenAI keeps the files of a batch."""

DRAFTED_AT_ONCE = 500
"""Ballots per request to the worker."""


class Batching(NamedTuple):
    """The ballots of one run that are being cast in batches."""

    pairs: DataFrame[Pairs]
    claims: "RunBallots"
    session: Session
    receive: Callable[[str, dict[str, Any] | None, str | None], None]
    save: Callable[[], Any]
    """Save the received votes."""

    def unfinished(self, waiting: DataFrame[Ballots]) -> pl.DataFrame:
        """Return the unfinished batches of ended runs, a row for each waiting ballot in them."""
        warehouse = self.claims.warehouse
        held = warehouse.read(BatchedBallots, among=waiting.select("ballot_id"))
        if held.is_empty():
            return held
        batches = warehouse.read(Batches, among=held.select("batch"))
        running = warehouse.query("select run from runs where state = 'running'")["run"].to_list()
        # A run that Prefect retries has its old id.
        ended = ~pl.col("run").is_in(running) | (pl.col("run") == self.claims.run)
        return batches.filter(pl.col("state").is_in(UNFINISHED), ended).join(held, on="batch")

    async def adopt(self, waiting: DataFrame[Ballots]) -> DataFrame[Ballots]:
        """Wait for the batches of ended runs; return the ballots that can be asked now."""
        if waiting.is_empty():
            return waiting
        mine = await asyncio.to_thread(self.unfinished, waiting)
        if mine.is_empty():
            return waiting
        judge = JUDGES[waiting["judge"][0]]
        rows = mine.drop("ballot_id").unique().sort("created_at").to_dicts()
        errors = await asyncio.gather(*(self._adopt(judge, row) for row in rows))
        held = pl.DataFrame(
            {"batch": [row["batch"] for row in rows], "reason": errors},
            schema={"batch": pl.String, "reason": pl.String},
        ).drop_nulls()
        stuck = mine.join(held, on="batch").unique("ballot_id")
        for reason in stuck["reason"]:
            self.receive(judge.judge, None, reason)
        return Ballots.of(waiting.join(stuck, on="ballot_id", how="anti"))

    async def cast(self, waiting: DataFrame[Ballots]) -> None:
        """Send ballots in batches and wait for their votes, until the budget allows no more."""
        while not waiting.is_empty():
            judge = JUDGES[waiting["judge"][0]]
            try:
                packed = await self._pack(judge, waiting)
            except DraftsLostError:
                # Nothing was sent.
                continue
            except CallError as error:
                self._fail(judge, waiting["ballot_id"].to_list(), str(error))
                return
            if not packed["packed"]:
                self._fail(judge, packed["left"], packed["reason"])
                return
            dropped = packed["dropped_params"]
            unsent = await asyncio.gather(
                *(self._send(judge, dropped, waiting, **one) for one in packed["packed"])
            )
            left = [*packed["left"], *chain.from_iterable(unsent)]
            waiting = Ballots.of(waiting.filter(pl.col("ballot_id").is_in(left)))

    async def _pack(self, judge: Judge, waiting: DataFrame[Ballots]) -> dict[str, Any]:
        asked = (
            {"ballot_id": ballot["ballot_id"], "messages": messages, "params": params}
            for ballot, messages, params in askings(waiting, self.pairs)
        )
        drafted = 0
        while some := list(islice(asked, DRAFTED_AT_ONCE)):
            await self.session.batch(judge, "draft", ballots=some)
            drafted += len(some)
        packed = await self.session.batch(judge, "pack", drafted=drafted)
        if "lost" in packed:
            raise DraftsLostError
        return packed

    async def _send(
        self,
        judge: Judge,
        dropped_params: str | None,
        waiting: DataFrame[Ballots],
        *,
        batch: str,
        ballots: list[str],
    ) -> list[str]:
        """Send a batch and save its votes; return the ballots that were not sent."""
        warehouse = self.claims.warehouse
        row = {
            "batch": batch,
            "judge": judge.judge,
            "provider": judge.provider,
            "run": self.claims.run,
            "state": "intended",
            "dropped_params": dropped_params,
            "created_at": datetime.now(UTC),
        }
        await asyncio.to_thread(warehouse.start_batch, row, ballots)
        try:
            made = await self._create(judge, batch)
        except CallError as error:
            if error.free:
                await self._end(batch, "never sent", str(error))
            self._fail(judge, ballots, str(error))
            return []
        if made["provider_batch"] is None:
            await self._end(batch, "never sent", "the worker process died before it was sent")
            return ballots
        await self._sent(judge, batch, made["provider_batch"], len(ballots))
        try:
            status, answers = await self._collect({**row, **made}, judge, ballots, stop=True)
        except CallError as error:
            self._fail(judge, ballots, str(error))
            return []
        prompts = dict(waiting.select("ballot_id", "prompt").unique().iter_rows())
        for ballot_id, (reply, cast_at, _) in answers.items():
            vote = vote_row(ballot_id, prompts[ballot_id], reply, cast_at)
            self.receive(judge.judge, None if reply.error else vote, reply.error)
        await self.save()
        await self._end(batch, status["state"], status["error"])
        return []

    async def _create(self, judge: Judge, batch: str) -> dict[str, Any]:
        """Create a batch; if the worker died meanwhile, look for the batch, which may exist."""
        try:
            return await self.session.batch(judge, "create", batch=batch)
        except DraftsLostError:
            return await self.session.batch(judge, "find", batch=batch, fresh=True)

    async def _adopt(self, judge: Judge, row: dict[str, Any]) -> str | None:
        """Save the votes of an ended run's batch; return why its ballots cannot be asked now."""
        warehouse, batch = self.claims.warehouse, row["batch"]
        among = pl.DataFrame({"batch": [batch]})
        ballots = warehouse.read(BatchedBallots, among=among)["ballot_id"].to_list()
        try:
            if row["provider_batch"] is None:
                row |= await self.session.batch(judge, "find", batch=batch)
                if row["provider_batch"] is None:
                    await self._end(batch, "never sent", "its run ended before it was sent")
                    return None
            await self._sent(judge, batch, row["provider_batch"], len(ballots))
            status, answers = await self._collect(row, judge, ballots, stop=False)
        except CallError as error:
            if not error.transient and datetime.now(UTC) - row["created_at"] > KEPT_FOR:
                await self._end(batch, "lost", str(error))
                return None
            return str(error)
        replied = {ballot: answer for ballot, answer in answers.items() if not answer.reply.error}
        await asyncio.to_thread(save_recovered, warehouse, row["run"], replied)
        await self._end(batch, status["state"], status["error"])
        return None

    async def _collect(
        self, row: dict[str, Any], judge: Judge, ballots: list[str], *, stop: bool
    ) -> tuple[dict[str, Any], dict[str, WorkerAnswer]]:
        """Wait until a batch has ended; return its status, and the answer to each ballot."""
        batch, id_there = row["batch"], row["provider_batch"]
        status: dict[str, Any] = {}
        try:
            status = await self._ended(judge, id_there)
            collected = await self.session.batch(
                judge,
                "collect",
                batch=batch,
                status=status,
                ballots=ballots,
                stop=stop and status["state"] == "failed",
            )
        except CallError as error:
            if status.get("state") == "failed":
                await self._end(batch, "failed", status["error"])
                raise
            text = f"its batch {id_there} could not be read: {error}"
            raise CallError(text, transient=error.transient) from error
        now, dropped = datetime.now(UTC), row["dropped_params"]
        return status, {
            ballot_id: WorkerAnswer(Reply(**reply)._replace(dropped_params=dropped), now)
            for ballot_id, reply in collected["replies"].items()
        }

    async def _ended(self, judge: Judge, provider_batch: str) -> dict[str, Any]:
        """Poll a batch until it has ended; return its status."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            status = await self.session.batch(judge, "status", provider_batch=provider_batch)
            if status["state"] != "waiting":
                return status
            await asyncio.sleep(pause)
            pause = min(pause * GROWTH, LONGEST_PAUSE_SECONDS)

    async def _sent(self, judge: Judge, batch: str, provider_batch: str, ballots: int) -> None:
        get_run_logger().info(
            f"{judge.judge}: batch {provider_batch} of {ballots} ballots is at the provider. This "
            "run may be stopped: the next one waits for the same batch"
        )
        await asyncio.to_thread(
            self.claims.warehouse.update_batch, batch, provider_batch=provider_batch, state="sent"
        )

    async def _end(self, batch: str, state: str, error: str | None) -> None:
        await asyncio.to_thread(
            self.claims.warehouse.update_batch,
            batch,
            state=state,
            error=error,
            ended_at=datetime.now(UTC),
        )

    def _fail(self, judge: Judge, ballots: list[str], error: str) -> None:
        for _ in ballots:
            self.receive(judge.judge, None, error)
