"""Drift from votes in the warehouse: what a night's run finds there."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from flows.results.drift import drift_line, drift_of
from flows.results.remeasure import remeasure_study
from flows.running.ballots import make_pairs
from flows.running.run_row import first_row
from flows.studies import STUDIES, Study
from schemas.curation import Questions
from schemas.judging import Ballots, Judges, Pairs, Prompts, StudyPairs, Verdicts, VoteLog, Votes
from schemas.results import Drifts
from tasks.aggregate import count_votes
from tasks.counting.verdicts import tally_votes
from tasks.curate import import_dataset
from tasks.drift.alerts import WaveVotes, measure_wave
from tasks.engine.litellm_adapter import refused_params
from tasks.judge import Design, draw_ballots, judge_table, prompt_table
from tasks.kit import stage
from tasks.kit.defaults import Thresholds
from tasks.kit.stage import cached_function
from tasks.providers import JUDGES
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]
JUDGE = "offline/honest"


@pytest.fixture
def nights(tmp_path: Path, make_votes: Make) -> Callable[[list[str]], Any]:
    """Cast a night's votes of 12 questions as each letter says: a anchor, t target, else a tie.

    s asks every other pair once in each order (target); the rest twice, tied and then the anchor.
    """

    def cast(verdicts: list[str]) -> tuple[Study, Warehouse]:
        warehouse = Warehouse(tmp_path / "v.duckdb")
        study = Study(judges=[JUDGE], perturbations=["rich_content"], limit=12, votes_per_pair=4)
        pairs = make_pairs(study).shown
        frames = (
            (Questions, import_dataset(study.dataset, study.folder, study.limit)[0]),
            (Judges, judge_table(study.judges)),
            (Prompts, prompt_table(study.prompts)),
            (Pairs, pairs),
            (StudyPairs, pairs),
        )
        warehouse.save([Saving(*each) for each in frames], run="r", study=study.name)
        arms = pairs.select("pair_id", "arm", odd=pl.col("sample").rank("dense") % 2 == 1)
        asking = ["ballot_id", "arm", "shown_first", "odd", "repeat"]
        for night, verdict in enumerate(verdicts):
            # Later nights have earlier names, lest the order of names be that of time.
            wave = f"night {9 - night}"
            design = Design(study.votes_per_pair, study.mode, wave, study.seed)
            ballots = draw_ballots(pairs, judge_table(study.judges), study.prompts[0], design)
            placed = ballots.unique("ballot_id", maintain_order=True).join(arms, on="pair_id")
            rows = [
                {
                    "ballot_id": ballot,
                    "choice": _choice(letter, first),
                    "cast_at": datetime(2024, 1, 1 + night, tzinfo=UTC),
                    "first_token": "A",
                    "first_probability": 0.75 if night < 4 else 0.25,
                }
                for ballot, arm, first, odd, repeat in placed.select(asking).rows()
                if (letter := _letter(verdict, arm, repeat, odd=odd))
            ]
            warehouse.save([Saving(Ballots, ballots), Saving(Votes, make_votes(rows))], run="r")
        return study.model_copy(update={"wave": wave}), warehouse

    return cast


def _letter(verdict: str, arm: str, repeat: int, *, odd: bool) -> str | None:
    if arm != "experimental":
        return "-"
    if verdict != "s":
        return verdict
    return ("t", None)[repeat] if odd else ("-", "a")[repeat]


def _choice(verdict: str, shown_first: str) -> str:
    sides = {"a": "anchor", "t": "target"}
    if verdict not in sides:
        return "tie"
    return "first" if sides[verdict] == shown_first else "second"


def test_a_change_is_found_confirmed_and_reported(nights: Any) -> None:
    study, warehouse = nights(["a", "a", "t", "t", "t"])
    found = drift_of(study, warehouse)
    mps = found.filter(measure="mps_drift").sort("wave", descending=True)
    assert mps.select("wave", "epoch", "estimate", "state").rows() == [
        ("night 8", 1, 0.0, "quiet"),
        ("night 7", 1, 1.0, "suspect"),
        ("night 6", 1, 1.0, "alert"),
        ("night 5", 2, 0.0, "quiet"),
    ]
    assert {"verdict_drift", "text_drift", "token_drift"} <= set(found["measure"])
    # The replies are all alike, so no text has changed.
    assert found.filter(measure="text_drift")["estimate"].unique().to_list() == [0.0]
    # All are A at .75, in the last night at .25: M = 1 + 1 - 2 * .5.
    tokens = found.filter(measure="token_drift").sort("wave", descending=True)
    assert tokens["estimate"].to_list() == pytest.approx([0.0, 0.0, 0.0, 1.0])
    assert tokens["state"].to_list() == ["quiet", "quiet", "quiet", "suspect"]
    assert f"Drift, alert: {JUDGE} " in drift_line(found, "night 6")
    assert f"{JUDGE} mps_drift of rich_content 1.00" in drift_line(found, "night 6")
    assert drift_line(found, "night 8") == ""


def test_pairs_of_other_studies_with_the_same_waves_do_not_count(nights: Any) -> None:
    study, warehouse = nights(["a", "t"])
    asked = warehouse.query("select * from pairs order by sample")
    own = asked.filter(pl.col("sample").is_in(asked["sample"].unique().sort().head(6).implode()))
    warehouse.save([Saving(StudyPairs, own)], run="r", study=study.name)
    for found in (drift_of(study, warehouse), drift_of(study, warehouse, pairs=own["pair_id"])):
        assert found.filter(measure="mps_drift")["n"].to_list() == [6]
    everything = drift_of(study, warehouse, pairs=asked["pair_id"])
    assert everything.filter(measure="mps_drift")["n"].to_list() == [12]


def test_a_night_measures_no_earlier_night_again(
    nights: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "results_folder", lambda: tmp_path / "results")
    measured: list[str] = []

    def measure(votes: WaveVotes, seed: int, draws: int, limits: Thresholds) -> pl.DataFrame:
        measured.append(votes.bases["wave"][0])
        return measure_wave(votes, seed, draws, limits)

    remembering = cached_function(measure)
    study, warehouse = nights(["a", "a", "t"])
    drift_of(study, warehouse, remembering)
    assert measured == ["night 8", "night 7"]
    study, warehouse = nights(["a", "a", "t", "t"])
    found = drift_of(study, warehouse, remembering)
    assert measured == ["night 8", "night 7", "night 6"]
    assert_frame_equal(found, drift_of(study, warehouse))
    # Other votes are measured. A suspect night is the baseline of none; others are of the later.
    remove = (
        "delete from votes where ballot_id in (select min(ballot_id) from ballots where wave = ?)"
    )
    for night, again in (("night 7", ["night 7"]), ("night 8", ["night 8", "night 7", "night 6"])):
        measured.clear()
        with duckdb.connect(str(warehouse.path)) as connection:
            connection.execute(remove, [night])
        drift_of(study, warehouse, remembering)
        assert measured == again


@pytest.mark.parametrize(("stop", "expected"), [("none", 0.125), ("pair", 0.25)])
def test_stopped_votes_count_by_their_first_pair_of_orders(
    nights: Any, stop: str, expected: float
) -> None:
    study, warehouse = nights(["-", "s"])
    found = drift_of(study.model_copy(update={"stop": stop}), warehouse)
    row = found.filter(measure="mps_drift").row(0, named=True)
    # Half the pairs go from 1/2 to 1. The others to (1/2 + 1/2 + 0 + 0) / 4, or 1/2 at first.
    assert row["estimate"] == expected


def test_each_wave_stopped_by_its_own_rule(nights: Any) -> None:
    study, warehouse = nights(["-", "s"])
    row = first_row("audit", "r", study.model_copy(update={"stop": "pair"}), datetime.now(UTC))
    warehouse.start_run({**row, "state": "completed"})
    found = drift_of(study, warehouse)
    assert found.filter(measure="mps_drift")["estimate"].to_list() == [0.25]


def test_remeasuring_renews_what_drifted(nights: Any, make_vote_log: Make) -> None:
    study, warehouse = nights(["a", "t"])
    row = first_row("audit", "old", study, datetime.now(UTC))
    warehouse.start_run({**row, "state": "completed"})
    log = make_vote_log([{"judge": JUDGE, "wave": study.wave}])
    verdicts = tally_votes(count_votes(log), "balanced")
    stale = drift_of(study, warehouse).with_columns(estimate=pl.lit(0.5), state=pl.lit("alert"))
    frames = ((VoteLog, log), (Verdicts, verdicts), (Drifts, stale))
    warehouse.save([Saving(*each) for each in frames], run="old", study=study.name)
    remeasure_study(study.name, warehouse.path, formulas=False)
    assert_frame_equal(warehouse.read(Drifts), drift_of(study, warehouse))


def test_a_wave_that_is_measured_again_knows_no_later_one(nights: Any) -> None:
    study, warehouse = nights(["a", "a", "t", "t"])
    # The alert of the fourth night is not known in the third.
    third = drift_of(study.model_copy(update={"wave": "night 7"}), warehouse)
    states = third.filter(measure="mps_drift").sort("wave", descending=True)
    assert states.select("wave", "state").rows() == [("night 8", "quiet"), ("night 7", "suspect")]
    first = drift_of(study.model_copy(update={"wave": "night 9"}), warehouse)
    assert first.is_empty()


def test_a_first_night_and_a_study_without_waves_have_no_drift(nights: Any) -> None:
    study, warehouse = nights(["a"])
    assert drift_of(study, warehouse).is_empty()
    without = study.model_copy(update={"wave": ""})
    assert drift_of(without, warehouse).is_empty()


def test_waves_are_numbered_by_their_first_votes(nights: Any) -> None:
    study, warehouse = nights(["a", "a", "t", "t"])
    warehouse.save([Saving(Drifts, drift_of(study, warehouse))], run="r", study=study.name)
    waves = "select distinct wave_number, wave from mart.drift order by wave_number"
    assert warehouse.query(waves).rows() == [(2, "night 8"), (3, "night 7"), (4, "night 6")]


def test_the_canary_is_small_and_nightly() -> None:
    canary = STUDIES["canary"]
    assert canary.cron is not None
    study = canary.study.model_copy(update={"judges": [JUDGE]})
    assert study.at(datetime(2024, 5, 6, tzinfo=UTC)).wave == "2024-05-06"
    pairs = make_pairs(study).shown
    # control, experimental and sham of 40 questions, in both orders, twice each
    assert pairs.height * 2 == 240
    assert study.votes_per_pair == 4
    assert pairs.select(pl.col("arm").n_unique()).item() == 3


@pytest.mark.slow
def test_canary_judges_are_as_cold_as_their_models_allow() -> None:
    judges = [JUDGES[name] for name in STUDIES["canary"].study.judges]
    cold = refused_params([(j.model, {**j.params, "temperature": 0}) for j in judges])
    for judge, refused in zip(judges, cold, strict=True):
        # It has temperature 0, or its model takes none.
        assert (judge.params.get("temperature"), refused) in [(0, []), (None, ["temperature"])]
