"""The record of what was run."""

from typing import Annotated

import pandera.polars as pa
import polars as pl

from schemas.frame import Frame, name, optional

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
    ended_at: Annotated[pl.Datetime, "us", "UTC"] = optional(
        "when it ended; null while it runs, or if it was killed"
    )
    seen_at: Annotated[pl.Datetime, "us", "UTC"] = optional("when it last gave a sign of life")
    state: str = pa.Field(isin=STATES, description="how it ended")
    error: str = optional("why it failed, or has gaps")
    planned: int = pa.Field(ge=0, nullable=True, description="different ballots the study needs")
    from_warehouse: int = pa.Field(ge=0, nullable=True, description="of these, cast before")
    asked: int = pa.Field(ge=0, nullable=True, description="of these, cast in this run")
    failed: int = pa.Field(ge=0, nullable=True, description="of these, without a reply")
    prompt_tokens: int = pa.Field(ge=0, nullable=True, description="as reported, this run")
    completion_tokens: int = pa.Field(ge=0, nullable=True, description="as reported, this run")
    cost_usd: float = pa.Field(
        ge=0, nullable=True, description="of this run; null if a price is unknown"
    )
