"""Judges that cannot be asked, results that are partial, reports that cannot be written."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.audit import audit
from flows.publishing.served_files import reports_of
from flows.running.counts import RunCounts
from flows.running.gaps import Gap, complete_before, gaps_of, partial_judges, partial_line
from flows.studies import Study
from schemas.judging import VoteLog
from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]
Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
SMALL = (
    "audit",
    "--limit",
    "3",
    "--perturbation",
    "fake_reference",
    "--judge",
    "offline/random",
    "--judge",
    "emu/one",
)
BALLOTS = 18
"""Of each judge: control, experimental and sham of three questions, in both orders."""


@pytest.fixture
def log(make_vote_log: Make) -> Any:
    """20 ballots of ada, of which one has no vote; two of bob, one of them not needed."""
    return make_vote_log(
        [
            *({"sample": f"s{n}", "choice": None if n == 7 else "first"} for n in range(20)),
            {"judge": "bob", "choice": None, "stopped": "lossless"},
            {"judge": "bob", "sample": "s2", "choice": "invalid"},
            {"judge": "people/ann", "choice": None, "human": True},
        ],
        stopped=None,
        human=False,
    )


def test_gaps_are_counted_by_judge(log: Any) -> None:
    assert gaps_of(log) == {("ada", "plain"): Gap(1, 20), ("bob", "plain"): Gap(0, 2)}
    # 1 of 20 is no more than 5 %
    assert partial_judges(log, 0.05) == {}
    assert partial_judges(log, 0.04) == {"ada": Gap(1, 20)}


def test_complete_results_of_the_same_wave_are_not_replaced(
    log: Any, make_estimates: Make, tmp_path: Path
) -> None:
    store = Warehouse(tmp_path / "w.duckdb")
    study = Study(name="s", prompts=["plain"], gaps_allowed=0.04)
    assert complete_before(study, log, store) is None
    frames = [Saving(VoteLog, log), Saving(Estimates, make_estimates())]
    store.save(frames, run="r", study="s")
    # What stands is partial too.
    assert complete_before(study, log, store) is None
    whole = VoteLog.of(log.filter(~(log["choice"].is_null() & log["stopped"].is_null())))
    store.save([Saving(VoteLog, whole)], run="r", study="s")
    assert isinstance(complete_before(study, log, store), datetime)
    assert complete_before(study.model_copy(update={"wave": "2"}), log, store) is None
    assert complete_before(study.model_copy(update={"gaps_allowed": 0.05}), log, store) is None


def test_a_wave_without_a_vote_replaces_no_results(
    log: Any, make_estimates: Make, tmp_path: Path
) -> None:
    store = Warehouse(tmp_path / "w.duckdb")
    human = pl.col("human")
    silent = VoteLog.of(log.with_columns(choice=pl.when(human).then(pl.lit("first"))))
    nobody = silent.select("dataset", "judge", "prompt", "choice", "stopped", "human").clear()

    def counted(votes: Any) -> RunCounts:
        counts = RunCounts(Study(name="s", prompts=["plain"], wave="2"))
        counts.count_gaps(votes, store, nobody)
        return counts

    assert counted(silent).kept is None
    store.save([Saving(Estimates, make_estimates())], run="r", study="s")
    kept = counted(silent)
    assert isinstance(kept.kept, datetime)
    assert "no ballot has a vote, so the results of 20" in (kept.causes() or "")
    # A wave in which some ballots have no vote replaces them.
    assert counted(log).kept is None


def test_gaps_are_counted_by_prompt(log: Any, make_estimates: Make, tmp_path: Path) -> None:
    whole = log.filter(~(log["choice"].is_null() & log["stopped"].is_null()))
    both = VoteLog.of(pl.concat([whole, log.with_columns(prompt=pl.lit("stern"))]))
    assert partial_judges(both, 0.04) == {"ada / stern": Gap(1, 20)}
    store = Warehouse(tmp_path / "w.duckdb")
    frames = [Saving(VoteLog, VoteLog.of(whole)), Saving(Estimates, make_estimates())]
    store.save(frames, run="r", study="s")
    study = Study(name="s", prompts=["plain", "stern"], gaps_allowed=0.04)
    # Complete results with one prompt do not stand in the way of another that lacks votes.
    assert complete_before(study, both, store) is None
    lacking = VoteLog.of(pl.concat([log, whole.with_columns(prompt=pl.lit("stern"))]))
    assert complete_before(study, lacking, store) is not None


def test_partial_results_are_reported(log: Any) -> None:
    partial = partial_judges(log, 0)
    assert partial_line({}, 0, None) == ""
    # Nothing rests on the remaining votes if there are none.
    assert partial_line({"ada": Gap(20, 20)}, 0.05, None, voteless=True) == (
        "No results: ada lacks 20 of 20 ballots (gaps_allowed is 0.05 of a judge's ballots); no "
        "ballot has a vote"
    )
    reported = "ada lacks 1 of 20 ballots (gaps_allowed is 0 of a judge's ballots)"
    assert partial_line(partial, 0, None).startswith(f"Partial results: {reported}")
    saved_at = datetime(2026, 11, 20, 2, 15, tzinfo=UTC)
    assert partial_line({"ada": Gap(20, 20)}, 0.05, saved_at, voteless=True) == (
        "Results not replaced: ada lacks 20 of 20 ballots (gaps_allowed is 0.05 of a judge's "
        "ballots); no ballot has a vote, so the results of 2026-11-20 02:15 UTC stand"
    )
    kept = partial_line(partial, 0, saved_at)
    assert kept.startswith(
        f"Results not replaced: {reported}, so the complete results of 2026-11-20 "
    )


@pytest.mark.slow
@pytest.mark.served
def test_a_model_without_a_provider_is_refused_before_anything_is_asked(
    voirdire: Voirdire, emulated: Any
) -> None:
    emulated.provider()
    file = Path(emulated._folder) / "emu.toml"
    file.write_text(file.read_text().replace('"hosted_vllm/one"', '"prod-judge"'))
    for command in ("plan", "audit"):
        refused = voirdire(command, *SMALL[1:])
        assert refused.returncode == 2, refused.stderr
        said = " ".join(refused.stderr.split())
        assert "emu/one has the model 'prod-judge', which does not begin with a provider" in said
        assert "'hosted_vllm/prod-judge' or 'openai/prod-judge' as its model in emu.toml" in said
    assert emulated.stats()["requests"] == 0


@pytest.mark.slow
@pytest.mark.served
def test_a_missing_key_costs_its_judge_only(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.provider(key_variable="EMU_KEY")
    refused = voirdire("audit", "--judge", "emu/one", "--limit", "3")
    assert refused.returncode == 2
    assert "no judge can be asked. emu/one: no API key in EMU_KEY" in refused.stderr
    assert "Nothing was asked. Correct this, or choose other judges with --judge." in refused.stderr
    # A run it is, though the first, and it leaves a row.
    query = "select study, state, error from runs order by started_at"
    [first] = warehouse.query(query).rows()
    assert first[:2] == ("quick", "failed")
    assert first[2].startswith("no judge can be asked. emu/one: no API key")
    done = voirdire(*SMALL, COLUMNS="300")
    assert done.returncode == 3, done.stderr
    why = f"{BALLOTS} x not asked: no API key in EMU_KEY"
    partial = f"Partial results: emu/one lacks {BALLOTS} of {BALLOTS} ballots"
    (last,) = [line for line in done.stdout.splitlines() if line.startswith("Completed")]
    assert last.startswith(f"Completed with gaps: {partial}")
    assert why in last
    assert "Not asked, which leaves gaps where there is no earlier vote: emu/one: " in done.stderr
    state, asked, failed, error = warehouse.query(
        "select state, asked, failed, error from runs order by started_at"
    ).row(1)
    assert (state, asked, failed) == ("completed with gaps", BALLOTS, BALLOTS)
    assert why in error
    assert partial in error
    page = (reports_of(warehouse.path) / "quick.html").read_text(encoding="utf-8")
    assert f"{BALLOTS} of 36 ballots got no reply" in page
    # Nobody can be asked, and nothing is there: that is a failure, and it leaves a row.
    other = voirdire("audit", "--judge", "emu/two", "--limit", "3", "--name", "other")
    assert other.returncode == 2
    # So does a file that cannot be read.
    assert voirdire(*SMALL, "--dataset", "gone.jsonl").returncode == 2
    rows = warehouse.query(query).rows()[2:]
    assert [row[:2] for row in rows] == [("other", "failed"), ("quick", "failed")]
    assert "no judge can be asked, and no earlier vote exists" in rows[0][2]
    assert "gone.jsonl" in rows[1][2]
    # With the key the same command asks what is missing.
    whole = voirdire(*SMALL, **emulated.key)
    assert whole.returncode == 0, whole.stderr
    assert f"{BALLOTS} from the warehouse, {BALLOTS} cast" in whole.stdout
    # The votes are of a new design, half of which nobody can be asked for: what is there stands.
    before = warehouse.query("select distinct run from estimates").item()
    more = voirdire(*SMALL, "--votes", "4", COLUMNS="400")
    assert more.returncode == 3, more.stderr
    (last,) = [line for line in more.stdout.splitlines() if line.startswith("Completed")]
    assert f"Results not replaced: emu/one lacks {BALLOTS} of {2 * BALLOTS} ballots" in last
    assert warehouse.query("select distinct run from estimates").item() == before
    assert voirdire("remeasure").returncode == 0
    assert voirdire("report").returncode == 0


@pytest.mark.slow
@pytest.mark.served
def test_a_night_without_replies_keeps_the_results_of_the_night_before(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    small = [word for word in SMALL if word != "offline/random"]
    small.remove("--judge")
    results = "select distinct run, wave from estimates"
    first = voirdire(*small, "--wave", "n1")
    assert first.returncode == 0, first.stderr
    before, gate = warehouse.query(results).rows(), voirdire("gate", "quick")
    assert before
    emulated.behave(faults={"error": 1.0})
    emulated.provider(attempts=1)
    for wave in ("n2", "n3"):
        down = voirdire(*small, "--wave", wave)
        assert down.returncode == 3, down.stderr
        said = " ".join(down.stdout.split())
        assert f"Results not replaced: emu/one lacks {BALLOTS} of {BALLOTS} ballots" in said
        assert f"run the same command with --wave {wave} again" in said
        assert warehouse.query(results).rows() == before
        # The judge may have changed, as after a failed run; what is known of it can be seen.
        unknown = voirdire("gate", "quick")
        assert unknown.returncode == 2
        assert "the last run of study 'quick' got no vote (Results not replaced" in unknown.stderr
        after = voirdire("gate", "quick", "--wave", "n1")
        assert (after.returncode, after.stdout) == (gate.returncode, gate.stdout)


@pytest.mark.slow
@pytest.mark.served
def test_a_judge_that_was_down_in_an_earlier_wave_is_asked_again(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.provider(key_variable="EMU_KEY")
    assert voirdire(*SMALL, "--wave", "w1").returncode == 3
    both = voirdire(*SMALL, "--wave", "w2", **emulated.key)
    assert f"0 from the warehouse, {2 * BALLOTS} cast" in both.stdout, both.stderr
    again = voirdire(*SMALL, "--wave", "w1", **emulated.key)
    assert again.returncode == 0, again.stderr
    assert f"{BALLOTS} from the warehouse, {BALLOTS} cast" in again.stdout
    # Its ballots were drawn that day; those of another judge were not.
    late = voirdire(*SMALL, "--judge", "offline/fair", "--wave", "w1", **emulated.key)
    assert late.returncode == 2
    assert "had no part of offline/fair with prompt" in " ".join(late.stderr.split())
    counted = "select wave, count(*)::int from votes join ballots using (ballot_id) group by all"
    assert dict(warehouse.query(counted).rows()) == {"w1": 2 * BALLOTS, "w2": 2 * BALLOTS}


@pytest.mark.slow
@pytest.mark.served
def test_a_report_that_cannot_be_written_fails_no_run(
    voirdire: Voirdire, warehouse: Warehouse
) -> None:
    words = ("audit", "--limit", "3", "--judge", "offline/random")
    reports = reports_of(warehouse.path)
    # A file, as root may write into any folder.
    reports.write_text("in the way")
    done = voirdire(*words, COLUMNS="300")
    assert done.returncode == 0, done.stderr
    (last,) = [line for line in done.stdout.splitlines() if line.startswith("Completed")]
    assert last.startswith("Completed: the report")
    assert "`voirdire report quick` writes it" in last
    state, error = warehouse.query("select state, error from runs").row(0)
    assert state == "completed"
    assert "was not written: " in error
    # of four perturbations and of the position
    assert warehouse.query("select count(*) from mart.bias").item() == 5
    reports.unlink()
    assert voirdire(*words).returncode == 0
    page = reports / "quick.html"
    assert page.is_file()
    # An older report is of other results.
    os.utime(page, (0, 0))
    assert voirdire(*words).returncode == 0
    assert page.stat().st_mtime > 0


@pytest.mark.served
@pytest.mark.parametrize("word", ["perturbations", "judges"])
def test_a_form_with_an_unknown_name_leaves_a_row(
    warehouse: Warehouse,
    here: Callable[..., Any],
    environment: dict[str, str],
    tmp_path: Path,
    word: str,
) -> None:
    study = Study(name="form", **{word: ["nobody/knows"]})
    with here(tmp_path, environment):
        asyncio.run(audit(study, return_state=True))
    name, state, error = warehouse.query("select study, state, error from runs").row(0)
    assert (name, state) == ("form", "failed")
    assert "nobody/knows" in error


@pytest.mark.served
def test_what_results_need_and_cannot_be_imported_fails_the_run(
    warehouse: Warehouse,
    here: Callable[..., Any],
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> None:
        raise ImportError("no module named scipy")

    monkeypatch.setattr("flows.running.casting.prepare_results", broken)
    study = Study(name="bare", judges=["offline/random"], limit=2)
    with here(tmp_path, environment):
        asyncio.run(audit(study, return_state=True))
    state, error = warehouse.query("select state, error from runs").row(0)
    assert state == "failed"
    assert "no module named scipy" in error
