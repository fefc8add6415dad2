"""Few of the cells that a report calls biased are not: a small, seeded benchmarks/families.py."""

from collections.abc import Callable
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

Import = Callable[[str], ModuleType]
STUDIES, Q = 40, 0.05


def test_false_discoveries_keep_their_rate(benchmark: Import) -> None:
    # 48 cells of four judges, each with control votes that its twelve cells share; three of twelve
    # have a logit. Benjamini-Hochberg keeps q times the share without an effect.
    bench = benchmark("families")
    report = bench.Report(judges=4, items=60, planted=3, beta=1.0)
    reported = {row["adjusted"]: row for row in bench.rates(report, STUDIES, 3).to_dicts()}
    for name in ("BH", "biased"):
        row = reported[name]
        assert row["fdr"] == pytest.approx(Q * 9 / 12, abs=3 * row["error"]), name
        assert row["fdr"] + 3 * row["error"] < reported["none"]["fdr"], name
        # methods.md, section 4: shift .144 sqrt(60) / sigma .39 = 2.86 standard errors, where p has
        # to be below .05 * 7 / 48, so 2.68: Phi(.18) = .57.
        assert row["power"] == pytest.approx(0.57, abs=0.15), name
    for name in ("BY", "Holm"):
        assert reported[name]["fdr"] <= Q, name
        assert 0.1 < reported[name]["power"] < reported["BH"]["power"], name


def test_a_report_without_any_effect_finds_none(benchmark: Import) -> None:
    # Every discovery is false, so their rate is how often there is one at all: at most q.
    bench = benchmark("families")
    report = bench.Report(judges=2, items=40, planted=0)
    reported = {row["adjusted"]: row["fdr"] for row in bench.rates(report, STUDIES, 3).to_dicts()}
    assert max(reported[name] for name in ("BH", "BY", "Holm", "biased")) <= (
        Q + 3 * (Q * (1 - Q) / STUDIES) ** 0.5
    )
    assert reported["none"] > 0.4
