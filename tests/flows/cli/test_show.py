"""``voirdire show``: the texts behind a finding, as a user reads them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from printed_commands import in_short

from flows.cli.main import main
from flows.running.run_row import first_row, row_without_calls
from flows.studies import make_study
from flows.studies.calibration import make_calibration
from schemas.calibration import Disagreements, Ratings
from schemas.judging import Shifts, VoteLog
from warehouse.evidence.comparisons import Filters, list_comparisons
from warehouse.store import Saving, Warehouse

Make = Callable[..., pl.DataFrame]
Run = Callable[..., Result]
pytestmark = pytest.mark.usefixtures("measured")
JSON = ("--format", "json")
TEXTS = {"question": "Why \x1b[31mis it?", "answer": "[bold]So[/bold]."}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return what runs ``voirdire show`` on a warehouse, without terminal."""

    def show(*words: str) -> Result:
        place = ["--warehouse", str(tmp_path / "w.duckdb")]
        return CliRunner().invoke(main, ["show", *words, *place], catch_exceptions=False)

    return show


@pytest.fixture
def measured(tmp_path: Path, make_vote_log: Make, make_shifts: Make) -> None:
    """Save a study of votes that were collected elsewhere."""
    warehouse = Warehouse(tmp_path / "w.duckdb")
    shifts = make_shifts(
        [
            {"sample": f"s{n}", "control": "anchor", "experimental": "target" if n else "anchor"}
            for n in range(4)
        ],
        perturbation="boast",
    )
    item = {
        "dataset": "demo",
        "judge": "ada",
        "prompt": "none",
        "wave": "",
        "rank": 1,
        "item": "i1",
        "human_label": "pass",
        "judge_label": "fail",
        "gap": 1.0,
        "people": 1,
        "human_share": 1.0,
        "texts": json.dumps(TEXTS),
    }
    lesser = item | {"rank": 2, "item": "i2", "texts": "{}"}
    disagreements = Disagreements.of(pl.DataFrame([item, lesser]))
    frames = [(VoteLog, make_vote_log([{}])), (Shifts, shifts), (Disagreements, disagreements)]
    warehouse.save([Saving(*frame) for frame in frames], run="r1", study="mine")  # type: ignore[arg-type]


def test_evidence_under_several_prompts_is_drawn_the_same_each_time(
    run: Run, tmp_path: Path, make_shifts: Make
) -> None:
    """Shifts alike but for their prompts, saved again in another order."""
    rows = [
        {"sample": f"s{n}", "prompt": f"p{at}", "control": "anchor", "experimental": "target"}
        for n in range(3)
        for at in range(4)
    ]
    found = []
    for order in (rows, rows[::-1]):
        shifts = Saving(Shifts, make_shifts(order, perturbation="boast"))
        Warehouse(tmp_path / "w.duckdb").save([shifts], run="r1", study="several")
        shown = json.loads(run("several", *JSON).stdout)
        found.append([(row["prompt"], row["sample"]) for row in shown])
    assert len(found[0]) == 10
    assert found[0] == found[1]


@pytest.mark.parametrize("state", ["killed", "cancelled", "running"])
def test_a_study_whose_only_run_has_no_results_has_the_hint_of_the_gate(
    run: Run, tmp_path: Path, state: str
) -> None:
    path = tmp_path / "w.duckdb"
    row = first_row("audit", "r1", make_study("quick", {}), datetime.now(UTC))
    Warehouse(path).start_run({**row, "state": state})
    shown = run("quick")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "study 'quick' has no results, because its last run " in shown.stderr
    assert "repeat the audit: `voirdire audit quick" in shown.stderr
    gated = CliRunner().invoke(main, ["gate", "quick", "--warehouse", str(path)])
    assert gated.stderr == shown.stderr
    words = ["sql", "--ask", "which_judge", "--set", "study=quick", "--warehouse", str(path)]
    asked = " ".join(CliRunner().invoke(main, words).stderr.split()).lower()
    assert shown.stderr.removeprefix("voirdire: ").strip().lower() in asked


