"""Any value may be null: report, terminal, artifact and CSV are written all the same."""

import io
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pandera.typing.polars import DataFrame
from rich.console import Console

from benchmarks.simulated_votes import simulate
from flows.cli.printing.measure_tables import show_gates, show_rows, show_summary
from flows.cli.printing.tables import print_rows
from flows.cli.printing.terminal import legend, lost_lines, result_table
from flows.publishing.answers import findings_table
from flows.publishing.csv_escaping import csv_text
from schemas.curation import PerturbedAnswers
from schemas.frame import Frame
from schemas.judging import VoteLog
from schemas.results import Drifts, Estimates, Findings
from tasks.aggregate import count_votes
from tasks.conclude import conclude
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.drift.alerts import watch
from tasks.report import ReportFacts, SavedVotes, report
from tasks.reporting.comparison_rows import all_rows
from tasks.results import Conclusions, conclusions_of, results_of_file
from tasks.simulation.traits import Traits
from warehouse.store import Saving, Warehouse

pytestmark = [pytest.mark.charts, pytest.mark.usefixtures("drawn_once")]
TRAITS = Traits(omega=1.5, nu=0.5, iota=0.05)
WAVES = ("1", "2")
NAMES = {
    "study",
    "family",
    "statistic",
    "dataset",
    "judge",
    "prompt",
    "wave",
    "mode",
    "perturbation",
}
"""Columns that say which row it is."""

FRAMES: dict[str, type[Frame]] = {"estimates": Estimates, "findings": Findings, "drifts": Drifts}
FACTS = ReportFacts(
    study="s",
    dataset="demo",
    mode="balanced",
    votes_per_pair=2,
    seeds={},
    run="r",
    code_version="c",
    when="2026-01-02T03:04:05Z",
    warehouse="w.duckdb",
    asked=1,
    from_warehouse=0,
    failed=0,
    tokens=0,
    cost_usd=None,
)
NULLABLE = {
    frame: [
        name
        for name, column in model.to_schema().columns.items()
        if column.nullable and name not in model.place().key
    ]
    for frame, model in FRAMES.items()
}
TURNS = list(zip_longest(*NULLABLE.values()))
"""A column of each frame at a time, as a report takes a second; `make test` takes every sixth."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Return frames and marts of two simulated judges in two waves, one of which has changed."""
    log = _log()
    # Like an audit, which measures its own wave and compares it with those before.
    last = VoteLog.of(log.filter(pl.col("wave") == WAVES[-1]))
    estimates = results_of_file(last, "balanced").estimates
    tallies = count_votes(log)
    drifts = watch(tallies, match_groups(tally_votes(tallies, "balanced")))
    findings = conclude(estimates)
    store = Warehouse(tmp_path_factory.mktemp("nulls") / "w.duckdb")
    frames = (
        (VoteLog, last),
        (Estimates, estimates),
        (Findings, findings),
        (Drifts, drifts),
    )
    store.save([Saving(*each) for each in frames], run="r", study="s")
    return SimpleNamespace(
        estimates=estimates,
        findings=findings,
        drifts=drifts,
        numbers=store.query("select * from mart.numbers"),
        bias=store.query("select * from mart.bias"),
    )


def _log() -> DataFrame[VoteLog]:
    parts = []
    for place, judge in enumerate(("toy/one", "toy/two")):
        for wave in WAVES:
            beta = 3 if (judge, wave) == ("toy/two", "2") else 0
            for kind in ("promote", "detract"):
                part = simulate(
                    TRAITS,
                    kind=kind,
                    beta=beta,
                    items=12,
                    votes=2,
                    seed=place,
                    judge=judge,
                    perturbation=f"planted_{kind}",
                ).with_columns(wave=pl.lit(wave))
                parts.append(part if kind == "promote" else part.filter(pl.col("arm") != "control"))
    return VoteLog.of(pl.concat(parts))


def _page(concluded: Conclusions, numbers: pl.DataFrame) -> str:
    return report(FACTS, concluded, PerturbedAnswers.empty(), lambda: SavedVotes(numbers=numbers))


def _console() -> Console:
    return Console(file=io.StringIO(), width=100)


def test_a_row_of_drift_may_lack_its_count_of_dropped_samples(results: SimpleNamespace) -> None:
    # As those that an earlier version saved do.
    known = results.numbers.filter(pl.col("statistic") == "verdict_drift")
    assert known["dropped"].null_count() == 0 < known.height
    drifts = known.with_columns(dropped=pl.lit(None, pl.Int64))
    assert "not known" in [text.text for row in all_rows(drifts).rows for text in row.texts]


@pytest.mark.parametrize(
    "turn",
    [pytest.param(turn, marks=pytest.mark.slow if at % 6 else ()) for at, turn in enumerate(TURNS)],
)
def test_the_report_stands_without_any_nullable_column(
    results: SimpleNamespace, turn: tuple[str | None, ...]
) -> None:
    changed = {
        frame: _without(getattr(results, frame), model, column)
        for (frame, model), column in zip(FRAMES.items(), turn, strict=True)
    }
    concluded = conclusions_of(**changed)
    page = _page(concluded, results.numbers)
    assert '<h2 id="results">Results ' in page
    assert ">None<" not in page
    table = findings_table(changed["findings"]).splitlines()
    assert {row.replace("\\|", "").count("|") for row in table} == {6}
    assert "None" not in "".join(table)
    console = _console()
    show_gates(console, concluded.gates)
    show_summary(console, "votes", concluded, results.bias, 0)
    for rows in changed.values():
        assert csv_text(rows).count("\n") > rows.height


def _without(rows: pl.DataFrame, model: type[Frame], column: str | None) -> Any:
    holes = [pl.lit(None, model.dtypes()[column]).alias(column)] if column else []
    return model.of(rows.with_columns(holes))


@settings(
    max_examples=25,
    # Shrinking draws tables for minutes; what was drawn names the columns anyway.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_number_of_a_mart_may_be_null(results: SimpleNamespace, data: st.DataObject) -> None:
    numbers, bias = (_pierced(data, frame) for frame in (results.numbers, results.bias))
    assert len(all_rows(numbers).rows) == numbers.height
    assert "None" not in [text.text for row in all_rows(numbers).rows for text in row.texts]
    for frame in (numbers, bias):
        assert csv_text(frame).count("\n") > frame.height
        print_rows(_console(), frame.columns, frame.rows())
    rows = bias.to_dicts()
    console = _console()
    show_rows(console, numbers, marks={})
    console.print(result_table(rows, "Study s", console), legend(rows), *lost_lines(rows))
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert "toy/one" in written
    assert "None" not in written


def test_the_report_stands_without_sizes_and_methods(results: SimpleNamespace) -> None:
    sizes = ("n", "clusters", "dropped", "votes_per_pair", "method")
    numbers = results.numbers.with_columns(pl.lit(None).alias(name) for name in sizes)
    concluded = conclusions_of(**{name: getattr(results, name) for name in FRAMES})
    assert ">None<" not in _page(concluded, numbers)


def _pierced(data: st.DataObject, frame: pl.DataFrame) -> pl.DataFrame:
    """Return a few rows with nulls where the schema of a mart, which has no rules, allows them."""
    free = [name for name in frame.columns if name not in NAMES]
    columns = data.draw(st.sets(st.sampled_from(free), min_size=1), label="null")
    rows = data.draw(st.sets(st.integers(0, frame.height - 1), min_size=1, max_size=5), label="in")
    holes = (pl.lit(None, frame.schema[name]).alias(name) for name in columns)
    return pl.concat([frame.head(2), frame[sorted(rows)].with_columns(holes)])
