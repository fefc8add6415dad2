"""A study to browse: two flipped pairs, an invalid reply, a disagreement, hostile texts."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import duckdb
import polars as pl
import pytest

from flows.running.run_row import first_row
from flows.studies import Study
from schemas.calibration import Disagreements
from warehouse.store import Saving, Warehouse

HOSTILE = "<script>window.pwned=1</script> \u202egnp.exe <img src=x onerror=window.pwned=2> " + (
    "W" * 300
)
CHANGES = """
    update shifts set control = 'tie', experimental = 'tie';
    update shifts set control = 'anchor', experimental = 'target'
    where judge = 'offline/honest' and sample in ('demo/0/a2', 'demo/1/a2');
    update vote_log set choice = 'tie', category = if(sample = 'demo/0/a2', 'easy', 'hard');
    update vote_log set choice = 'invalid'
    where judge = 'offline/random' and sample = 'demo/2/a2' and arm = 'experimental';
"""
REPLY = """
    update votes set choice = 'invalid', raw = $reply where ballot_id in (
        select ballot_id from ballots join pairs using (pair_id)
        where judge = 'offline/random' and sample = 'demo/2/a2' and arm = 'experimental'
    )
"""


@pytest.fixture
def hostile() -> str:
    """Return a text that would run, mislead or overflow."""
    return HOSTILE


@pytest.fixture
def browsed(audited: Callable[..., Warehouse]) -> Warehouse:
    """Return a warehouse with eight comparisons of four samples by two judges."""
    warehouse = audited(4, {1: HOSTILE})
    with duckdb.connect(str(warehouse.path)) as connection:
        connection.execute(CHANGES)
        connection.execute(REPLY, {"reply": HOSTILE})
    ((prompt,),) = warehouse.query("select distinct prompt from shifts").rows()
    row: dict[str, Any] = {
        **first_row("calibrate", "labels", Study(name="quick"), datetime.now(UTC)),
        "study": "quick-people",
        "parameters": '{"study": "quick"}',
    }
    warehouse.start_run({**row, "state": "completed", "ended_at": datetime.now(UTC)})
    label = {
        "dataset": "demo: verdicts",
        "judge": "offline/random",
        "prompt": prompt,
        "wave": "",
        "rank": 1,
        "item": "demo/3/a2",
        "human_label": "anchor",
        "judge_label": "tie",
        "gap": 1.0,
        "people": 2,
        "human_share": 1.0,
        "texts": '{"question": "Question 3?"}',
    }
    labels = Saving(Disagreements, Disagreements.of(pl.DataFrame([label])))
    warehouse.save([labels], run="labels", study="quick-people")
    return warehouse
