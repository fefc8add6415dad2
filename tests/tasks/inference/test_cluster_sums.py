from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tasks.counting.cells import reduced
from tasks.inference import cluster_sums
from tasks.inference.cluster_sums import PART, grouped

ITEM = st.fixed_dictionaries(
    {
        "dataset": st.sampled_from("ba"),
        "judge": st.sampled_from(["z", "y", "é"]),
        "perturbation": st.sampled_from(["p", "o", None]),
        "cluster": st.sampled_from(["q10", "q2", "q1"]),
        "votes": st.integers(1, 3),
        "num": st.integers(-2, 2),
    }
)
ITEMS = st.lists(ITEM, min_size=1, max_size=40)
FIXED = {"prompt": "p", "wave": "", "mode": "any", "kind": None, "simulated": True}


def items_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    types = {"perturbation": pl.String, "kind": pl.String}
    frame = pl.DataFrame([{**FIXED, **row} for row in rows], schema_overrides=types)
    return frame.with_columns(
        pl.col("num").cast(pl.Float64), den=pl.lit(1.0), counted=pl.lit(1), dropped=pl.lit(0)
    )


@given(ITEMS)
def test_sums_are_those_of_a_group_by(rows: list[dict[str, Any]]) -> None:
    items = items_of(rows)
    groups = grouped(items)
    # Second implementation: Polars' group_by.
    keys = [key for key in PART if key != "subgroup"]
    cells = items.group_by(keys).agg(
        pl.col("num").sum(), votes_per_pair=pl.col("votes").mode().max()
    )
    cells = cells.sort(keys, nulls_last=False)
    assert groups.cells.select(keys).equals(cells.select(keys))
    assert groups.cells["votes_per_pair"].to_list() == cells["votes_per_pair"].to_list()
    assert groups.by_cell(items["num"]).tolist() == cells["num"].to_list()
    assert groups.of_cells(groups.by_cluster(items["num"])).tolist() == cells["num"].to_list()
    sums = items.group_by(*keys, "cluster").agg(pl.col("num").sum(), number=pl.len())
    number = groups.by_cluster(items["den"])
    for cell, key in enumerate(cells.select(keys).iter_rows()):
        mine = slice(groups.starts[cell], groups.starts[cell + 1])
        wanted = sums.filter(pl.struct(keys) == dict(zip(keys, key, strict=True)))
        there = number[mine] > 0
        # The clusters of a cell stand in the order of their names.
        found = groups.by_cluster(items["num"])[mine][there]
        assert found.tolist() == wanted.sort("cluster")["num"].to_list()
        of_dataset = items.filter(pl.col("dataset") == key[0])["cluster"].n_unique()
        assert len(there) == of_dataset


@given(ITEMS, st.randoms())
def test_neither_order_nor_type_of_the_rows_matters(rows: list[dict[str, Any]], any_: Any) -> None:
    mixed = rows.copy()
    any_.shuffle(mixed)
    keys = ("dataset", "judge", "prompt", "wave", "mode", "perturbation", "cluster")
    typed = items_of(mixed).with_columns(pl.col(keys).cast(pl.Categorical))
    assert_frame_equal(reduced(items_of(rows)), reduced(typed))


@given(ITEMS)
def test_some_cells_at_a_time_are_as_all_at_once(rows: list[dict[str, Any]]) -> None:
    items = items_of(rows)
    whole = reduced(items, bounded=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster_sums, "SUMS_AT_ONCE", 2)
        patch.setattr(cluster_sums, "LARGEST", 1)
        assert_frame_equal(reduced(items, bounded=True), whole)


def test_more_combinations_than_a_number_holds() -> None:
    column = (np.array([0, 1, 2**21 - 1]), 2**21)
    places, _ = cluster_sums.combined([column, column, column])
    assert places.tolist() == [0, 1, 2]


def test_codes_of_one_byte_are_combined() -> None:
    codes = np.arange(200, dtype=np.uint8)
    places, present = cluster_sums.combined([(codes, 200), (codes, 200)])
    assert places.tolist() == list(range(200))
    assert present.tolist() == [201 * code for code in range(200)]


def test_nothing_has_no_cells() -> None:
    empty = grouped(items_of([ITEMS_ROW]).clear())
    assert (empty.cells.height, empty.starts.tolist()) == (0, [0])


ITEMS_ROW = {
    "dataset": "a",
    "judge": "z",
    "perturbation": None,
    "cluster": "q",
    "votes": 1,
    "num": 0,
}


@given(ITEMS, st.booleans())
def test_categories_make_the_same_groups(rows: list[dict[str, Any]], ordered: bool) -> None:
    items = items_of(rows)
    categories = items.with_columns(
        items[name].cast(
            pl.Enum(sorted({"never", *items[name].drop_nulls()})) if ordered else pl.Categorical
        )
        for name in ("dataset", "judge", "perturbation", "cluster")
    )
    plain, of_categories = grouped(items), grouped(categories)
    assert_frame_equal(plain.cells, of_categories.cells)
    assert plain.cell.tolist() == of_categories.cell.tolist()
    assert plain.place.tolist() == of_categories.place.tolist()
    assert plain.starts.tolist() == of_categories.starts.tolist()
