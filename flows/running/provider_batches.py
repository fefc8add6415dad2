"""Ballots that a provider answers in batches; an interrupted run loses none.

A batch stands in the warehouse before it is sent, and its key goes with it. So the next run finds
each batch of a run that has ended, waits for it, and saves its votes instead of asking again.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame
from prefect import get_run_logger

from flows.running.claims import Claims
from flows.running.recovery import save_late
from schemas.judging import Ballots, Pairs
from schemas.runs import UNFINISHED, BatchedBallots, Batches
from tasks.engine.caller import DraftsLostError, Line, Told
from tasks.engine.journal import CallError, Reply
from tasks.judge import askings, vote_row
from tasks.providers import JUDGES, Judge

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 60.0
GROWTH = 1.2
"""Between two looks at a batch: a minute after five."""

KEPT_FOR = timedelta(days=30)
"""How long OpenAI keeps what came of a batch."""

DRAFTED_AT_ONCE = 500
"""Ballots per message to the calling process."""


class Batching(NamedTuple):
    """What is needed to cast ballots in batches."""

    pairs: DataFrame[Pairs]
    claims: Claims
    line: Line
    receive: Callable[[str, dict[str, Any] | None, str | None], None]
    save: Callable[[], Any]
    """Save what was received."""

    def unfinished(self, waiting: DataFrame[Ballots]) -> pl.DataFrame:
        """Return the batches of ended runs that hold waiting ballots, a row for each of these."""
        warehouse = self.claims.warehouse
        held = warehouse.read(BatchedBallots, among=waiting.select("ballot_id"))
        if held.is_empty():
            return held
        batches = warehouse.read(Batches, among=held.select("batch"))
        running = warehouse.query("select run from runs where state = 'running'")["run"].to_list()
        # A run that Prefect tries again has its old id.
        ended = ~pl.col("run").is_in(running) | (pl.col("run") == self.claims.run)
        return batches.filter(pl.col("state").is_in(UNFINISHED), ended).join(held, on="batch")

    async def adopt(self, waiting: DataFrame[Ballots]) -> DataFrame[Ballots]:
        """Wait for the batches of ended runs; return the ballots that may be asked now."""
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
        """Send ballots in batches and wait for their votes, as often as the budget allows more."""
        while not waiting.is_empty():
            judge = JUDGES[waiting["judge"][0]]
            try:
                packed = await self._pack(judge, waiting)
            except DraftsLostError:
                # Nothing of it was sent.
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
            await self.line.batch(judge, "draft", ballots=some)
            drafted += len(some)
        packed = await self.line.batch(judge, "pack", drafted=drafted)
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
        """Send a batch and save what comes of it; return the ballots that were not sent."""
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
            await self._end(batch, "never sent", "the calling process died before it was sent")
            return ballots
        await self._sent(judge, batch, made["provider_batch"], len(ballots))
        try:
            seen, told = await self._told({**row, **made}, judge, ballots, stop=True)
        except CallError as error:
            self._fail(judge, ballots, str(error))
            return []
        prompts = dict(waiting.select("ballot_id", "prompt").unique().iter_rows())
        for ballot_id, (reply, cast_at, _) in told.items():
            vote = vote_row(ballot_id, prompts[ballot_id], reply, cast_at)
            self.receive(judge.judge, None if reply.error else vote, reply.error)
        await self.save()
        await self._end(batch, seen["state"], seen["error"])
        return []

    async def _create(self, judge: Judge, batch: str) -> dict[str, Any]:
        """Have a batch made; one whose maker died is looked for, as it may have been made."""
        try:
            return await self.line.batch(judge, "create", batch=batch)
        except DraftsLostError:
            return await self.line.batch(judge, "find", batch=batch, fresh=True)

    async def _adopt(self, judge: Judge, row: dict[str, Any]) -> str | None:
        """Save what an ended run's batch brings; return why its ballots cannot be asked now."""
        warehouse, batch = self.claims.warehouse, row["batch"]
        among = pl.DataFrame({"batch": [batch]})
        ballots = warehouse.read(BatchedBallots, among=among)["ballot_id"].to_list()
        try:
            if row["provider_batch"] is None:
                row |= await self.line.batch(judge, "find", batch=batch)
                if row["provider_batch"] is None:
                    await self._end(batch, "never sent", "its run ended before it was sent")
                    return None
            await self._sent(judge, batch, row["provider_batch"], len(ballots))
            seen, told = await self._told(row, judge, ballots, stop=False)
        except CallError as error:
            if not error.passing and datetime.now(UTC) - row["created_at"] > KEPT_FOR:
                await self._end(batch, "lost", str(error))
                return None
            return str(error)
        came = {ballot_id: one for ballot_id, one in told.items() if one.reply.error is None}
        await asyncio.to_thread(save_late, warehouse, row["run"], came)
        await self._end(batch, seen["state"], seen["error"])
        return None

    async def _told(
        self, row: dict[str, Any], judge: Judge, ballots: list[str], *, stop: bool
    ) -> tuple[dict[str, Any], dict[str, Told]]:
        """Wait until a batch has ended; return how, and what came of each ballot."""
        batch, id_there = row["batch"], row["provider_batch"]
        seen: dict[str, Any] = {}
        try:
            seen = await self._ended(judge, id_there)
            told = await self.line.batch(
                judge,
                "collect",
                batch=batch,
                seen=seen,
                ballots=ballots,
                stop=stop and seen["state"] == "failed",
            )
        except CallError as error:
            if seen.get("state") == "failed":
                await self._end(batch, "failed", seen["error"])
                raise
            text = f"its batch {id_there} could not be read: {error}"
            raise CallError(text, passing=error.passing) from error
        now, dropped = datetime.now(UTC), row["dropped_params"]
        return seen, {
            ballot_id: Told(Reply(**reply)._replace(dropped_params=dropped), now)
            for ballot_id, reply in told["replies"].items()
        }

    async def _ended(self, judge: Judge, provider_batch: str) -> dict[str, Any]:
        """Look at a batch now and then, until it has ended."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            seen = await self.line.batch(judge, "look", provider_batch=provider_batch)
            if seen["state"] != "waiting":
                return seen
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
