"""Runs, and the batches that providers answer."""

from typing import Annotated

import pandera.polars as pa
import polars as pl

from schemas.frame import Fact, Frame, name, optional

STATES = ["running", "completed", "completed with gaps", "failed", "cancelled", "killed"]


class Runs(Frame, table="runs", key=("run",)):
    """One row per run of a flow."""

    run: str = name("id of the flow run")
    flow: str = name("the flow")
    study: str = name("name of the study")
    user: str = name("user who started the run")
    process: str = name("host and process id, as in lab-3/4711")
    parameters: str = name("JSON of the study")
    fingerprint: str = name(
        "digest of parameters, data and code; a run with the digest of a completed "
        "run asks nothing new"
    )
    code_version: str = name("version of voirdire and digest of its code")
    started_at: Annotated[pl.Datetime, "us", "UTC"] = pa.Field(description="start of the run")
    ended_at: Annotated[pl.Datetime, "us", "UTC"] = optional(
        "end of the run; null while it runs, or if it was killed"
    )
    seen_at: Annotated[pl.Datetime, "us", "UTC"] = optional("time of the last heartbeat")
    state: str = pa.Field(isin=STATES, description="state of the run")
    error: str = optional("why the run failed or has gaps; null if neither")
    planned: int = optional("number of distinct ballots that the study needs", ge=0)
    from_warehouse: int = optional("number of these that were cast earlier", ge=0)
    asked: int = optional("number of these that were cast in this run", ge=0)
    failed: int = optional("number of these without a reply", ge=0)
    prompt_tokens: int = optional("prompt tokens of this run, as reported", ge=0)
    completion_tokens: int = optional("completion tokens of this run, as reported", ge=0)
    cost_usd: float = optional("cost of this run; null if a price is unknown", ge=0)


UNFINISHED = ["intended", "sent"]
ENDED = ["completed", "failed", "expired", "cancelled", "never sent", "lost"]


class Batches(Frame, table="batches", key=("batch",)):
    """One row per batch: ballots that a provider answers together, within a day."""

    batch: str = name("key chosen by voirdire, stored in the provider's metadata of the batch")
    judge: str = name("the judge that is asked")
    provider: str = name("the provider of the judge")
    provider_batch: str = name("the provider's id of the batch; null until known", nullable=True)
    run: str = name("id of the run that created the batch; its cost counts for this run")
    state: str = pa.Field(
        isin=[*UNFINISHED, *ENDED],
        description="intended: recorded, perhaps not yet sent; sent: accepted by the provider; "
        "else the final state",
    )
    dropped_params: str = optional(
        "JSON of parameters that were not sent because the model does not accept them"
    )
    error: str = optional("why the batch did not complete; null if it did")
    created_at: Annotated[pl.Datetime, "us", "UTC"] = pa.Field(
        description="when the batch was recorded, before it was sent"
    )
    ended_at: Annotated[pl.Datetime, "us", "UTC"] = optional(
        "when its votes were saved; null until then"
    )


class BatchedBallots(
    Fact, table="batched_ballots", key=("batch", "ballot_id"), references={"ballot_id": "ballots"}
):
    """One row per ballot in a batch."""

    batch: str = name("the batch")
    ballot_id: str = name("the ballot")
