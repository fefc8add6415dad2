"""The audit as a user runs it, offline: plant a bias, recover it in the marts."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from waiting import PATIENCE_SECONDS

from flows.publishing.served_files import reports_of
from schemas.judging import Votes
from tasks.reporting.wording import number
from warehouse.store import Warehouse

Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.served


@pytest.mark.slow
def test_no_python_of_the_folder_is_run_and_a_second_run_asks_nothing(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path, environment: dict[str, str]
) -> None:
    small = ("audit", "--limit", "3", "--judge", "offline/honest")
    trap = tmp_path / "trap" / "litellm"
    trap.mkdir(parents=True)
    (trap / "__init__.py").write_text("raise SystemExit('litellm was imported')")
    path = os.pathsep.join([str(trap.parent), environment["PYTHONPATH"]])
    # Modules of the product, of the standard library, and one that a library imports if it can.
    here = [tmp_path / f"{name}.py" for name in ("tasks", "flows", "json", "re2")]
    for file in here:
        file.write_text("from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n")
    # A simulated judge needs no litellm either; the server and the worker are of this run.
    done = subprocess.run(
        [Path(sys.executable).parent / "voirdire", *small],
        cwd=tmp_path,
        env={k: v for k, v in environment.items() if k != "PREFECT_API_URL"} | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert "quick.html" in done.stdout, done.stderr
    assert [*tmp_path.glob("*.ran")] == []
    for file in here:
        file.unlink()
    first = warehouse.read(Votes)
    report = tmp_path / "reports" / "quick.html"
    report.unlink()
    done = voirdire(*small, PREFECT_API_URL="http://127.0.0.1:9/api")
    assert done.returncode == 0, done.stderr
    # control, and four perturbations with an experimental and a sham arm: 9 pairs x 3 x 2 votes
    assert "54 ballots: 54 from the warehouse, 0 cast" in done.stdout
    assert "the earlier results are shown" in " ".join(done.stdout.split())
    assert report.is_file()
    # Cached results of a month ago, some of which are not used again.
    kept = [file for file in tmp_path.glob("prefect/storage/**/*") if file.is_file()]
    aged = kept[0].with_name("aged")
    aged.write_bytes(kept[0].read_bytes())
    moment = time.time() - 31 * 86400
    for file in (aged, *kept):
        os.utime(file, (moment, moment))
    # under another name the same ballots are asked about, so there is nothing to ask either
    again = voirdire(*small, "--name", "again")
    assert again.returncode == 0, again.stderr
    # Stages whose inputs do not have the name of the study used their results.
    assert any(file.exists() for file in kept)
    assert not aged.exists()
    assert "54 ballots: 54 from the warehouse, 0 cast" in again.stdout
    assert warehouse.read(Votes).equals(first)
    runs = warehouse.query(
        "select state, planned, from_warehouse, asked, failed, cost_usd, study "
        "from runs order by started_at"
    ).rows()
    assert runs == [
        ("completed", 54, 0, 54, 0, 0.0, "quick"),
        ("completed", 54, 54, 0, 0, 0.0, "quick"),
        ("completed", 54, 54, 0, 0, 0.0, "again"),
    ]
    cached = warehouse.query(
        "select study, cached, needed from mart.validity where perturbation is null order by study"
    )
    assert cached.rows() == [("again", 54, 54), ("quick", 0, 54)]
    # The trap works.
    imported = subprocess.run(
        [sys.executable, "-c", "import litellm"],
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (imported.returncode, imported.stderr) == (1, "litellm was imported\n")


@pytest.mark.slow
@pytest.mark.charts
def test_paper_study_and_an_empty_one(voirdire: Voirdire, warehouse: Warehouse) -> None:
    done = voirdire("audit", "paper", "--limit", "12", "--judge", "offline/positional")
    assert done.returncode == 0, done.stderr
    row = warehouse.query("select * from mart.bias").to_dicts()[0]
    assert (row["mode"], row["votes_per_pair"]) == ("paper", 6)
    # As in the paper there are no shams: control and four perturbed pairs, 6 votes each
    assert (row["statistic"], row["shift"]) == ("mps", row["control"])
    assert "360 ballots: 0 from the warehouse, 360 cast" in done.stdout
    # kappa 3 (offline.toml): the first slot wins nearly always, and random positions show it
    assert row["position_consistency"] < 0.5
    page = (reports_of(warehouse.path) / "paper.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 9
    assert "offline/positional / " not in page
    empty = voirdire(
        "audit", "--dataset", str(_own(warehouse.path.parent)), "--perturbation", "gender_bias"
    )
    assert empty.returncode == 2
    said = " ".join(empty.stderr.split())
    assert "own.jsonl has no filled column gender_bias; only the data can bring this" in said


@pytest.mark.slow
def test_shams_are_left_out_or_taken_both(voirdire: Voirdire, warehouse: Warehouse) -> None:
    words = (
        "audit",
        "--limit",
        "12",
        "--judge",
        "offline/honest",
        "--perturbation",
        "fake_reference",
    )
    bias = "select perturbation, statistic, shift = control as same from mart.bias "
    bias += "where study = ? and kind = 'promote' order by perturbation"
    without = voirdire(*words, "--sham", "none", "--name", "none")
    # Control and the perturbed pair in two orders: two thirds of what one sham takes
    assert "48 ballots: 0 from the warehouse, 48 cast" in without.stdout, without.stderr
    assert warehouse.query(bias, ["none"]).rows() == [("fake_reference", "mps", True)]
    assert "toward the changed answer, compared with the unchanged answer" in " ".join(
        without.stdout.split()
    )
    # Two shams more, and no other ballot is asked again
    both = voirdire(*words, "--sham", "both", "--name", "both")
    assert "96 ballots: 48 from the warehouse, 48 cast" in both.stdout, both.stderr
    names = ("fake_reference", "fake_reference/second")
    assert warehouse.query(bias, ["both"]).rows() == [(name, "mps_sham", False) for name in names]
    ((reported, expected),) = warehouse.query(
        "select d.estimate, a.shift - b.shift from estimates as d, mart.bias as a, mart.bias as b "
        "where d.statistic = 'sham_difference' and d.subgroup = '' "
        "and a.study = 'both' and a.perturbation = ? and b.study = 'both' and b.perturbation = ?",
        names,
    ).rows()
    assert reported == pytest.approx(expected)
    assert reported != 0


@pytest.mark.charts
def test_everything_is_in_the_warehouse_the_report_and_the_ui(
    voirdire: Voirdire,
    warehouse: Warehouse,
    environment: dict[str, str],
    ask_server: Callable[..., Any],
    errors_of: Callable[[str], list[str]],
) -> None:
    done = voirdire("audit", "--limit", "6", "--name", "looked_at")
    assert done.returncode == 0, done.stderr
    planned = voirdire("plan", "looked_at")
    assert planned.returncode == 0, planned.stderr
    heading = "Further questions that would decide the open gates of study looked_at"
    assert heading in planned.stdout
    judges = re.findall(r"^- (\S+):", planned.stdout, re.MULTILINE)
    assert len(judges) == 5
    said = " ".join(planned.stdout.split())
    assert "More questions decide on which side of its limit an estimate lies; the" in said
    assert planned.stdout.startswith(heading)
    assert re.search(r"All \d+ ballots of this plan have votes: an audit asks nothing\.", said)
    # The results are of 6 questions, also where the plan is for more.
    larger = " ".join(voirdire("plan", "looked_at", "--limit", "60").stdout.split())
    assert "The dataset has " in larger
    assert "questions of the dataset are asked" not in larger
    # Ballots of further questions are not what the study lacks.
    assert "no reply yet" not in larger
    # Only of the judges and judge prompts that are planned for.
    one = voirdire("plan", "looked_at", "--judge", judges[0]).stdout
    assert re.findall(r"^- (\S+):", one, re.MULTILINE) == judges[:1]
    assert heading not in voirdire("plan", "looked_at", "--prompt", "pair_v1").stdout
    run = warehouse.query("select run from runs").item()
    assert errors_of(run) == []
    tables = (
        "questions",
        "answers",
        "versions",
        "perturbations",
        "perturbed_answers",
        "pairs",
        "judges",
        "prompts",
        "ballots",
        "votes",
        "vote_log",
        "verdicts",
        "shifts",
        "estimates",
        "findings",
        "runs",
    )
    for table in tables:
        assert warehouse.query(f"select count(*) from {table}").item() > 0, table
    report = Path(environment["VOIRDIRE_WAREHOUSE"]).parent / "reports" / "looked_at.html"
    page = report.read_text(encoding="utf-8")
    assert "All judges are simulated" in page
    assert page.count("<svg") >= 9  # two charts of four panels, and the position plane
    again = voirdire("report", "looked_at", "--out", "again.html")
    assert again.returncode == 0, again.stderr
    assert (report.parents[1] / "again.html").read_text(encoding="utf-8") == page
    # The server has those of other tests too.
    artifacts = ask_server("/artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run]}}})
    by_key = {artifact["key"]: artifact for artifact in artifacts}
    assert {"answer", "ballots"} <= by_key.keys()
    advised = warehouse.query("select judge, recommendation from mart.recommendations").rows()
    assert len(advised) == 5
    for judge, recommendation in advised:
        line = f" {judge} (simulated): **{recommendation}**. "
        assert line in by_key["answer"]["data"], by_key["answer"]["data"]
        assert f"{judge} (simulated)" in by_key["answer"]["description"]
    bias = warehouse.query(
        "select judge, perturbation, shift, coalesce(finding, reason) as finding from mart.bias"
    )
    for judge, perturbation, shift, finding in bias.drop_nulls("perturbation").rows():
        row = next(
            line
            for line in by_key["answer"]["data"].splitlines()
            if line.startswith(
                f"| {judge} (simulated) | {perturbation.replace('_', chr(92) + '_')} |"
            )
        )
        assert f"| {number(shift)} \\[" in row
        assert row.endswith(f"| {finding} |")
    shown = voirdire("sql", "select judge, finding from mart.bias", "--format", "json")
    # five judges, each with four perturbations and its position
    assert len(json.loads(shown.stdout)) == 25


@pytest.mark.slow
def test_changed_file_of_ones_own_is_read_again(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    words = (
        "audit",
        "--dataset",
        "own.jsonl",
        "--judge",
        "offline/random",
        "--name",
        "own",
        "--perturbation",
        "fake_reference",
    )
    asked = {"question_id": "q1", "question": "Why is the sky blue?"}
    answers = {"anchor": "Air scatters blue light.", "target": "Blue light is scattered more."}
    (tmp_path / "own.jsonl").write_text(json.dumps({**asked, **answers}))
    assert voirdire(*words).returncode == 0
    changed = {**asked, **answers, "anchor": "It reflects the sea."}
    (tmp_path / "own.jsonl").write_text(json.dumps(changed))
    refused = voirdire(*words)
    assert refused.returncode == 2
    assert "facts never change. Give the new version a new name" in refused.stderr
    assert "another question_id for each changed row" in " ".join(refused.stderr.split())
    assert "reflects" not in str(warehouse.query("select answer from answers").rows())
    (tmp_path / "own.jsonl").write_text(json.dumps({**changed, "question_id": "q2"}))
    assert "6 ballots: 0 from the warehouse, 6 cast" in voirdire(*words).stdout


@pytest.mark.slow
def test_exported_votes_measure_the_same(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    assert voirdire("audit", "--limit", "12", "--judge", "offline/gullible").returncode == 0
    log = warehouse.query("select * exclude (study, run, saved_at) from vote_log")
    log.write_ndjson(tmp_path / "votes.jsonl")
    done = voirdire("measure", "votes.jsonl", "--format", "json")
    ours = warehouse.query("select * exclude (study, run, saved_at) from estimates")
    theirs = pl.DataFrame(json.loads(done.stdout), schema=ours.schema)
    key = ["statistic", "judge", "perturbation"]
    assert theirs.sort(key).equals(ours.sort(key))


@pytest.mark.slow
def test_study_of_people_and_models_runs_through_the_same_command(
    voirdire: Voirdire, warehouse: Warehouse, reference_data: Path
) -> None:
    folder = reference_data / "bias_study"
    done = voirdire(
        "audit",
        "--dataset",
        "humans_or_llms",
        "--folder",
        str(folder),
        "--checks",
        "flag",
        "--judge",
        "offline/honest",
        "--name",
        "public",
    )
    assert done.returncode == 0, done.stderr
    samples = warehouse.query(
        "select perturbation, count(distinct cluster) from pairs where arm = 'experimental' "
        "group by all order by all"
    ).rows()
    # flag: also the two questions whose answers are identical, and versions that fail a check
    assert samples == [
        ("factual_error", 142),
        ("fake_reference", 142),
        ("gender_bias", 142),
        ("rich_content", 142),
    ]
    # four perturbations and the position
    assert warehouse.query("select count(*) from mart.bias").item() == 5


def _own(folder: Path) -> Path:
    path = folder / "own.jsonl"
    path.write_text('{"question_id": "1", "question": "Why?", "anchor": "So.", "target": "Thus."}')
    return path


def test_what_a_data_file_knows_of_its_pairs_reaches_the_statistics(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    rows = [
        {
            "question_id": f"q{number}",
            "question": f"What is {number} + 2?",
            "anchor": f"It is {number + 2}.",
            "target": f"The sum is {number + 2}, as {number} and 2 make {number + 2}.",
            "anchor_author": ("ada", "bob")[number % 2],
            "target_author": ("bob", "ada")[number % 2],
            "label": "target",
            "human_score": (0, 1, 0.5)[number % 3],
            "label_chance": 1,
        }
        for number in range(12)
    ]
    (tmp_path / "known.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ("--dataset", "known.jsonl", "--perturbation", "fake_reference", "--name", "known")
    done = voirdire("audit", *words, "--judge", "offline/honest")
    assert done.returncode == 0, done.stderr
    shown = "if(shown_first = 'anchor', 'second', 'first')"
    [(right, votes)] = warehouse.query(
        f"select count(*) filter (choice = {shown}), count(*) from vote_log where arm = 'control'"
    ).rows()
    estimates = dict(
        warehouse.query(
            "select statistic, any_value(estimate) from estimates "
            "where perturbation is null and subgroup in ('', 'ada') group by statistic"
        ).rows()
    )
    assert votes == 24
    assert estimates["accuracy"] == pytest.approx(right / votes)
    # Each pair has both models, so what one wins the other loses; people prefer neither.
    wins = warehouse.query(
        "select estimate from estimates where statistic = 'win_rate' and subgroup in ('ada', 'bob')"
    )
    assert wins["estimate"].sum() == pytest.approx(1)
    assert estimates["human_win_rate"] == pytest.approx(0.5)
    assert estimates["ppi_win_rate"] is not None