@pytest.mark.parametrize("view", [(), ("--invalid",), ("--moved",), ("--changed",)])
def test_a_study_without_a_vote_says_why_and_what_to_do(
    run: Run, tmp_path: Path, make_vote_log: Make, make_shifts: Make, view: tuple[str, ...]
) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb")
    error = "18 x no connection to 127.0.0.1:9"
    row = first_row("audit", "r2", make_study("quick", {"limit": 7}), datetime.now(UTC))
    warehouse.start_run({**row, "state": "completed with gaps", "error": error})
    silent = make_vote_log([{"choice": None}])
    shifts = make_shifts([{"control": None, "experimental": None}], perturbation="boast")
    saved = [Saving(VoteLog, silent), Saving(Shifts, shifts)]
    warehouse.save(saved, run="r2", study="quick")
    assert run("quick", *view).stdout == (
        "No vote of study quick is saved, so there is nothing to show. Study 'quick' has no "
        f"results, because its last run left none ({error}). Correct the cause and repeat the "
        f"audit: `voirdire audit quick --limit 7 --warehouse {warehouse.path}`; no ballot that has "
        "a vote is asked again.\n"
    )


def test_a_judge_without_a_vote_is_told_from_one_that_nothing_changed(
    run: Run, tmp_path: Path, make_vote_log: Make, make_shifts: Make
) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb")
    log = make_vote_log([{"judge": "bea", "choice": None}, {"judge": "cy"}])
    shifts = make_shifts([{"judge": name} for name in ("bea", "cy")], perturbation="boast")
    saved = [Saving(VoteLog, log), Saving(Shifts, shifts)]
    warehouse.save(saved, run="r2", study="quick")
    assert run("quick", "--judge", "bea").stdout == (
        "No vote of bea is saved, so there is nothing to show: `voirdire audit quick --warehouse "
        f"{warehouse.path}` asks only for the votes that are missing.\n"
    )
    assert run("quick", "--judge", "cy").stdout == "No perturbation changed a verdict of cy.\n"


def test_flips_are_drawn_the_same_each_time(run: Run) -> None:
    one, again = run("mine", "--most", "2"), run("mine", "--most", "2")
    assert one.exit_code == 0
    assert one.stdout == again.stdout
    assert one.stdout.count("anchor -> target") == 2
    assert "collected elsewhere" in one.stdout
    assert "2 of 3, drawn at random" in one.stdout
    assert "s0" in run("mine", "--all").stdout
    whole = json.loads(run("mine", "--format", "json").stdout)
    assert sorted(row["sample"] for row in whole) == ["s1", "s2", "s3"]
    only = json.loads(run("mine", "--pair", "s2", "--format", "json").stdout)
    assert [row["sample"] for row in only] == ["s2"]


@pytest.mark.parametrize("question", ["7", "demo/7"])
def test_a_question_is_named_as_in_the_data_of_the_user(
    run: Run, tmp_path: Path, make_vote_log: Make, make_shifts: Make, question: str
) -> None:
    path, samples = tmp_path / "w.duckdb", {"demo/7/x": "7", "demo/7/y": "7", "demo/77/x": "77"}
    votes = [{"sample": each, "cluster": f"demo/{number}"} for each, number in samples.items()]
    turned = {"control": "anchor", "experimental": "target"}
    shifts = make_shifts([{"sample": each, **turned} for each in samples], perturbation="boast")
    frames = [Saving(VoteLog, make_vote_log(votes)), Saving(Shifts, shifts)]  # type: ignore[arg-type]
    Warehouse(path).save(frames, run="r2", study="asked")
    found = run("asked", "--pair", question, *JSON)
    assert found.exit_code == 0, found.output
    assert sorted(row["sample"] for row in json.loads(found.stdout)) == ["demo/7/x", "demo/7/y"]
    browsed = list_comparisons(Warehouse(path), Filters("asked", sample=question), 0)
    assert sorted(row["sample"] for row in browsed.rows) == ["demo/7/x", "demo/7/y"]
    # That nothing of the question is flipped does not make it unknown.
    assert run("asked", "--pair", question, "--invalid").exit_code == 0
    assert "no sample, pair_id or question '8'" in run("asked", "--pair", "8").stderr


