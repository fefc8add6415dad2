"""A study that is run when another one finds drift: only once, and only if it may run."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from prefect import get_client
from prefect.states import Completed

from flows.audit import audit
from flows.running.run_row import first_row
from flows.serving.deployments import KeptDeployment, switch
from flows.studies import STUDIES
from schemas.results import Drifts
from warehouse.store import Saving, Warehouse

pytestmark = [pytest.mark.served, pytest.mark.slow]
DRIFT = {
    "dataset": "demo",
    "judge": "ada",
    "prompt": "plain",
    "wave": "w2",
    "mode": "balanced",
    "measure": "mps_drift",
    "epoch": 1,
    "base": "w1",
    "estimate": 0.3,
    "level": 0.05,
    "minimum": 0.05,
    "n": 30,
    "clusters": 30,
    "simulated": True,
    "perturbation": "boast",
}
WATCH = 'about = "x"\non_alert = "deep"\n[study]\njudges = ["offline/random"]\nwave = "{date}"\n'
DEEP = 'about = "x"\ncron = "0 0 1 1 *"\n[study]\njudges = ["openai/gpt-5.5"]\n'


End = tuple[str, str, str]
"""The state of the drift, whether the other study is switched on, the name of the warehouse."""


class Heard(logging.Handler):
    """Keeps what is said of runs."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


async def _end(state: str, step: str, named: str) -> list[str]:
    """End a served run of ``watch`` that found drift; return what was started.

    At the end of a run Prefect calls the hooks of its flow.
    """
    warehouse = Warehouse(f"{named}.duckdb" if named else None)
    watch, deep = (KeptDeployment.of(audit, n, "", [], STUDIES[n]) for n in ("watch", "deep"))
    async with get_client() as client:
        for each in (watch, deep):
            await each.aapply()
        if step != "off":
            await switch(client, "audit/deep", on=True)
        form = {**watch.parameters, **({"warehouse": named} if named else {})}
        run = await client.create_flow_run_from_deployment(watch.registered.id, parameters=form)
        study = STUDIES["watch"].study.model_copy(update={"wave": "w2"})
        row = first_row("audit", str(run.id), study, datetime.now(UTC))
        warehouse.start_run({**row, "state": "completed"})
        drifts = Drifts.of(Drifts.draft(pl.DataFrame([{**DRIFT, "state": state}])))
        warehouse.save([Saving(Drifts, drifts)], run=str(run.id), study="watch")
        for hook in (audit.on_completion_hooks or []) * 2:
            await hook(audit, run, Completed())  # type: ignore[misc]
        await client.delete_flow_run(run.id)
        runs = await client.read_flow_runs()
        found = [one for one in runs if one.deployment_id == deep.registered.id]
        # Their runs that are to come go with them.
        for each in (watch, deep):
            await client.delete_deployment(each.registered.id)
    return [one.parameters["study"]["name"] for one in found if not one.auto_scheduled]


@pytest.fixture
def watched(
    here: Callable[..., Any], environment: dict[str, str], tmp_path: Path
) -> Callable[..., list[tuple[list[str], str]]]:
    """Return what was started, and what was said, at each of several ends of ``watch``."""
    studies = tmp_path / "voirdire" / "studies"
    studies.mkdir(parents=True)
    (studies / "watch.toml").write_text(WATCH)

    def end(case: End) -> tuple[list[str], str]:
        heard, logger = Heard(), logging.getLogger("prefect.flow_runs")
        logger.addHandler(heard)
        try:
            return asyncio.run(_end(*case)), "\n".join(heard.messages)
        finally:
            logger.removeHandler(heard)

    def ends(*cases: End, deep: str) -> list[tuple[list[str], str]]:
        (studies / "deep.toml").write_text(f"{DEEP}{deep}\n")
        with here(tmp_path, environment):
            return [end(case) for case in cases]

    return ends


def test_an_alert_starts_the_other_study_once(watched: Any, tmp_path: Path) -> None:
    # The first is the served warehouse; the other is beside it, which a form names in this way.
    served, beside, off, suspect = watched(
        ("alert", "on", ""),
        ("alert", "on", "other"),
        ("alert", "off", ""),
        ("suspect", "on", ""),
        deep="budget_usd = 3",
    )
    for started, said in (served, beside):
        assert started == ["deep"]
        assert "Drift was found: started deep" in said
    assert not (tmp_path / "other").exists()
    assert off[0] == suspect[0] == []
    assert "`voirdire schedules --on deep`" in off[1]


def test_what_may_not_spend_is_not_started(watched: Any) -> None:
    ((started, said),) = watched(("alert", "on", ""), deep="")
    assert started == []
    assert "it can spend money and has no budget_usd" in said
