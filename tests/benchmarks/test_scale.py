"""The study of the benchmark, small: the warehouse's counts give the same estimates as its log."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from flows.results.remeasure import stored_steps
from schemas.judging import VoteLog
from schemas.results import Estimates
from tasks.inference.bootstrap import formulas_only
from tasks.results import results_of
from warehouse.store import Warehouse


@pytest.mark.slow
@pytest.mark.parametrize("formulas", [True, False])
def test_votes_counted_in_the_warehouse_give_the_same_estimates(
    benchmark: Callable[[str], ModuleType], tmp_path: Path, *, formulas: bool
) -> None:
    scale = benchmark("scale")
    scale._fill(tmp_path / "scale.duckdb", 15)
    with duckdb.connect(str(tmp_path / "scale.duckdb")) as connection:
        # A few of its twenty judges and three people are enough here.
        connection.execute("delete from vote_log where regexp_matches(judge, 'judge(6|7|8|9|1.)')")
    warehouse = Warehouse(tmp_path / "scale.duckdb")
    log = VoteLog.of(warehouse.query("from vote_log"))
    with formulas_only() if formulas else nullcontext():
        counted = results_of(scale.STUDY, "balanced", steps=stored_steps(warehouse)).estimates
        plain = results_of(log, "balanced").estimates
    key = [*Estimates.place().key]
    assert plain["statistic"].n_unique() > 100
    assert_frame_equal(counted.sort(key), plain.sort(key), check_exact=False, rel_tol=1e-9)
    assert plain.select(pl.col("boot_low").is_not_null().any()).item() is not formulas
