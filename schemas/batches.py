"""Frames of provider batch requests."""

from typing import Annotated

import pandera.polars as pa
import polars as pl

from schemas.frame import Fact, Frame, name, optional

UNFINISHED = ["intended", "sent"]
ENDED = ["completed", "failed", "expired", "cancelled", "never sent", "lost"]


class Batches(Frame, table="batches", key=("batch",)):
    """One row per batch: ballots that a provider answers together, within a day."""

    batch: str = name("key chosen by voirdire, stored in the provider's metadata of the batch")
    judge: str = name("the judge that is asked")
    provider: str = name("the provider of the judge")
    provider_batch: str = name("the provider's id of the batch; null until known", nullable=True)
    run: str = name("id of the run that created the batch, to which its cost is counted")
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
    Fact,
    table="batched_ballots",
    key=("batch", "ballot_id"),
    references={"ballot_id": "ballots"},
):
    """One row per ballot in a batch."""

    batch: str = name("the batch")
    ballot_id: str = name("the ballot")
