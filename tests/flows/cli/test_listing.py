"""``voirdire list``: every name, and what it means."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main
from flows.cli.meanings import HEADINGS
from flows.cli.printing.calibration_tables import legend
from flows.cli.printing.measure_tables import OF_JUDGES
from flows.cli.printing.terminal import RATES
from flows.studies import STUDIES
from schemas.results import (
    AGREED_BY,
    BEST_DETECTED,
    BEYOND_CHANCE,
    DETECTED,
    GATES,
    IN_LOGITS,
    IN_MEAN_SCORES,
    IN_SDS,
    MEAN_DETECTED,
    Estimates,
)
from tasks.conclusions.derived_columns import DERIVED
from tasks.datasets import DATASETS
from tasks.gates.explanations import SUBJECTS, WITH_LABELS
from tasks.metrics import METRICS
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, PROVIDERS
from tasks.readers.formats import FORMATS
from tasks.reporting.agreement_rows import NAMES
from tasks.statistics import STATISTICS
from warehouse.store import Saving, Warehouse


def test_everything_is_listed() -> None:
    listed = CliRunner().invoke(main, ["list"], env={"COLUMNS": "200"})
    assert listed.exit_code == 0, listed.output
    for name in (
        *STUDIES,
        *JUDGES,
        *PERTURBATIONS,
        *DERIVED,
        *METRICS,
        "bloom",
        "humans_or_llms",
        "pair_v1",
        "asr",
    ):
        assert name in listed.stdout


@pytest.mark.parametrize("name", ["asr", "dasr", "sham_floor", "s1_macro"])
def test_every_row_is_explained(name: str) -> None:
    result = CliRunner().invoke(main, ["list", name])
    assert result.exit_code == 0
    assert name in result.output.split("\n")[0]
    assert "\nExample:\n" in result.output


def test_every_row_of_calibrate_is_explained() -> None:
    for name in (*NAMES.values(), "PPI++", "AP"):
        result = CliRunner().invoke(main, ["list", name])
        assert result.exit_code == 0, name
        assert f"{name} (in the tables of `voirdire calibrate`): " in flat(result.output)


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("p_holm", "Holm 1979"),
        ("p_by", "Benjamini & Yekutieli 2001"),
        ("e_rejected", "Wang & Ramdas 2022"),
        ("shrunk", "DerSimonian & Laird (1986)"),
        ("shrunk_error", "tau^2"),
        ("scorecard", "methods.md, section 11"),
    ],
)
def test_derived_columns_are_explained(name: str, reported: str) -> None:
    result = CliRunner().invoke(main, ["list", name])
    assert result.exit_code == 0
    assert result.output.startswith(f"{name} (derived column): ")
    assert reported in flat(result.output)


@pytest.mark.parametrize(
    ("name", "first", "reported"),
    [
        ("PC", "PC (column of a table): position consistency. It shows the statistic", "recency"),
        (
            "shift",
            "shift (column of a table): mean preference shift (MPS)",
            "\nmps_sham (statistic): ",
        ),
        (
            "first slot",
            "first slot (column of a table): share of votes for the",
            "\nfirst_pick_share (statistic): ",
        ),
        (
            "dASR",
            "dASR (column of a table): attack success rate above its floor",
            "\ndasr (statistic): ",
        ),
        ("jaccard", "jaccard (metric of `calibrate`): Mean share of labels in both", "{a, b} and"),
        ("accuracy", "accuracy (statistic): Measure", "\naccuracy (metric of `calibrate`): Share"),
        ("offline/honest", "offline/honest (judge): simulated: Unbiased but noisy", ""),
        ("quick", "quick (study): The bundled questions", '\nsham = "first"\ndataset = "bloom"\n'),
        ("pair_v2", "pair_v2 (judge prompt): pair_v1 with a mark", "\n  {answer_a}\n"),
        (
            "fake_reference",
            "fake_reference (perturbation): promote, authority: Append one",
            "\nSham: Append a closing paragraph",
        ),
        ("bloom", "bloom (dataset): Import the bundled questions", "\nLicence: CC0-1.0."),
        ("openai/gpt-5.4-mini", "openai/gpt-5.4-mini (judge): ", '\nmodel = "openai/gpt-5.4-mini'),
        ("metrics", "metrics", "macro_jaccard"),
        ("position gap", "position_gap (row of the statistic", "How to read it"),
        ("mart.recommendations", "mart.recommendations (mart): One row per study, judge,", ""),
        ("findings", "findings (table): One row per cell with the finding on its primary", ""),
        ("thresholds", "thresholds (key of a study file, table [study]): Limits that", ""),
        ("most_invalid", "most_invalid (key of a study file, table [study.thresholds]): Max", ""),
        (
            "least_winning_rate",
            "least_winning_rate (limit of a calibration, in the parameter thresholds of its flow):",
            "Default: 0.5.",
        ),
        ("doubtful", "doubtful (in the tables of `voirdire calibrate`): rests on too little", ""),
        ("samples for .05", "samples for .05 (in the tables of `voirdire plan`): samples that", ""),
        ("tokens in", "tokens in (in the tables of `voirdire plan`): tokens of the prompts", ""),
        (
            "typical judge",
            "typical judge (in the tables of `voirdire plan`): stands for a judge",
            "",
        ),
        ("do not use", "do not use (recommendation, by the gates of a judge): Do not use: any", ""),
        ("openai", "openai (provider): its judges are", "\n  openai/gpt-5.4-mini\n"),
        ("offline", "offline (provider): simulated, its judges are", "\n  offline/fair\n"),
    ],
)
def test_every_name_is_explained(name: str, first: str, reported: str) -> None:
    result = CliRunner().invoke(main, ["list", name])
    assert result.exit_code == 0
    assert flat(result.output).startswith(first)
    assert reported in result.output


def test_columns_of_the_table_are_explained() -> None:
    of_report = {"MPS", "dASR", "LOS"}
    assert {*RATES, "n", "DP", "D", *OF_JUDGES, *of_report} == HEADINGS.keys()
    assert {row for _, row in HEADINGS.values()} <= {
        row for entry in STATISTICS.values() for row in entry.gives
    }


@pytest.mark.parametrize("name", ["winning rate", "human AP", "tied", "ceiling", "ratio", "alpha"])
def test_a_legend_says_what_the_listing_says(name: str) -> None:
    reported = flat(explained(name)).partition("`voirdire calibrate`): ")[2]
    meaning = reported.removesuffix(".").partition(". ")[0]
    assert meaning
    assert f"{name}: {meaning}" in legend()


def test_an_explanation_says_how_to_read_a_statistic_before_its_formula() -> None:
    shown = explained("dasr")
    headings = re.findall(r"^(\w.*):$", shown, re.MULTILINE)
    assert headings == ["How to read it", "Details", "Notes", "References", "Example"]
    assert "dasr: unit share, 0 if there is no effect (null), compared with (floor)" in flat(shown)
    assert "Two rows per cell: `dasr` in [-1, 1] by cluster linearisation" in flat(shown)
    assert "docs/reference/statistics.md#dasr" in shown
    assert "One row per sample and perturbation" not in shown
    # Rows of one declaration are listed once, after what their values mean.
    several = flat(explained("accuracy"))
    assert "How to read it: 1 is perfect in each row. A judge that draws lots has" in several
    assert several.count("unit share, family accuracy") == 1
    assert "accuracy_12, accuracy_21, accuracy, " in several


@pytest.mark.parametrize("columns", [60, 80])
def test_explanations_have_no_markup_and_fit_the_terminal(columns: int) -> None:
    names = (*STATISTICS, *DERIVED, *METRICS, *FORMATS, *PERTURBATIONS, *DATASETS, *PROMPTS)
    for name in (*names, *STUDIES, "formats", "metrics"):
        result = CliRunner().invoke(main, ["list", name], env={"COLUMNS": str(columns)})
        assert result.exit_code == 0, name
        assert not re.search(r"``|:\w+:`|>>>|^(Parameters|Returns|-{3,})", result.stdout), name
        # An address is a single word, which is not broken.
        lines = [line for line in result.stdout.split("\n") if " " in line.strip()]
        assert max(map(len, lines)) <= columns, name


def test_the_help_names_each_command_with_a_whole_sentence() -> None:
    shown = CliRunner().invoke(main, ["--help"], terminal_width=80).output
    assert "..." not in shown.partition("Commands:")[2]
    assert "and switch them on or off." in " ".join(shown.split())


def test_a_name_that_is_not_known_is_reported() -> None:
    result = CliRunner().invoke(main, ["list", "sham_flour"])
    assert result.exit_code == 2
    assert "no name 'sham_flour'. Did you mean 'sham_floor'? Known: " in result.output


@pytest.mark.parametrize(
    ("folder", "title"), [("prompts", "judge prompts"), ("providers", "judges")]
)
def test_names_of_the_own_folders_are_kinds(folder: str, title: str) -> None:
    result = CliRunner().invoke(main, ["list", folder])
    assert result.exit_code == 0, result.output
    assert result.output.split("\n")[0].strip() == title


def test_an_explained_name_has_its_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prompts" / "terse.toml"
    file.parent.mkdir()
    file.write_text('kind = "binary"\nsource = "mine"\nuser = "{answer}"\n', encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setenv("VOIRDIRE_HOME", str(tmp_path))
        PROMPTS.read_own()
        result = CliRunner().invoke(main, ["list", "terse"])
    PROMPTS.read_own()
    assert f"terse (judge prompt): mine (your file {file})" in flat(result.output)


def test_a_simulated_judge_without_a_text_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "providers" / "sim.toml"
    file.parent.mkdir()
    params = "params = { traits = { seed = 11 } }"
    judges = (
        f'[judges.plain]\nmodel = "offline/plain"\n{params}\n'
        f'[judges.told]\nmodel = "offline/told"\nabout = "prefers long answers"\n{params}\n'
    )
    file.write_text(f"[provider]\nsimulated = true\n{judges}", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setenv("VOIRDIRE_HOME", str(tmp_path))
        patch.setenv("COLUMNS", "200")
        for catalogue in (PROVIDERS, JUDGES):
            catalogue.read_own()
        listed = flat(CliRunner().invoke(main, ["list", "judges"]).output)
        one = flat(CliRunner().invoke(main, ["list", "sim/plain"]).output)
    for catalogue in (PROVIDERS, JUDGES):
        catalogue.read_own()
    assert f"sim/plain simulated (your file {file})" in listed
    assert f"sim/told simulated: prefers long answers (your file {file})" in listed
    assert f"sim/plain (judge): simulated (your file {file})" in one


def test_every_column_of_a_table_or_mart_is_explained(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb")
    warehouse.save([], run="r1", study="s")
    columns = warehouse.query(
        "select distinct column_name from duckdb_columns() where database_name = current_database()"
        " and (schema_name = 'mart' or comment is not null)"
    )["column_name"]
    assert {"wave", "more_questions", "position_consistency_low"} <= {*columns}
    assert [name for name in columns if not explained(name)] == []


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("questions", "(in the tables of `voirdire audit`): independent questions, or clusters"),
        ("more_questions", "(column of judge_recommendations): number of further questions that"),
        ("detects some", "(finding): A detract perturbation made the answer worse: the judge"),
        ("calls", "(in the tables of `voirdire plan`): votes still to be asked for."),
        ("discernment", "(gate of the scorecard): Can the judge tell flawed answers from sound"),
        ("agreement with people", "(gate agreement of the scorecard): Does the judge agree with"),
        ("share detected", "(in the tables of `voirdire gate`): share of flaws detected: DP, or D"),
        ("up_low", "(column of mart.flips): `low` of `flips_up`; see `voirdire list flips_up`."),
    ],
)
def test_words_of_tables_are_explained(name: str, reported: str) -> None:
    assert f"{name} {reported}" in flat(explained(name))


def test_every_name_of_a_gate_is_explained() -> None:
    measures = {"invalid replies", "gap", "shift", "agreement lost", DETECTED, IN_LOGITS, IN_SDS}
    measures |= {*AGREED_BY.values(), BEST_DETECTED, MEAN_DETECTED}
    measures |= {BEYOND_CHANCE, *IN_MEAN_SCORES.values()}
    names = {*GATES, *SUBJECTS.values(), WITH_LABELS, *measures}
    assert [name for name in sorted(names) if not explained(name)] == []


def flat(text: str) -> str:
    """Return a text in one line."""
    return " ".join(text.split())


def explained(name: str) -> str:
    """Return what ``voirdire list NAME`` prints; empty if it knows no such name."""
    return CliRunner().invoke(main, ["list", name]).stdout


def test_a_column_of_a_mart_is_explained_once() -> None:
    said = CliRunner().invoke(main, ["list", "n"]).stdout
    assert "n (column of mart.accuracy): votes cast on pairs with a label" in said
    assert said.count("mart.accuracy") == 1


@pytest.mark.parametrize("heading", sorted(name for name, (_, row) in HEADINGS.items() if row))
def test_the_query_that_a_heading_leads_to_selects_its_statistic(
    heading: str, tmp_path: Path, make_estimates: Callable[..., Any]
) -> None:
    _, row = HEADINGS[heading]
    printed = flat(CliRunner().invoke(main, ["list", heading]).output)
    queries = re.findall(r"`(select [^`]+)` selects", printed)
    assert bool(queries) == (row != heading)
    warehouse = Warehouse(tmp_path / "w.duckdb")
    parts = ("", "invalid experimental votes for the anchor")
    of = [{"statistic": n, "subgroup": part} for n in {row, "tie_rate", "asr"} for part in parts]
    rows = make_estimates(of)
    warehouse.save([Saving(Estimates, rows)], run="r1", study="s")
    for query in queries:
        assert warehouse.query(query)["statistic"].to_list() == [row]