@pytest.mark.parametrize(
    ("words", "filters"),
    [
        ([], {"flipped": True}),
        (["--all"], {}),
        (["--judge", "ada", "--perturbation", "boast"], {"judge": "ada", "flipped": True}),
        (["--prompt", "plain"], {"prompt": "plain", "flipped": True}),
        (["--prompt", "own"], {"prompt": "own", "flipped": True}),
        (["--prompt", "own@1a2b3c4d"], {"prompt": "own@1a2b3c4d", "flipped": True}),
        (["--pair", "s2"], {"sample": "s2", "flipped": True}),
    ],
)
def test_filters_select_what_they_select_in_the_browser(
    run: Run, tmp_path: Path, make_shifts: Make, words: list[str], filters: dict[str, Any]
) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb")
    flip = {"control": "anchor", "experimental": "target", "perturbation": "boast"}
    flips = make_shifts([{**flip, "sample": "s2"}, {**flip, "sample": "s7"}], prompt="own@1a2b3c4d")
    one = {"sample": "s0", "control": "anchor", "experimental": "anchor", "perturbation": "boast"}
    kept = [make_shifts([{**flip, "sample": f"s{n}"} for n in (1, 2, 3)]), make_shifts([one])]
    rows = Shifts.of(pl.concat([*kept, flips]))
    warehouse.save([Saving(Shifts, rows)], run="r2", study="both")
    listed = list_comparisons(warehouse, Filters("both", **filters), 0).rows
    shown = json.loads(run("both", *words, "--format", "json").stdout)
    key = ("judge", "prompt", "perturbation", "sample")
    assert {tuple(row[name] for name in key) for row in shown} == {
        tuple(row[name] for name in key) for row in listed
    }
    assert len(shown) == len(listed) > 0


def test_each_flip_names_its_wave_and_another_wave_can_be_chosen(
    run: Run, tmp_path: Path, make_shifts: Make
) -> None:
    warehouse, now = Warehouse(tmp_path / "w.duckdb"), datetime.now(UTC)
    for wave in ("n1", "n2", "n3"):
        audit = first_row("audit", wave, make_study("quick", {"wave": wave}), now)
        warehouse.start_run({**audit, "study": "nights", "state": "completed", "ended_at": now})
    flip = {"control": "anchor", "experimental": "target", "perturbation": "boast"}
    flips = make_shifts([{**flip, "sample": f"s{n}", "wave": f"n{n}"} for n in (2, 3)])
    warehouse.save([Saving(Shifts, Shifts.of(flips))], run="n3", study="nights")
    shown = run("nights").stdout
    assert {"1 of 2  ada, wave n2", "2 of 2  ada, wave n3"} == {
        line.partition("  boast")[0] for line in shown.splitlines() if " of 2  " in line
    }
    assert (
        "results of wave n2 and n3. The warehouse also has the votes of other waves (n1)"
        in " ".join(shown.split())
    )
    only = json.loads(run("nights", "--wave", "n3", "--format", "json").stdout)
    assert [row["sample"] for row in only] == ["s3"]
    done = run("nights", "--wave", "n1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "`voirdire audit nights --wave n1`, which asks no judge again" in in_short(done.stderr)
    assert "Known: n2, n3." in run("nights", "--wave", "m2").stderr


def test_disagreements_of_two_calibrations_name_theirs(run: Run, tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb")
    rows = warehouse.read(Disagreements).head(1)
    warehouse.save([Saving(Disagreements, rows)], run="r9", study="mine-people")
    calibration = make_calibration(study="mine", name="mine-people")
    warehouse.start_run(row_without_calls("calibrate", calibration, "r9"))
    shown = run("mine", "--disagree").stdout
    assert "(calibration mine)" in shown
    assert "(calibration mine-people)" in shown


def test_disagreements_show_texts_without_what_controls_a_terminal(run: Run) -> None:
    shown = run("mine", "--disagree", "--most", "1").stdout
    assert "i1: people: pass, judge: fail" in shown
    assert "1 of 2, the worst first" in shown
    assert "random" not in shown
    assert "[bold]So[/bold]." in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["mien"], "w.duckdb. Did you mean 'mine'? Known: mine."),
        (["mine", "--judge", "adda"], "Did you mean 'ada'?"),
        (["mine", "--all", "--invalid"], "--invalid and --all cannot be given together"),
        (["mine", "--perturbation", "bost"], "Did you mean 'boast'?"),
        (
            ["mine", "--pair", "s11"],
            "no sample, pair_id or question 's11' in study 'mine'. Did you mean 's1'? Known: s1, ",
        ),
        (["mine", "--pair", "s11", "--format", "json"], "Did you mean 's1'?"),
        (
            ["mine", "--disagree", "--pair", "i11"],
            "no sample or item with differing labels 'i11' in study 'mine'.",
        ),
    ],
)
def test_a_name_that_is_not_there_is_an_error(run: Run, words: list[str], says: str) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_vote_without_a_verdict_is_counted_though_its_reply_is_unknown(
    run: Run, tmp_path: Path, make_vote_log: Make
) -> None:
    votes = make_vote_log([{"choice": "invalid"}, {"repeat": 1}])
    Warehouse(tmp_path / "w.duckdb").save(
        [Saving(VoteLog, VoteLog.of(votes))], run="r2", study="mine"
    )
    unknown = "1 vote has no verdict. The replies are unknown: these votes were collected elsewhere"
    shown = run("mine", "--invalid").stdout
    assert unknown in shown
    assert "Every reply" not in shown
    assert unknown in run("mine").stdout


