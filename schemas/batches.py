"""Frames of provider batch requests."""

from typing import Annotated

import pandera.polars as pa
import polars as pl

from schemas.frame import Fact, Frame, name, optional

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
    dropped_params: str = optional("JSON of parameters the model does not take, so not sent")
    error: str = optional("why it ended otherwise than completed")
    created_at: Annotated[pl.Datetime, "us", "UTC"] = pa.Field(
        description="when it was intended, which is before it was sent"
    )
    ended_at: Annotated[pl.Datetime, "us", "UTC"] = optional(
        "when its votes were in the warehouse; null until then"
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
