from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from schemas.results import MEASURES, Drifts, Estimates
from tasks.statistics import STATISTICS
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
Row = dict[str, Any]

NAMES = [name for entry in STATISTICS.values() for name in entry.gives]
PLACES = list(product(("balanced", "any"), ("padding", None), ("", "ant vs bee", "3/3")))
"""Mode, perturbation and subgroup: a mart shows what is of its grain."""
BARE = {
    "e_value", "e_stop", "sequential_stop", "tier", "random_baseline", "random_baseline_coin",
    "bias_bound", "tipping_shift", "label_correlation", "effective_labels", "labels_needed",
    "verdict_drift",
}  # fmt: skip
"""Statistics that have no interval, whatever the data."""


def values(number: int, name: str) -> Row:
    """Return numbers that no other statistic has."""
    found: Row = {"estimate": number + 0.5, "low": number + 0.25, "high": number + 0.75}
    return {"estimate": number + 0.5} if name in BARE else found


def rows() -> Iterator[Row]:
    for number, name in enumerate(NAMES, 1):
        sizes = {"n": 1000 + number, "clusters": 2000 + number, "reason": f"because {name}"}
        for mode, perturbation, subgroup in PLACES:
            cell = {"mode": mode, "perturbation": perturbation, "subgroup": subgroup}
            kind = "promote" if perturbation else None
            row = {"statistic": name, **cell, "kind": kind}
            yield row | values(number, name) | sizes


@pytest.fixture
def full(warehouse: Warehouse, make: Make) -> Warehouse:
    """Return a warehouse with each statistic of the catalogue wherever it may stand."""
    drifts = [
        {"measure": name, **values(NAMES.index(name) + 1, name)}
        for name in MEASURES if name in NAMES
    ]  # fmt: skip
    savings = [make(Estimates, *rows()), make(Drifts, *drifts)]
    warehouse.save(savings, run="r1", study="quick")
    return warehouse


def test_every_statistic_is_there_with_what_it_rests_on(full: Warehouse) -> None:
    found = full.query(
        "select distinct statistic, estimate, low, high, n, clusters, reason from mart.numbers"
    )
    expected = {
        (name, *(values(at, name).get(c) for c in ("estimate", "low", "high")), 1000 + at,
         2000 + at, f"because {name}")
        for at, name in enumerate(NAMES, 1)
    }  # fmt: skip
    assert set(found.rows()) == expected
    lost = full.query(
        "select count(*) as n from estimates anti join mart.numbers using (statistic)"
    )
    assert lost["n"].item() == 0


def test_every_statistic_has_its_place_in_a_wide_mart(full: Warehouse) -> None:
    marts = full.query("select view_name from duckdb_views() where schema_name = 'mart'")
    shown = [
        set(row)
        for mart in marts["view_name"]
        if mart != "numbers"
        for row in full.query(f"select * from mart.{mart}").rows()
    ]
    missing = [
        name
        for number, name in enumerate(NAMES, 1)
        if not any(set(values(number, name).values()) <= row for row in shown)
    ]
    # A tier is its letter.
    assert missing == ["tier"]


def test_a_family_and_a_whole_row(warehouse: Warehouse, make: Make) -> None:
    row = {"statistic": "position_gap", "perturbation": None, "kind": None, "estimate": 0.1}
    warehouse.save([make(Estimates, row, {"statistic": "asr"})], run="r1", study="quick")
    found = warehouse.query("select family, statistic, subgroup, n from mart.numbers order by 1")
    assert found.rows() == [("effect", "asr", None, 4), ("position", "position_gap", None, 4)]
