"""Control asked once more, from the command line to its floor in the marts."""

import subprocess
from collections.abc import Callable

import polars as pl
import pytest

from schemas.judging import Ballots, Pairs, Shifts
from schemas.results import Estimates
from warehouse.store import Warehouse

Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.served
PROMOTE, DETRACT = "fake_reference", "factual_error"


@pytest.mark.slow
def test_replicates_have_a_floor_of_their_own(voirdire: Voirdire, warehouse: Warehouse) -> None:
    words = (
        "audit",
        "--limit",
        "15",
        "--judge",
        "offline/honest",
        "--votes",
        "4",
        "--perturbation",
        PROMOTE,
        "--perturbation",
        DETRACT,
        "--name",
        "twice",
    )
    plain = voirdire(*words)
    assert plain.returncode == 0, plain.stderr
    before = warehouse.read(Estimates)
    assert "replicate_floor" not in before["statistic"]
    asked = warehouse.read(Ballots).height
    done = voirdire(*words, "--replicates")
    assert done.returncode == 0, done.stderr
    # 15 more pairs of 4 votes; the others are in the warehouse.
    assert f"{asked + 60} ballots: {asked} from the warehouse, 60 cast" in done.stdout

    # All arms are in the transcript and in an export, the second votes on the control pairs too.
    arms = "select count(*) filter (arm = 'replicate'), count(*) from mart.transcript"
    assert warehouse.query(arms).row(0) == (60, asked + 60)
    exported = voirdire("export", "twice", "--output", "out", "--format", "csv")
    assert exported.returncode == 0, exported.stderr
    out = warehouse.path.parent / "out"
    sizes = {name: pl.read_csv(out / f"{name}.csv").height for name in ("ballots", "votes")}
    assert sizes == {"ballots": asked + 60, "votes": asked + 60}

    texts = ["sample", "question", "anchor", "target"]
    pairs = warehouse.read(Pairs)
    control, replicate = (
        pairs.filter(pl.col("arm") == arm).select(texts) for arm in ("control", "replicate")
    )
    assert replicate.sort("sample").equals(control.sort("sample"))

    found = {
        (row["statistic"], row["perturbation"]): row
        for row in warehouse.read(Estimates).filter(pl.col("subgroup") == "").to_dicts()
    }
    shifts = warehouse.read(Shifts)
    for perturbation, other in ((PROMOTE, "target"), (DETRACT, "anchor")):
        mine = shifts.filter(pl.col("perturbation") == perturbation)
        assert mine["has_replicate"].all()
        # Samples with a verdict in all three arms, and possibly won in control or in the replicate.
        reported = mine.drop_nulls(["control", "experimental", "replicate"])
        may = reported.filter((pl.col("control") != other) | (pl.col("replicate") != other))
        row = found["replicate_floor", perturbation]
        assert 0 < row["n"] == may.height
        assert row["dropped"] == mine.height - reported.height
        # Replicates are votes of their own: were they those of control, the floor would be
        # that of a judge that never changes its mind.
        assert 0 < row["estimate"] < 1
        assert found["prompt_sensitivity", perturbation]["n"] <= reported.height
    assert not shifts.filter(pl.col("control") != pl.col("replicate")).is_empty()
    floors = warehouse.query(
        "select replicate_floor from mart.floors where replicate_floor is not null"
    )
    assert floors.height == 2

    # Nothing else changes for it.
    same = ("asr", "sham_floor", "mps_sham")
    keys = ["statistic", "judge", "perturbation", "subgroup"]
    kept = [
        frame.filter(pl.col("statistic").is_in(same)).select(*keys, "estimate", "n").sort(keys)
        for frame in (before, warehouse.read(Estimates))
    ]
    assert kept[0].equals(kept[1])
