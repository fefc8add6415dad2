"""From votes in the booth to one table of judges and people."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prefect.logging import disable_run_logger
from printed_commands import in_short

from booth._booth import open_booth
from booth._voters import write_choice
from flows import calibrate as flow_of_calibrations
from flows.cli.main import main
from flows.publishing.served_files import reports_of
from flows.results.calibration import CalibrationSteps
from flows.studies.calibration import make_calibration
from schemas.judging import Pairs, Verdicts, VoteLog
from tasks.judging.people import CHOSEN
from warehouse.store import Warehouse

Audited = Callable[..., Warehouse]
LABELS = [*CHOSEN]


def remeasure(warehouse: Warehouse, *words: str) -> str:
    command = ["remeasure", "quick", "--warehouse", str(warehouse.path), *words]
    result = CliRunner().invoke(main, command, env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def voted(
    audited: Audited,
    built: dict[Any, bytes],
    copy_warehouse: Callable[[Path, bytes], None],
    tmp_path: Path,
) -> Warehouse:
    """Thirteen samples that two people have judged, each in three arms: 78 votes."""
    if "voted" in built:
        copy_warehouse(tmp_path / "v.duckdb", built["voted"])
        return Warehouse(tmp_path / "v.duckdb")
    warehouse = audited(13)
    with open_booth(warehouse, "quick", {}) as booth:
        for voter in ("ann", "ben"):
            seat = booth.seat(voter)
            for turn, ballot in enumerate(list(seat.order)):
                # Every tenth vote comes after a second, every thirteenth is "Not familiar".
                label = LABELS[3 if turn % 13 == 5 else turn % 3]
                seconds = 1.0 if turn % 10 == 7 else 20.0
                write_choice(booth.journal, seat, ballot, label, seconds)
        assert booth.close()
    built["voted"] = warehouse.path.read_bytes()
    return warehouse


@pytest.fixture
def remeasured(
    voted: Warehouse, built: dict[Any, bytes], copy_warehouse: Callable[[Path, bytes], None]
) -> Warehouse:
    """The same samples, with results by formulas of all votes."""
    if "remeasured" in built:
        copy_warehouse(voted.path, built["remeasured"])
    else:
        remeasure(voted, "--formulas")
        built["remeasured"] = voted.path.read_bytes()
    return voted


def test_people_stand_in_one_table_with_the_judges(voted: Warehouse) -> None:
    before = voted.read(VoteLog)
    said = remeasure(voted)
    # 39 ballots each: turns 7, 17, 27, 37 are too fast; 5, 18 and 31 not familiar.
    assert "2 people, 78 votes; excluded: 8 too fast (below 3 s), 6 not familiar." in said
    # Recommendations come first, and name the judges too.
    table = said.partition("padding (promote)")[2].partition("rank: 1 is the judge")[0]
    # A note below the rows names a person whose shift is significant by itself.
    rows = [row for row in table.splitlines() if not row.startswith("Note on the finding ")]
    for judge, kind in (
        ("offline/honest", "simulated"),
        ("offline/random", "simulated"),
        ("people/ann", "person"),
        ("people/ben", "person"),
        ("at random, 1 or 2 votes", ""),
    ):
        (line,) = [row for row in rows if judge in row]
        assert kind in line
    ranked = voted.query("select * from mart.ranking where study = 'quick'")
    assert ranked["judge"].sort().to_list() == [
        "offline/honest",
        "offline/random",
        "people/ann",
        "people/ben",
    ]
    assert ranked["low"].null_count() == ranked["tier"].null_count() == 0
    # The votes of models are untouched, those of people filed beside them.
    log = voted.read(VoteLog)
    assert log.filter(~log["human"]).equals(before)
    assert log.filter(log["human"]).height == 78
    assert voted.read(Verdicts)["judge"].n_unique() == 4
    rows = voted.query(
        "select invalid, abstain, valid, needed from mart.validity "
        "where judge = 'people/ann' and perturbation is null"
    ).rows()
    assert rows == [(4, 3, 32, 39)]
    assert voted.query("select sum(too_fast), sum(not_familiar) from mart.people").rows() == [
        (8, 6)
    ]


@pytest.mark.slow
def test_who_judged_one_sample_is_not_ranked_and_pushes_nobody(voted: Warehouse) -> None:
    ranked = """
        select judge, rank, low, high from mart.ranking where study = 'quick' and rank is not null
        order by judge
    """
    remeasure(voted)
    before = voted.query(ranked).rows()
    with open_booth(voted, "quick", {"limit": 3}) as booth:
        seat = booth.seat("cid")
        assert len(seat.order) == 3
        for ballot in list(seat.order):
            write_choice(booth.journal, seat, ballot, "Tie", 20.0)
        assert booth.close()
    said = remeasure(voted)
    (line,) = [line for line in said.splitlines() if "people/cid" in line and " person " in line]
    assert line.split()[:3] == ["-", "-", "people/cid"]
    assert "No finding for people/cid: 1 of 10 questions complete, 0 begun: " in said
    assert len(before) == 4
    assert voted.query(ranked).rows() == before


@pytest.mark.slow
def test_the_limit_of_time_is_an_option_and_changes_no_vote(voted: Warehouse) -> None:
    facts = "select count(*), sum(seconds) from votes"
    before = voted.query(facts).rows()
    assert "0 too fast (below 1 s)" in remeasure(voted, "--too-fast", "1", "--formulas")
    said = " ".join(remeasure(voted, "--too-fast", "30", "--formulas").split())
    assert "72 too fast (below 30 s), 6 not familiar" in said
    assert "8 too fast (below 3 s)" in remeasure(voted, "--formulas")
    assert voted.query(facts).rows() == before


@pytest.mark.slow
def test_votes_of_people_are_exported_in_a_form_that_can_be_measured(
    remeasured: Warehouse, tmp_path: Path
) -> None:
    # As in docs/how-to/own-votes.md.
    query = "select * exclude (study, run, saved_at) from vote_log where study = 'quick'"
    place, file = str(remeasured.path), tmp_path / "votes.csv"
    exported = CliRunner().invoke(
        main, ["sql", query, "--format", "csv", "--output", str(file), "--warehouse", place]
    )
    assert exported.exit_code == 0, exported.output
    measured = CliRunner().invoke(
        main, ["measure", str(file), "--only", "position_consistency", "--format", "json"]
    )
    assert measured.exit_code == 0, measured.output
    key = ("judge", "prompt", "mode", "perturbation", "subgroup")
    found = {
        tuple(row[column] for column in key): row["estimate"]
        for row in json.loads(measured.stdout)
        if row["statistic"] == "position_consistency"
    }
    saved = remeasured.query(
        f"select {', '.join(key)}, estimate from estimates where statistic = 'position_consistency'"
    )
    assert found == {row[:-1]: row[-1] for row in saved.rows()}
    assert {"people/ann", "people/ben"} < {judge for judge, *_ in found}


def test_the_report_shows_people_and_is_of_the_run_that_measured(remeasured: Warehouse) -> None:
    out = remeasured.path.with_name("quick.html")
    command = ["report", "quick", "--out", str(out), "--warehouse", str(remeasured.path)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert "people/ann" in out.read_text(encoding="utf-8")


@pytest.mark.slow
def test_votes_that_were_not_measured_are_reported_and_not_taken(
    voted: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["calibrate", "quick", "--min-instances", "5", "--warehouse", str(voted.path)]
    reported = "votes of people are newer than the results of quick. Run `voirdire remeasure quick`"
    result = CliRunner().invoke(main, [*command, "--no-save"])
    assert result.exit_code == 2
    assert f"78 {reported}" in in_short(result.stderr)
    remeasure(voted, "--formulas")
    assert reported not in in_short(CliRunner().invoke(main, [*command, "--no-save"]).stderr)
    with open_booth(voted, "quick", {}) as booth:
        seat = booth.seat("cid")
        for ballot in list(seat.order)[:12]:
            write_choice(booth.journal, seat, ballot, "Tie", 20.0)
        assert booth.close()
    result = CliRunner().invoke(main, [*command, "--no-save", "--format", "json"])
    assert f"12 {reported}" in in_short(result.stderr)
    people = {row["annotator"] for each in json.loads(result.stdout) for row in each["annotators"]}
    assert people == {"people/ann", "people/ben"}
    # As a flow too, here without Prefect around its steps, and without its server for the answer.
    monkeypatch.setattr(flow_of_calibrations, "CalibrationSteps", lambda *_: CalibrationSteps())
    monkeypatch.setattr(flow_of_calibrations, "show_answer", lambda _: None)
    with disable_run_logger():
        state = flow_of_calibrations.calibrate.fn(
            make_calibration(study="quick", min_instances=5), str(voted.path)
        )
    assert f"12 {reported}" in state.message


def test_the_judges_of_a_study_are_calibrated_by_its_voters(remeasured: Warehouse) -> None:
    command = ["calibrate", "quick", "--min-instances", "5", "--warehouse", str(remeasured.path)]
    result = CliRunner().invoke(main, [*command, "--format", "json"])
    assert result.exit_code == 0, result.output
    reported = {each["judge"]: each for each in json.loads(result.stdout)}
    assert set(reported) == {"offline/honest", "offline/random"}
    assert {row["annotator"] for row in reported["offline/honest"]["annotators"]} == {
        "people/ann",
        "people/ben",
    }
    pairs = remeasured.query("select judge, other from mart.agreement where agreement is not null")
    assert ("offline/honest", "people/ann") in pairs.rows()


def test_votes_that_do_not_count_are_named_where_no_other_is_there(voted: Warehouse) -> None:
    # 13 control pairs and two people; each votes in 20 s, or in one, or "Not familiar"
    remeasure(voted, "--formulas", "--too-fast", "25")
    done = CliRunner().invoke(main, ["calibrate", "quick", "--warehouse", str(voted.path)])
    assert done.exit_code == 2
    fast, unknown = voted.query(
        "select sum(too_fast), sum(not_familiar) from mart.people where arm = 'control'"
    ).row(0)
    assert fast + unknown == 26
    assert in_short(done.stderr).startswith(
        "voirdire: judges and people cannot be compared: none of the 26 votes of people on "
        f"unperturbed pairs of 'quick' counts ({fast} too fast, {unknown} not familiar). Collect "
    )


@pytest.mark.slow
def test_a_booth_that_is_partly_done_names_the_missing_votes(audited: Audited) -> None:
    warehouse = audited(13)
    with open_booth(warehouse, "quick", {}) as booth:
        for voter, arms in (("ann", ("control",)), ("ben", ("experimental", "sham"))):
            seat = booth.seat(voter)
            arm_of = dict(warehouse.read(Pairs).select("pair_id", "arm").iter_rows())
            shown = dict(seat.every.select("ballot_id", "pair_id").iter_rows())
            chosen = [ballot for ballot in seat.order if arm_of[shown[ballot]] in arms]
            for ballot in chosen[:4]:
                write_choice(booth.journal, seat, ballot, LABELS[0], 20.0)
        booth.close()
    said = " ".join(remeasure(warehouse).split())
    # Of three arms the ten most complete samples lack 4 x 2 + 6 x 3 votes.
    reported = (
        "0 of 10 questions complete, 4 begun: a shift takes this person's votes on every version of"
        " an answer; at least 26 more ballots"
    )
    # Who voted on unperturbed pairs only has no row in the table.
    assert f" people/ann, padding: {reported}. " in said
    assert f"No finding for people/ben: {reported}." in said
    assert "No rank for people" not in said
    assert "nothing qualifies" not in said
    path = reports_of(warehouse.path) / "quick.html"
    assert CliRunner().invoke(main, ["report", "quick", "--warehouse", str(warehouse.path)])
    page = " ".join(path.read_text(encoding="utf-8").split())
    assert "of 2 people" not in page
    assert "people whose votes do not suffice" in page
    command = ["calibrate", "quick", "--warehouse", str(warehouse.path)]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "needs labels of two people or more" in " ".join(done.output.split())
