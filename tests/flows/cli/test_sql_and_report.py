import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner
from printed_commands import in_short
from rich.console import Console

from flows.cli import sql_and_report
from flows.cli.main import main
from flows.cli.questions import questions
from flows.cli.sql_and_report import _short, show_numbers, show_query
from flows.running.run_row import first_row
from flows.studies import make_study
from schemas.calibration import Ratings
from schemas.conclusions import Recommendations
from schemas.curation import Questions
from schemas.frame import Frame
from schemas.judging import Ballots, Judges, Pairs, Prompts, Shifts, VoteLog, Votes
from schemas.results import Drifts, Estimates, Findings, Gates
from tasks.conclude import conclude
from tasks.gates.summaries import summarised
from tasks.reporting.advice import advice
from tasks.results import conclusions_of
from tasks.statistics.mps import mps
from warehouse.descriptions import column_meanings
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]


def save(warehouse: Warehouse, estimates: Any, *frames: tuple[type[Frame], pl.DataFrame]) -> None:
    """Save estimates and all that is concluded from them."""
    findings = conclude(estimates)
    drawn = conclusions_of(estimates, findings, Drifts.empty()).tables()
    saved = ((Estimates, estimates), (Findings, findings), *drawn, *frames)
    warehouse.save([Saving(*frame) for frame in saved], run="r1", study="quick")


def test_judges_that_share_no_perturbation_get_one_clear_answer(
    make_shifts: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "judge": judge,
            "perturbation": perturbation,
            "sample": f"s{n:02}",
            "experimental_score": 0.5 + n / 99,
        }
        for judge, perturbation in (("ada", "boast"), ("bea", "calm"))
        for n in range(30)
    ]
    shifts = make_shifts(rows, control_score=0.5)
    estimates = mps(shifts=shifts)
    warehouse = Warehouse(tmp_path / "v.duckdb")
    save(warehouse, estimates, (Shifts, shifts))
    show_numbers(warehouse, "quick")
    printed = capsys.readouterr().out
    assert "ada" in printed
    assert "No chance of rank 1 for ada: no shift under calm." in printed
    assert "No chance of rank 1 for bea: no shift under boast." in printed


def test_one_number_is_printed_with_what_it_hides(
    make_shifts: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "judge": judge,
            "sample": f"s{n:02}",
            "control_score": 0.5,
            "experimental_score": 0.5 + shift * n / 29,
        }
        for judge, shift in (("ada", 0.0), ("bea", 0.4))
        for n in range(30)
    ]
    shifts = make_shifts(rows, simulated=True)
    estimates = mps(shifts=shifts)
    warehouse = Warehouse(tmp_path / "v.duckdb")
    save(warehouse, estimates, (Shifts, shifts))
    show_numbers(warehouse, "quick")
    printed = capsys.readouterr().out
    assert "ada (simulated)" in printed
    assert "chance of rank 1" in printed
    assert "No judge has a chance" not in printed
    assert "Prefer the scorecard" in printed
    first = warehouse.query("select min(margin) from mart.scorecard where judge = 'bea'").item()
    assert f"{first:.2f}".rstrip("0") in printed


def test_people_of_a_file_narrow_no_models(
    make_shifts: Make, make_vote_log: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"judge": judge, "sample": f"s{n:02}", "experimental_score": 0.5 + shift}
        for n in range(30)
        # On the twelve questions that Mary judged, bea is moved less; on all, ada is.
        for judge, shift in (
            ("ada", 0.3 * (n < 12)),
            ("bea", 0.3 * (n >= 6)),
            *[("Mary", 0.0)] * (n < 12),
        )
    ]
    shifts = make_shifts(rows, control_score=0.5)
    estimates = mps(shifts=shifts)
    log = make_vote_log([{"judge": "Mary", "human": True}, {"judge": "ada", "human": False}])
    warehouse = Warehouse(tmp_path / "v.duckdb")
    save(warehouse, estimates, (Shifts, shifts), (VoteLog, log))
    show_numbers(warehouse, "quick")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    chances = {line[0]: line[-1] for line in lines if line and line[0] in {"ada", "bea", "Mary"}}
    assert (float(chances["ada"]) > 0.9, float(chances["bea"]) < 0.1) == (True, True)


def test_lists_are_json_in_csv_and_no_json_has_a_nan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = Warehouse(tmp_path / "v.duckdb")
    warehouse.save([Saving(Estimates, Estimates.empty())], run="r1", study="quick")
    show_query("select [1, 2] as a, {'b': 'c'} as d, null::int[] as e", "csv", warehouse.path)
    assert capsys.readouterr().out == 'a,d,e\n"[1, 2]","{""b"": ""c""}",\n'
    show_query("select 'nan'::double as a", "json", warehouse.path)
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == [{"a": None}]
    # DuckDB's sum of integers is a decimal.
    numbers = "sum(a) as s, sum(a)::decimal(9, 2) / 2 as h, date '2026-01-02' as d"
    show_query(f"select {numbers} from range(3) as t(a)", "json", warehouse.path)
    assert json.loads(capsys.readouterr().out) == [{"s": 3, "h": 1.5, "d": "2026-01-02"}]