def test_nothing_found_is_said(run: Run) -> None:
    shown = run("mine", "--invalid").stdout
    assert "Every reply to study mine has a verdict." in shown
    assert "A perturbation changed 3 verdicts. To see them: `voirdire show mine --ware" in shown
    assert (
        "No perturbation changed a verdict of ada on s0."
        in run("mine", "--judge", "ada", "--pair", "s0").stdout
    )
    # Nothing was measured twice, so no sentence is about a wave.
    unmeasured = run("mine", "--changed").stdout
    assert unmeasured.startswith("Drift compares two waves of study mine that asked")


def test_grades_that_moved_are_counted_though_no_verdict_changed(
    run: Run, tmp_path: Path, make_ratings: Make
) -> None:
    given = [(6.0, 7.0), (5.0, 2.5), (4.0, 4.0), (8.0, 8.0), (3.0, None)]
    ratings = make_ratings(
        [
            {"sample": f"g{n}", "judge": judge, "arm": arm, "value": value}
            for judge in ("ada", "bea")
            for n, pair in enumerate(given)
            for arm, value in zip(("control", "experimental"), pair, strict=True)
            if judge == "ada" or n in {2, 3}
        ]
    )
    warehouse = Warehouse(tmp_path / "w.duckdb")
    warehouse.save([Saving(Ratings, Ratings.of(ratings))], run="r3", study="grades")
    first, unread = run("grades").stdout.splitlines()
    moved = "2 of 6 grades of study grades moved with a perturbation, by at most 2.5."
    assert first.startswith(f"{moved} To see them, the furthest first: `voirdire show grades --mov")
    assert unread.startswith("1 vote has no verdict.")
    shown = run("grades", "--all").stdout
    assert "ada  boast, repeat 1: 6 -> 7" in shown
    still = run("grades", "--judge", "bea").stdout
    assert still == "None of 2 grades of bea moved with a perturbation.\n"
    of_pair = run("grades", "--pair", "g0").stdout
    assert "1 of 1 grade of study grades on g0 moved with a perturbation, by at most 1." in of_pair
    assert "grade" not in run("mine").stdout
    # The furthest first, as on the page; what did not move is not there.
    furthest = [row["sample"] for row in json.loads(run("grades", "--moved", *JSON).stdout)]
    listed = list_comparisons(warehouse, Filters("grades", moved=True), 0).rows
    assert furthest == [row["sample"] for row in listed] == ["g1", "g0"]
    one = run("grades", "--moved", "--most", "1").stdout
    assert "1 of 2  ada  boast, repeat 1: 5 -> 2.5" in one
    assert "1 of 2, the furthest first; --most 2 shows all." in one
    of_bea = run("grades", "--moved", "--judge", "bea").stdout
    assert of_bea == "No perturbation moved a grade of bea.\n"
    of_verdicts = run("mine", "--moved").stdout
    assert "No perturbation moved a grade of study mine.\nA perturbation changed 3" in of_verdicts
