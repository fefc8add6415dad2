"""The record of what was run: runs, and the batches that providers answer."""

from typing import Annotated

import pandera.polars as pa
import polars as pl

from schemas.frame import Fact, Frame, name

STATES = ["running", "completed", "completed with gaps", "failed", "cancelled", "killed"]


class Runs(Frame, table="runs", key=("run",)):
    """One row per run of a flow."""

    run: str = name("id of the flow run")
    flow: str = name("the flow")
    study: str = name("the study's name, under which its results are kept")
    user: str = name("who started it")
    process: str = name("host and process id, as in lab-3/4711")
    parameters: str = name("JSON of the study")
    fingerprint: str = name("digest of parameters, data and code: equal ones ask nothing new")
    code_version: str = name("version of voirdire and digest of its code")
    started_at: Annotated[pl.Datetime, "us", "UTC"] = pa.Field(description="when it began")
    ended_at: Annotated[pl.Datetime, "us", "UTC"] = pa.Field(
        nullable=True, description="when it ended; null while it runs, or if it was killed"
    )
    seen_at: Annotated[pl.Datetime, "us", "UTC"] = pa.Field(
        nullable=True, description="when it last gave a sign of life"
    )
    state: str = pa.Field(isin=STATES, description="how it ended")
    error: str = pa.Field(nullable=True, description="why it failed, or has gaps")
    planned: int = pa.Field(ge=0, nullable=True, description="different ballots the study needs")
    from_warehouse: int = pa.Field(ge=0, nullable=True, description="of these, cast before")
    asked: int = pa.Field(ge=0, nullable=True, description="of these, cast in this run")
    failed: int = pa.Field(ge=0, nullable=True, description="of these, without a reply")
    prompt_tokens: int = pa.Field(ge=0, nullable=True, description="as reported, this run")
    completion_tokens: int = pa.Field(ge=0, nullable=True, description="as reported, this run")
    cost_usd: float = pa.Field(
        ge=0, nullable=True, description="of this run; null if a price is unknown"
    )


UNFINISHED = ["intended", "sent"]
ENDED = ["completed", "failed", "expired", "cancelled", "never sent", "lost"]


class Batches(Frame, table="batches", key=("batch",)):
    """One row per batch: ballots that a provider answers together, within a day."""

    batch: str = name("key of our own, which the provider keeps in the batch's metadata")
    judge: str = name("who is asked")
    provider: str = name("who runs the judge")
    provider_batch: str = name("the provider's id; null until it is known", nullable=True)
    run: str = name("id of the run that made it, and pays for it")
    state: str = pa.Field(
        isin=[*UNFINISHED, *ENDED],
        description="intended: may be at the provider or not; sent: there; else how it ended",
    )
    dropped_params: str = pa.Field(
        nullable=True, description="JSON of parameters the model does not take, so not sent"
    )
    error: str = pa.Field(nullable=True, description="why it ended otherwise than completed")
    created_at: Annotated[pl.Datetime, "us", "UTC"] = pa.Field(
        description="when it was intended, which is before it was sent"
    )
    ended_at: Annotated[pl.Datetime, "us", "UTC"] = pa.Field(
        nullable=True, description="when its votes were in the warehouse; null until then"
    )


class BatchedBallots(
    Fact,
    table="batched_ballots",
    key=("batch", "ballot_id"),
    references={"ballot_id": "ballots"},
):
    """One row per ballot in a batch."""

    batch: str = name("the batch")
    ballot_id: str = name("the ballot")