@pytest.mark.parametrize(
    ("label", "cell"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1", "'+1"),
        ("-x", "'-x"),
        ("@x", "'@x"),
        ("'=x", "''=x"),
        ("a=b", "a=b"),
        ("", '""'),
    ],
)
def test_csv_holds_no_formula(
    label: str, cell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = Warehouse(tmp_path / "v.duckdb")
    warehouse.save([Saving(Estimates, Estimates.empty())], run="r1", study="quick")
    query = "select '" + label.replace("'", "''") + "' as label, -1.5::double as n"
    show_query(query, "csv", warehouse.path)
    assert capsys.readouterr().out == f"label,n\n{cell},-1.5\n"
    show_query(query, "json", warehouse.path)
    assert json.loads(capsys.readouterr().out) == [{"label": label, "n": -1.5}]


@pytest.mark.parametrize("query", ["select 1 as a where false", "from estimates"])
def test_no_rows_are_reported(
    query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = Warehouse(tmp_path / "v.duckdb")
    warehouse.save([Saving(Estimates, Estimates.empty())], run="r1", study="quick")
    show_query(query, "table", warehouse.path)
    assert capsys.readouterr().err == "no rows\n"


def test_a_table_has_no_minus_before_a_zero_and_shows_long_texts_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = Warehouse(tmp_path / "v.duckdb")
    warehouse.save([Saving(Estimates, Estimates.empty())], run="r1", study="quick")
    show_query(
        "select round(-0.001::double, 2) as low, repeat('biased, ', 60) || 'end' as reasons",
        "table",
        warehouse.path,
    )
    printed = capsys.readouterr().out
    assert "-0" not in printed
    assert printed.count("biased") == 60
    assert "end" in printed


@pytest.mark.parametrize(
    ("number_of", "terminal", "shown", "said"),
    [
        (5, True, 3, "5 rows; 3 columns of 40 shown, without c3, c4, c5, c6, c7, c8, ...: select"),
        (3, True, 40, "3 rows"),  # as lists
        (5, False, 40, "5 rows"),  # a pipe gets everything
        (201, True, 3, "201 rows; the first 200 are shown, --format csv prints all; 3 columns of"),
    ],
)
def test_wide_rows_fold_columns_on_a_terminal(
    narrow: Callable[..., Any], number_of: int, terminal: bool, shown: int, said: str
) -> None:
    captured = narrow(number_of, terminal=terminal)
    assert sum(str(10**9 + n) in captured.out for n in range(40)) == shown
    assert captured.err.startswith(said)


@pytest.fixture
def narrow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Return what prints rows of 40 columns, each 10 wide, on 34 characters: room for three."""
    warehouse = Warehouse(tmp_path / "v.duckdb")
    warehouse.save([Saving(Estimates, Estimates.empty())], run="r1", study="quick")
    columns = ", ".join(f"{10**9 + n} as c{n}" for n in range(40))

    def printed(number_of: int, *, terminal: bool) -> Any:
        console = Console(width=34, force_terminal=terminal, color_system=None)
        monkeypatch.setattr(sql_and_report, "Printer", lambda **_: console)
        show_query(f"select {columns} from range({number_of})", "table", warehouse.path)
        return capsys.readouterr()

    return printed


@pytest.mark.parametrize(("number_of", "whole"), [(3, True), (4, False)])
def test_many_rows_as_lists_have_a_line_per_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number_of: int, whole: bool
) -> None:
    warehouse = Warehouse(tmp_path / "v.duckdb")
    warehouse.save([Saving(Estimates, Estimates.empty())], run="r1", study="quick")
    columns = ", ".join(f"{10**9 + n} as c{n}" for n in range(10))
    raw = "'reply' || repeat(' and more', 40) || ' end' as raw"
    asked = f"select {raw}, {columns} from range({number_of})"
    show_query(asked, "table", warehouse.path)
    shown, said = capsys.readouterr()
    assert shown.count(" end") == (number_of if whole else 0)
    assert shown.count("…") == (0 if whole else number_of)
    cut = "; long texts are cut, --format csv prints them whole"
    assert said == f"{number_of} rows{'' if whole else cut}\n"
    if not whole:
        # The text and ten numbers; an empty line between rows.
        assert len(shown.splitlines()) == number_of * 12 - 1
        show_query(asked, "csv", warehouse.path)
        assert capsys.readouterr().out.count(" end") == number_of


def test_a_question_is_answered_in_a_row_each_without_what_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    people = ["pass", "fail"] * 20
    other = {"pass": "fail", "fail": "pass"}
    # Judge n differs from people on 4 n of 40 items, half of them of each topic.
    judges = {
        f"judge-{n}": [other[word] if at < 4 * n else word for at, word in enumerate(people)]
        for n in range(1, 6)
    }
    topic = ["tone", "tone", "facts", "facts"] * 10
    table = tmp_path / "labels.csv"
    pl.DataFrame({"human": people, "topic": topic, **judges}).write_csv(table)
    place = ["--warehouse", str(tmp_path / "w.duckdb")]
    names = [word for name in judges for word in ("--judge", name)]
    done = CliRunner().invoke(main, ["calibrate", str(table), *names, "--slice", "topic", *place])
    assert done.exit_code == 0, done.output
    asked = ["sql", "--ask", "who_disagrees_with_people", *place]
    answer = CliRunner().invoke(main, asked)
    columns, *rows, same = answer.stdout.splitlines()
    assert columns.split()[:6] == ["judge", "items", "agreement", "kappa", "bias", "bias_finding"]
    assert same == "In all rows: study labels, prompt none, kind pass_fail."
    # The slices of the worst judge follow each other.
    assert [row.split()[0] for row in rows if row.startswith("judge-")] == [
        f"judge-{n}" for n in (5, 4, 3, 2, 1, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1)
    ]
    # No number without its interval.
    assert rows[0].split()[:6] == ["judge-5", "all", "items", ".50", ".00", ".00"]
    assert " ".join(rows[1].split()) == "[.35, .65] [-.31, .31] [-.23, .23]"
    assert len(rows) == 2 * 15
    assert "15 rows; all studies (--set study=NAME: one)" in answer.stderr
    whole = json.loads(CliRunner().invoke(main, [*asked, "--format", "json"]).stdout)
    assert {(row["study"], row["kind"], row["wave"]) for row in whole} == {
        ("labels", "pass_fail", "")
    }
    # Kappa is 1 - n / 5: .8 agrees, and 0 with its interval leaves it open, limit .20.
    query = "select judge, agreement_finding from mart.human_agreement where slice is null"
    found = CliRunner().invoke(main, ["sql", query, *place, "--format", "json"]).stdout
    findings = {row["judge"]: row["agreement_finding"] for row in json.loads(found)}
    assert (findings["judge-1"], findings["judge-5"]) == ("agrees", "inconclusive")
    assert {row["bias_finding"] for row in whole} <= {"inconclusive", "no relevant bias"}


def test_people_beside_each_other_have_a_row(tmp_path: Path) -> None:
    people = ["pass", "fail"] * 20
    other = {"pass": "fail", "fail": "pass"}
    # By hand: ben differs from both others on 4 of 40 items, which are ties for ann and for cid.
    ben = [other[word] if at < 4 else word for at, word in enumerate(people)]
    table = tmp_path / "labels.csv"
    columns = {"human_ann": people, "human_ben": ben, "human_cid": people, "judge": people}
    pl.DataFrame(columns).write_csv(table)
    place = ["--warehouse", str(tmp_path / "w.duckdb")]
    named = [word for name in columns if name != "judge" for word in ("--human", name)]
    done = CliRunner().invoke(main, ["calibrate", str(table), *named, "--judge", "judge", *place])
    assert done.exit_code == 0, done.output
    asked = ["sql", "--ask", "who_disagrees_with_people", *place, "--format", "json"]
    judge, people_row = json.loads(CliRunner().invoke(main, asked).stdout)
    assert (people_row["judge"], people_row["kappa"]) == ("humans", None)
    # ann and cid 36 of 36 each, ben 36 of 40
    assert people_row["agreement"] == pytest.approx(108 / 112)
    assert (judge["judge"], judge["agreement"]) == ("judge", 1.0)


def drafted(*rows: dict[str, Any]) -> Any:
    """Return recommendations with what is computed of each: its summary, and its order."""
    return summarised(Recommendations.draft(pl.DataFrame([*rows])))


def test_reasons_are_cut_to_fit_beside_the_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    reasons = "biased by fake reference because of its length and of many other things " * 6
    row = {"dataset": "demo", "prompt": "plain", "wave": "", "mode": "any", "passed": 1}
    row |= {"recommendation": "do not use", "failed": 1, "inconclusive": 0, "reasons": reasons}
    frame = drafted(*(row | {"judge": f"provider/judge-{n}", "prompt": f"p{n}"} for n in range(4)))
    warehouse = Warehouse(tmp_path / "w.duckdb")
    run = first_row("audit", "r1", make_study("quick", {}), datetime.now(UTC))
    warehouse.start_run({**run, "state": "failed"})
    warehouse.save([Saving(Recommendations, frame)], run="r1", study="quick")
    asked = ["sql", "--ask", "which_judge", "--warehouse", str(warehouse.path)]
    answer = CliRunner().invoke(main, asked)
    heads = answer.stdout.splitlines()[0].split()
    assert heads == ["judge", "recommendation", "reasons", "prompt"]
    assert answer.stdout.endswith("In all rows: study quick.\n")
    assert answer.stdout.count("…") == 4
    assert answer.stdout.count("Biased by fake") == 4
    assert "4 rows; all studies (--set study=NAME: one); long texts are cut" in answer.stderr
    assert "without" not in answer.stderr
    said = CliRunner().invoke(main, [*asked, "--format", "csv"]).stdout
    assert said.count(reasons.strip()[1:]) == 4
    # Why a judge may be used is that it passes.
    row |= {"recommendation": "use", "passed": 7, "failed": 0, "inconclusive": 1, "reasons": None}
    fine = drafted(row | {"judge": "j", "drift": "drift is open"})
    run = first_row("audit", "r2", make_study("quick", {"name": "fine"}), datetime.now(UTC))
    warehouse.start_run({**run, "state": "completed"})
    warehouse.save([Saving(Recommendations, fine)], run="r2", study="fine")
    said = CliRunner().invoke(main, [*asked, "--set", "study=fine", "--format", "json"]).stdout
    assert json.loads(said)[0]["reasons"] == "Passes 7 of 8 gates. Drift is open"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("select x frm y", "syntax error"),
        ("drop table votes", 'Cannot execute statement of type "DROP"'),
        ("from nonexistent", "Table with name nonexistent does not exist"),
        ("select shft from mart.asr", 'Referenced column "shft" not found'),
    ],
)
def test_an_error_of_the_query_is_one_line_with_the_next_step(
    tmp_path: Path, query: str, says: str
) -> None:
    warehouse = Warehouse(tmp_path / "v.duckdb")
    warehouse.save([Saving(Estimates, Estimates.empty())], run="r1", study="quick")
    done = CliRunner().invoke(main, ["sql", query, "--warehouse", str(warehouse.path)])
    assert (done.exit_code, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert says in line
    assert in_short(line).endswith(
        " `voirdire sql` lists the marts and questions, "
        f'`voirdire sql "describe {"asr" if "mart.asr" in query else "bias"}"` the columns of a '
        "mart. A query can read, but change nothing."
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--ask="], "--ask names no question. There are: cost_per_judge_per_night, what_drifted"),
        (["--ask", "which_juge"], "no question of --ask 'which_juge'. Did you mean 'which_judge'?"),
        (["--ask", "which_judge", "--set", "stuyd=a"], "Did you mean 'study'?"),
        (
            ["--ask", "what_drifted", "--set", "days=abc"],
            "--set 'days=abc': days must be a whole number of up to 6 digits, such as days=7.",
        ),
        (
            ["select 1", "--ask", "which_judge"],
            "--ask 'which_judge' cannot be given beside a query",
        ),
        (["--set", "study=a"], "--set 'study=a' gives a value to a question"),
        (["select 1", "--set", "study=a"], "--set 'study=a' gives a value to a question"),
    ],
)
def test_a_question_that_does_not_exist_is_one_clear_error(words: list[str], says: str) -> None:
    done = CliRunner().invoke(main, ["sql", *words])
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_columns_of_one_name_are_one_clear_error(tmp_path: Path, form: str) -> None:
    Warehouse(tmp_path / "w.duckdb").query("select 1")
    query = "select a.judge, b.judge from ranking as a join ranking as b using (study)"
    words = ["sql", query, "--warehouse", str(tmp_path / "w.duckdb")]
    file = tmp_path / f"rows.{form.replace('table', 'txt')}"
    printed = [] if form == "parquet" else [["--format", form]]
    for more in [*printed, ["--output", str(file)]]:
        done = CliRunner().invoke(main, [*words, *more])
        assert (done.exit_code, done.stdout) == (2, "")
        [line] = done.stderr.splitlines()
        assert "more than one column of the result has the name 'judge'" in line
        assert "as in `column as name`" in line
    assert not file.exists()


def test_values_of_questions_are_never_sql(tmp_path: Path) -> None:
    path = ["--warehouse", str(tmp_path / "w.duckdb")]
    warehouse = Warehouse(tmp_path / "w.duckdb")
    hostile = "x' or 1 = 1; drop table votes --"
    now = datetime.now(UTC)
    row = first_row("audit", "r1", make_study("quick", {}), now)
    warehouse.start_run({**row, "study": hostile, "state": "completed", "ended_at": now})
    there = ["--set", f"study={hostile}"]
    done = CliRunner().invoke(main, ["sql", "--ask", "which_judge", *there, *path])
    assert done.exit_code == 0
    assert {"judge", "recommendation"} <= {*done.stdout.split()}
    assert f"no rows; study {hostile}" in done.stderr
    assert warehouse.query("select count(*) from votes").item() == 0
    elsewhere = CliRunner().invoke(main, ["sql", "--ask", "which_judge", "--set", "study=y", *path])
    assert (elsewhere.exit_code, elsewhere.stdout) == (2, "")
    assert "no study 'y'" in elsewhere.stderr


def test_a_study_that_only_failed_has_a_reason_and_a_next_step(tmp_path: Path) -> None:
    path, now = tmp_path / "w.duckdb", datetime.now(UTC)
    row = first_row("audit", "r1", make_study("quick", {}), now)
    ended = {"state": "failed", "ended_at": now, "error": "ValueError: no judge\ncan be asked."}
    Warehouse(path).start_run({**row, **ended})
    words = ["sql", "--ask", "which_judge", "--set", "study=quick", "--warehouse", str(path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0
    said = in_short(" ".join(done.stderr.split()))
    failed = "its last run failed (ValueError: no judge can be asked). Correct the cause"
    assert f"Study 'quick' has no results, because {failed}" in said
    assert "repeat the audit: `voirdire audit quick`" in said


REASONS = "prefers one slot; biased by boast; biased by calm; overlooks errors"
MORE = "1 more reason in mart.recommendations"


@pytest.mark.parametrize(
    ("word", "changes", "said"),
    [
        (
            "do not use",
            {},
            f"Prefers one slot; biased by boast; biased by calm; {MORE}",
        ),
        (
            "not enough data",
            {"undecided": "validity is inconclusive", "reasons": "biased by boast"}
            | {"more_questions": 40, "more_decide": "validity", "drift": "drift is inconclusive"},
            (
                "About 40 more questions would decide validity with a chance of 60 to 80 %. "
                "Validity is inconclusive. Biased by boast. Drift is inconclusive"
            ),
        ),
        (
            "not enough data",
            {"reasons": None, "not_measured": "biases, discernment, agreement with people"},
            "None of the gates bias, discernment and agreement could be measured",
        ),
        ("use with care", {"reasons": "biased by boast"}, "Biased by boast"),
        ("use", {"reasons": None, "inconclusive": 0}, "Passes all 1 gate"),
    ],
)
def test_the_reasons_are_those_of_the_audit(
    tmp_path: Path, word: str, changes: dict[str, Any], said: str
) -> None:
    path = tmp_path / "w.duckdb"
    row = {"dataset": "demo", "judge": "ada", "prompt": "plain", "wave": "", "mode": "any"}
    row |= {"recommendation": word, "passed": 1, "failed": 1, "inconclusive": 1}
    frame = drafted(row | {"reasons": REASONS} | changes)
    warehouse = Warehouse(path)
    now = datetime.now(UTC)
    run = first_row("audit", "r1", make_study("quick", {}), now)
    warehouse.start_run({**run, "state": "completed", "ended_at": now})
    warehouse.save([Saving(Recommendations, frame)], run="r1", study="quick")
    words = ["sql", "--ask", "which_judge", "--format", "json", "--warehouse", str(path)]
    [answer] = json.loads(CliRunner().invoke(main, words).stdout)
    assert answer["reasons"] == said
    # What no judge was measured on is said once, below the judges.
    [line] = advice(frame)
    assert line.why == said
    # The terminal and SQL show what was saved, not what this version would say.
    [line] = advice(frame.with_columns(summary=pl.lit("As it was saved")))
    assert line.why == "As it was saved"


def test_results_of_an_earlier_version_have_their_reasons_without_a_summary(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    row = {"dataset": "demo", "prompt": "plain", "wave": "", "mode": "any", "inconclusive": 1}
    row |= {"passed": 1, "recommendation": "do not use", "reasons": REASONS}
    unknown = {"recommendation": "not enough data", "undecided": "validity is inconclusive"}
    rows = [
        row | {"judge": "ada", "failed": 2, "undecided": None},
        row | {"judge": "bo", "failed": 1} | unknown,
        row | {"judge": "cy", "failed": 0, "recommendation": "use", "reasons": None},
    ]
    frame = Recommendations.draft(pl.DataFrame(rows))
    warehouse = Warehouse(path)
    now = datetime.now(UTC)
    run = first_row("audit", "r1", make_study("quick", {}), now)
    warehouse.start_run({**run, "state": "completed", "ended_at": now})
    warehouse.save([Saving(Recommendations, frame)], run="r1", study="quick")
    words = ["sql", "--ask", "which_judge", "--format", "json", "--warehouse", str(path)]
    answers = json.loads(CliRunner().invoke(main, words).stdout)
    assert [(each["judge"], each["reasons"]) for each in answers] == [
        ("cy", None),
        ("bo", f"{REASONS}; validity is inconclusive"),
        ("ada", REASONS),
    ]
    most_serious = f"refers one slot; biased by boast; biased by calm; {MORE}"
    assert [(line.judge, line.why) for line in advice(frame)] == [
        ("cy", "Passes 1 of 2 gates"),
        ("bo", f"Validity is inconclusive. P{most_serious}"),
        ("ada", f"P{most_serious}"),
    ]


def test_a_reason_that_is_cut_keeps_how_many_others_there_are() -> None:
    said = f"Prefers one slot; biased by boast; biased by calm; {MORE}. Drift is inconclusive"
    assert _short(said, len(said)) == said
    assert _short(said, 64) == f"Prefers one slot; biased…; {MORE}"


def test_the_comment_of_reasons_says_where_what_is_undecided_stands(tmp_path: Path) -> None:
    query = """
        select comment from duckdb_columns()
        where table_name = 'judge_recommendations' and column_name in ('reasons', 'undecided')
        order by column_name
    """
    reasons, undecided = Warehouse(tmp_path / "w.duckdb").query(query)["comment"]
    assert "undecided has what makes the data not enough, so read both" in reasons
    assert "for a judge with not enough data, read it before reasons" in undecided
    # It is stated of judges that a failed gate forbids, too.
    assert "For any judge also notes without consequence" in undecided
    (computed,) = [text for text in column_meanings()["reasons"] if "in exclusions" in text]
    assert "makes the data not enough, so read both" in computed


def test_judges_stand_in_the_order_of_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    row = {"dataset": "demo", "prompt": "plain", "wave": "", "mode": "any", "passed": 1}
    words = ("do not use", "not enough data", "use with care", "use")
    rows = [
        row | {"judge": f"{word} {open_}", "recommendation": word, "inconclusive": open_}
        for word in words
        for open_ in (3, 1)
    ]
    frame = drafted(*({"failed": 0, **each} for each in rows))
    warehouse = Warehouse(path)
    warehouse.start_run(
        {**first_row("audit", "r1", make_study("quick", {}), datetime.now(UTC)), "state": "failed"}
    )
    warehouse.save([Saving(Recommendations, frame)], run="r1", study="quick")
    asked = ["sql", "--ask", "which_judge", "--format", "json", "--warehouse", str(path)]
    listed = [each["judge"] for each in json.loads(CliRunner().invoke(main, asked).stdout)]
    assert listed == [line.judge for line in advice(frame)]
    assert (listed[0], listed[-1]) == ("use 1", "do not use 3")


def test_what_is_read_together_is_in_one_column_of_the_table_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    row = {"dataset": "demo", "judge": "ada", "prompt": "plain", "wave": "", "mode": "any"}
    row |= {"recommendation": "not enough data", "passed": 1, "failed": 0, "inconclusive": 1}
    row |= {"more_questions": 1403, "more_decide": "position"}
    warehouse = Warehouse(tmp_path / "w.duckdb")
    run = first_row("audit", "r1", make_study("quick", {}), datetime.now(UTC))
    warehouse.start_run({**run, "state": "failed"})
    saving = Saving(Recommendations, Recommendations.draft(pl.DataFrame([row])))
    warehouse.save([saving], run="r1", study="quick")
    asked = ["sql", "--ask", "which_judge", "--warehouse", str(warehouse.path)]
    table = CliRunner().invoke(main, asked).stdout
    assert "1\N{NARROW NO-BREAK SPACE}403 (position)" in table
    assert "more_decide" not in table
    [data] = json.loads(CliRunner().invoke(main, [*asked, "--format", "json"]).stdout)
    assert (data["more_questions"], data["more_decide"]) == (1403, "position")


@pytest.mark.parametrize("question", ["which_judge", "what_drifted"])
def test_a_question_is_about_all_studies_or_the_one_that_is_set(
    tmp_path: Path, question: str
) -> None:
    path = tmp_path / "w.duckdb"
    warehouse = Warehouse(path)
    now = datetime.now(UTC)
    row = {"dataset": "demo", "prompt": "plain", "wave": "", "mode": "any", "passed": 1}
    row |= {"recommendation": "use", "failed": 0, "inconclusive": 0}
    for study, judge in (("mine", "ada"), ("yours", "bob")):
        run = first_row("audit", study, make_study("quick", {}), now)
        warehouse.start_run({**run, "study": study, "state": "completed", "ended_at": now})
        advised = Recommendations.draft(pl.DataFrame([row | {"judge": judge}]))
        warehouse.save([Saving(Recommendations, advised)], run=study, study=study)

    def asked(*words: str) -> Any:
        reported = ["sql", "--ask", question, *words, "--warehouse", str(path)]
        return CliRunner().invoke(main, reported)

    def judges(*words: str) -> list[tuple[str, str]]:
        rows = json.loads(asked(*words, "--format", "json").stdout)
        return [(row["study"], row["judge"]) for row in rows]

    one = ("--set", "study=yours")
    assert judges() == [("mine", "ada"), ("yours", "bob")]
    assert judges(*one) == [("yours", "bob")]
    assert asked().stderr.endswith("2 rows; all studies (--set study=NAME: one)\n")
    assert asked(*one).stderr.endswith("1 row; study yours\n")
    every = [each.parameters["study"][1] for each in questions().values()]
    assert {*every} == {"all studies"}


def test_studies_without_waves_do_not_hide_what_drifted(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    warehouse = Warehouse(path)
    cell = {"dataset": "demo", "judge": "ada", "prompt": "plain", "mode": "any"}
    advised = {**cell, "recommendation": "use", "passed": 1, "failed": 0, "inconclusive": 0}
    drift = {**cell, "measure": "mps_drift", "epoch": 1, "base": "n1", "level": 0.01, "n": 9}
    drift |= {"minimum": 0.05, "clusters": 9, "state": "quiet", "wave": "n2"}
    for study, wave in (("nights", "n2"), ("once", "")):
        run = first_row("audit", study, make_study("quick", {}), datetime.now(UTC))
        warehouse.start_run({**run, "study": study, "state": "failed"})
        rows = Recommendations.draft(pl.DataFrame([{**advised, "wave": wave}]))
        drifts = Drifts.of(pl.DataFrame([drift])) if wave else Drifts.empty()
        warehouse.save(
            [Saving(Recommendations, rows), Saving(Drifts, drifts)], run=study, study=study
        )

    def studies(*words: str) -> list[str]:
        asked = ["sql", "--ask", "what_drifted", *words, "--format", "json"]
        done = CliRunner().invoke(main, [*asked, "--warehouse", str(path)])
        return [row["study"] for row in json.loads(done.stdout)]

    assert studies() == ["nights"]
    assert studies("--set", "study=once") == ["once"]


ASKED_NOW = """
    insert into ballots by name select
        'b' as ballot_id, 'p' as pair_id, 'ada' as judge, 'plain' as prompt, 'n2' as wave,
        'anchor' as shown_first, 0 as repeat, 'r1' as run, now() as saved_at;
    insert into votes by name select
        'b' as ballot_id, 'first' as choice, '' as raw, 1 as seconds, 1 as attempts,
        now() as cast_at, 'r1' as run, now() as saved_at;
"""


@pytest.mark.parametrize("perturbation", ["boast", "calm"])
def test_the_change_of_a_judge_that_did_not_change_is_that_of_its_gate(
    tmp_path: Path, perturbation: str
) -> None:
    """Also where two changes have the same numbers, as changes of few verdicts often have."""
    warehouse, now = Warehouse(tmp_path / "w.duckdb"), datetime.now(UTC)
    cell = {"dataset": "demo", "judge": "ada", "prompt": "plain", "wave": "n2", "mode": "any"}
    advised = {**cell, "recommendation": "use", "passed": 1, "failed": 0, "inconclusive": 0}
    drift: dict[str, Any] = {**cell, "mode": "balanced", "measure": "mps_drift", "epoch": 1}
    drift |= {"base": "n1", "estimate": 0.0, "low": -0.1, "high": 0.1, "p_value": 0.5, "n": 9}
    drift |= {"level": 0.01, "minimum": 0.05, "clusters": 9, "state": "quiet"}
    gate = {**cell, "gate": "drift", "verdict": "inconclusive", "value": 0.0, "low": -0.1}
    gate |= {"high": 0.1, "measure": "mps_drift"}
    gate |= {"drift_mode": "balanced", "drift_perturbation": perturbation}
    run = first_row("audit", "r1", make_study("quick", {}), now)
    warehouse.start_run({**run, "study": "nights", "state": "failed"})
    both = [drift | {"perturbation": name} for name in ("boast", "calm")]
    rows = ((Recommendations, [advised]), (Drifts, both), (Gates, [gate]))
    saved = [Saving(model, model.of(pl.DataFrame(each))) for model, each in rows]
    warehouse.save(saved, run="r1", study="nights")
    with duckdb.connect(str(warehouse.path)) as connection:
        connection.execute(ASKED_NOW)
    words = ["--ask", "what_drifted", "--format", "json", "--warehouse", str(warehouse.path)]
    [row] = json.loads(CliRunner().invoke(main, ["sql", *words]).stdout)
    assert (row["drift"], row["perturbation"]) == ("inconclusive", perturbation)


def test_the_sum_of_a_night_is_of_a_wave_or_without_waves_of_a_day(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    warehouse = Warehouse(path)
    now = datetime.now(UTC)
    judge = {"judge": "a/b", "provider": "a", "model": "b", "params": "{}", "system": ""}
    prompt = {"prompt": "plain", "kind": "pair", "source": "s", "verdict": "tag"}
    pair = {"pair_id": "p", "dataset": "d", "sample": "s", "cluster": "s", "arm": "control"}
    pair |= {"question": "?", "anchor": "x", "target": "y"}
    ballot = {
        "pair_id": "p",
        "judge": "a/b",
        "prompt": "plain",
        "wave": "",
        "shown_first": "anchor",
    }
    vote = {"choice": "first", "raw": "", "seconds": 1.0, "attempts": 1, "cast_at": now}
    asked = [
        ("mine", "", "a/b", now, 0.25),
        ("mine", "", "a/c", now, 0.5),
        # What people cost is not known here, and is no part of the sum.
        ("mine", "", "people/ann", now, None),
        ("mine", "", "a/b", now - timedelta(days=2), 1.0),
        ("yours", "n1", "a/b", now, 2.0),
        ("yours", "n2", "a/b", now, 4.0),
        ("yours", "n2", "a/c", now, None),
    ]
    for number, (study, wave, name, when, cost) in enumerate(asked):
        provider, _, model = name.partition("/")
        run, said = f"r{number}", {"judge": name, "provider": provider, "model": model}
        row = first_row("audit", run, make_study("quick", {}), now)
        warehouse.start_run({**row, "study": study, "state": "completed", "ended_at": now})
        rows: list[tuple[type[Frame], dict[str, Any]]] = [
            (Judges, {**judge, **said, "simulated": False}),
            (Prompts, {**prompt, "system": "", "user": "u"}),
            (Questions, {"question_id": "s", "dataset": "d", "question": "?"}),
            (Pairs, pair),
            (Ballots, {**ballot, "judge": name, "wave": wave, "ballot_id": run, "repeat": number}),
            (Votes, {**vote, "ballot_id": run, "cast_at": when, "cost_usd": cost}),
        ]
        warehouse.save([Saving(m, m.of(pl.DataFrame([row]))) for m, row in rows], run=run)

    def sums(*words: str) -> list[tuple[str, str, str, float | None]]:
        asked = ["sql", "--ask", "cost_per_judge_per_night", *words, "--format", "json"]
        done = CliRunner().invoke(main, [*asked, "--warehouse", str(path)])
        columns = ("study", "wave", "judge", "cost_usd")
        return [tuple(row[name] for name in columns) for row in json.loads(done.stdout)]

    # The newest night comes first, and first of each night what it cost in all.
    mine = [("mine", "", "all", 0.75), ("mine", "", "a/b", 0.25), ("mine", "", "a/c", 0.5)]
    earlier = [("mine", "", "all", 1.0), ("mine", "", "a/b", 1.0)]
    yours = [
        *(
            ("yours", "n2", name, cost)
            for name, cost in (("all", None), ("a/b", 4.0), ("a/c", None))
        ),
        *(("yours", "n1", name, 2.0) for name in ("all", "a/b")),
    ]
    assert sums() == [*mine, *yours, *earlier]
    assert sums("--set", "study=yours") == yours
    assert sums("--set", "days=1") == [*mine, *yours]
    listed = " ".join(CliRunner().invoke(main, ["sql"]).stdout.split())
    assert "The row `all` sums over judges. A night is a wave" in listed


def test_pairs_without_both_verdicts_are_no_pairs_that_could_flip(
    make_shifts: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = [("anchor", "target"), ("anchor", "anchor"), (None, "anchor"), ("tie", None)]
    shifts = make_shifts([{"control": one, "experimental": two} for one, two in verdicts])
    warehouse = Warehouse(tmp_path / "v.duckdb")
    warehouse.save([Saving(Shifts, shifts)], run="r1", study="quick")
    show_query(None, "json", warehouse.path, ask="what_flipped")
    [row] = json.loads(capsys.readouterr().out)
    assert (row["pairs"], row["flipped"]) == (2, 1)


@pytest.mark.parametrize("question", ["what_flipped", "who_disagrees_with_people"])
def test_a_question_without_rows_names_the_next_step(
    make_ratings: Make, tmp_path: Path, question: str
) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb")
    now = datetime.now(UTC)
    graded = make_ratings(
        [
            {"sample": "s1", "value": 3.0, "human_value": 4.0},
            {"sample": "s1", "value": 4.0, "human_value": 4.0, "arm": "experimental"},
        ]
    )
    for study, rows in (("grades", graded), ("other", graded.clear())):
        run = first_row("audit", study, make_study("quick", {}), now)
        warehouse.start_run({**run, "study": study, "state": "completed", "ended_at": now})
        warehouse.save([Saving(Ratings, rows)], run=study, study=study)

    def said(study: str) -> str:
        words = ["sql", "--ask", question, "--set", f"study={study}"]
        done = CliRunner().invoke(main, [*words, "--warehouse", str(warehouse.path)])
        assert "no rows" in done.stderr
        return in_short(" ".join(done.stderr.split()))

    command = {"what_flipped": "show", "who_disagrees_with_people": "calibrate"}[question]
    assert said("grades").endswith(f"`voirdire {command} grades`.")
    assert "Study grades" not in said("other")
    assert "Grades of study" not in said("other")


def test_the_agreement_of_grades_has_the_weighted_kappa(tmp_path: Path) -> None:
    people = [1, 2, 3, 4, 5] * 8
    judged = [min(5, grade + at % 2) for at, grade in enumerate(people)]
    table = tmp_path / "grades.csv"
    pl.DataFrame({"human": people, "ada": judged}).write_csv(table)
    place = ["--warehouse", str(tmp_path / "w.duckdb")]
    done = CliRunner().invoke(main, ["calibrate", str(table), "--judge", "ada", *place])
    assert done.exit_code == 0, done.stderr
    words = ["sql", "--ask", "who_disagrees_with_people", "--format", "json", *place]
    [row] = json.loads(CliRunner().invoke(main, words).stdout)
    measured = Warehouse(tmp_path / "w.duckdb").query(
        "select kappa, kappa_quadratic from mart.human_agreement where judge = 'ada'"
    )
    assert row["kind"] == "grade"
    assert row["kappa"] is row["agreement"] is None
    assert row["kappa_quadratic"] == measured["kappa_quadratic"].item() > measured["kappa"].item()


def test_numbers_of_money_and_time_are_written_out(tmp_path: Path) -> None:
    numbers = (12345.678, 1796000000, 0.00012346, 1234.5)
    query = f"select {', '.join(f'{n}::double as n{at}' for at, n in enumerate(numbers))}"
    words = ["sql", query, "--warehouse"]
    Warehouse(tmp_path / "w.duckdb").query("select 1")
    done = CliRunner().invoke(main, [*words, str(tmp_path / "w.duckdb")])
    _, row, *_ = done.stdout.splitlines()
    assert row.split() == ["12345.68", "1796000000", "0.0001235", "1234.5"]


def test_a_file_of_an_unknown_format_is_refused(tmp_path: Path) -> None:
    Warehouse(tmp_path / "w.duckdb").query("select 1")
    file = tmp_path / "rows.xlsx"
    words = ["sql", "select 1", "--warehouse", str(tmp_path / "w.duckdb"), "--output", str(file)]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stdout, file.exists()) == (2, "", False)
    assert "rows.xlsx ends with no known format. Name a file that ends with .csv" in done.stderr
