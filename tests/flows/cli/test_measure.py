import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.cli.main import main
from flows.cli.measure import ADDED
from schemas.judging import ARMS, CHOICES, SIDES
from schemas.results import Estimates
from tasks.conclude import conclude
from tasks.panels.error_correlation import UNBOUNDED
from tasks.readers.votes import COLUMNS, read_votes
from tasks.results import results_of_file
from tasks.statistics import STATISTICS

Make = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("computed_once")
SHARES = {
    "asr",
    "sham_floor",
    "position_consistency",
    "primacy",
    "recency",
    "random_baseline",
    "random_baseline_coin",
    "valid_rate",
    "invalid_rate",
    "abstain_rate",
    "ambiguous_rate",
    "missing_rate",
    "cached_rate",
    *STATISTICS["accuracy"].gives,
    "accuracy_before",
    "accuracy_after",
    "agreement",
    "agreement_decided",
    "flips_up",
    "flips_down",
    "robustness_rate",
    "consistency_rate",
    "asr_bounds",
    "jury_asr",
    "jury_sham_floor",
    "replicate_floor",
    "mean_asr",
    "mean_sham_floor",
    "jury_flips_up",
    "jury_flips_down",
    "jury_robustness_rate",
    "jury_consistency_rate",
    "jury_accuracy",
    "jury_position_consistency",
    "dasr_posterior",
    "lost_rate",
    "shift_spread",
    "category_spread",
}
EVERYTHING = (-math.inf, math.inf)
LIMITS = {
    "mps_contrast": (-2, 2),
    "mps_sham_contrast": (-2, 2),
    "rank": (1, 2),
    "tier": (1, 2),
    "jury_size": (1, math.inf),
    "jury_error_size": (1, math.inf),
    "e_value": (0, math.inf),
    "los": EVERYTHING,
    "los_sham": EVERYTHING,
    "detection_share": EVERYTHING,
    "los_contrast": EVERYTHING,
    "standardised_effect": EVERYTHING,
    "detection_power": EVERYTHING,
    "position_kappa": EVERYTHING,
    "position_kappa_once": EVERYTHING,
    "self_score_error": (-1, math.inf),
}


def run(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["measure", str(path), *options])


def write(path: Path, votes: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(vote) + "\n" for vote in votes), encoding="utf-8")
    return path


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """Twenty questions, each won by the target once it boasts, whatever is shown first."""
    rows = []
    for arm, choices in (("control", ("first", "second")), ("experimental", ("second", "first"))):
        planted = arm != "control"
        for question in range(20):
            for side, choice in zip(SIDES, choices, strict=True):
                values = (
                    "ada",
                    "boast" if planted else None,
                    "promote" if planted else None,
                    arm,
                    f"q{question}/a2",
                    f"q{question}",
                    side,
                    0,
                    choice,
                )
                rows.append(dict(zip(COLUMNS, values, strict=True)))
    return write(tmp_path / "own.jsonl", rows)


def test_table_tells_the_finding(votes: Path) -> None:
    result = run(votes)
    assert result.exit_code == 0, result.output
    assert "own.jsonl, mode balanced" in result.output
    assert "ada" in result.output
    # Every sample shifts from 0 to 1; Newcombe's low end is 1 - sqrt(2) * z^2 / (20 + z^2) = .77.
    said = " ".join(result.output.split())
    easy = "pairs too easy: MPS cannot move much, so the effect in logits (LOS) decides:"
    assert f"n 20: biased ({easy} 4.39 [2.27, 6.52], limit .25)" in said
    assert "shift 1.00 [.77, 1.00]" in said


def test_the_gate_of_easy_pairs_shows_the_effect_that_decides_once(
    votes: Path, tmp_path: Path
) -> None:
    place = ("--warehouse", str(tmp_path / "w.duckdb"))
    assert run(votes, *place).exit_code == 0
    gate = ["gate", "own", *place, "--only", "bias"]
    said = " ".join(CliRunner().invoke(main, gate, env={"COLUMNS": "300"}).stdout.split())
    assert (
        "effect in logits 4.39 [2.27, 6.52], limit .25; pairs too easy: MPS cannot move much, so "
        "the effect in logits (LOS) decides" in said
    )
    assert said.count("4.39") == 1


@pytest.mark.parametrize(
    ("repeats", "said"),
    [
        # Half of the 20 pairs get the same verdict again; Wilson, one vote fewer in effect.
        (
            2,
            "A pair shown twice in one order gets the same verdict with probability .50 [.28, .72]",
        ),
        # So do half of them if the second vote is in the other order.
        (1, "A pair shown in both orders gets the same verdict with probability .50 [.29, .71]"),
    ],
)
def test_how_often_verdicts_on_a_pair_repeat_is_stated(
    tmp_path: Path, repeats: int, said: str
) -> None:
    """Bob repeats each verdict; Ada's agree as often as the tosses of a coin."""
    names = ("judge", "arm", "sample", "cluster", "shown_first", "repeat", "choice")
    rows = []
    for question in range(20):
        for side in SIDES:
            for repeat in range(repeats):
                other = repeat == 1 if repeats == 2 else side == SIDES[1]
                turned = (question % 2 == 1) and other
                for judge in ("ada", "bob"):
                    anchor = (question % 4 < 2) != (turned and judge == "ada")
                    choice = "first" if anchor == (side == "anchor") else "second"
                    row = (judge, "control", f"q{question}/a", f"q{question}", side, repeat, choice)
                    rows.append(dict(zip(names, row, strict=True)))
    shown = " ".join(run(write(tmp_path / "own.jsonl", rows)).output.split())
    assert said in shown
    assert shown.count("gets the same verdict") == 1


def test_json_and_csv_hold_the_same_estimates(votes: Path) -> None:
    own = Estimates.dtypes()
    rows = json.loads(run(votes, "--format", "json").stdout)
    assert {(*row,) for row in rows} == {(*own, *ADDED)}
    as_json = pl.DataFrame([{name: row[name] for name in own} for row in rows], own)
    text = run(votes, "--format", "csv").stdout
    added = dict.fromkeys(ADDED, pl.String)
    as_csv = pl.read_csv(io.StringIO(text), schema={**own, **added}).select(own.keys())
    expected = results_of_file(read_votes(votes), "balanced").estimates
    assert as_json.equals(expected)
    assert as_csv.drop("wave").equals(expected.drop("wave"))  # an empty text is null in CSV
    shift = expected.filter(pl.col("statistic") == "mps").to_dicts()[0]
    assert (shift["estimate"], shift["clusters"], shift["p_value"]) == (1.0, 20, 2.0**-19)


def test_rows_tell_the_finding_and_the_adjusted_p_where_they_belong(votes: Path) -> None:
    lines = votes.read_text(encoding="utf-8").splitlines()
    # Bob always ties: nothing moves him, and his tie rate leaves him out.
    bob = [{**json.loads(line), "judge": "bob", "choice": "tie"} for line in lines]
    write(votes, [*map(json.loads, lines), *bob])
    rows = json.loads(run(votes, "--format", "json").stdout)
    found = {(row["statistic"], row["judge"], row["perturbation"]): row for row in rows}
    shift = found["mps", "ada", "boast"]
    # Two cells; all control pairs are unanimous, so log-odds are tested; the other p is 1
    assert shift["p_adjusted"] == pytest.approx(2 * found["los", "ada", "boast"]["p_value"])
    assert shift["finding"] == "biased"
    assert shift["adjustment"] == "Benjamini-Hochberg, all cells (F1)"
    assert (shift["votes"], shift["invalid_rate"], shift["design"]) == (40, 0.0, "balanced")
    assert found["asr", "bob", "boast"]["excluded"] is True
    assert found["asr", "ada", "boast"]["excluded"] is False
    other = found["mps_contrast", "ada", "boast"]
    assert (other["subgroup"], other["p_adjusted"], other["finding"]) == (
        "bob",
        other["p_value"],
        "biased",
    )
    assert found["tie_rate", "ada", None]["p_adjusted"] is None
    table = run(votes, "--only", "asr_contrast").output
    assert re.search(r"<\.001\s+<\.001\s+biased", table)


@pytest.mark.parametrize(
    ("interval", "low"),
    # 20 of 20: z^2 / (20 + z^2); .025^(1/20); the 2.5 % quantile of Beta(20.5, .5), by scipy
    [("wilson", 0.8389), ("clopper_pearson", 0.8316), ("jeffreys", 0.8834)],
)
def test_shares_have_the_interval_that_is_asked_for(votes: Path, interval: str, low: float) -> None:
    options = ("--only", "asr", "--interval", interval, "--format", "json")
    (row,) = json.loads(run(votes, *options).stdout)
    assert (row["estimate"], row["high"]) == (1.0, 1.0)
    assert row["low"] == pytest.approx(low, abs=5e-5)
    names = {"wilson": "Wilson", "clopper_pearson": "Clopper-Pearson", "jeffreys": "Jeffreys"}
    assert row["method"] == f"cluster-adjusted {names[interval]}"


def test_only_some_statistics(votes: Path) -> None:
    result = run(votes, "--only", "asr", "--only", "mps", "--format", "json")
    assert [row["statistic"] for row in json.loads(result.stdout)] == ["asr", "mps"]
    table = run(votes, "--only", "primacy")
    assert table.exit_code == 0
    assert "primacy" in table.output
    strange = run(votes, "--only", "asrr")
    assert strange.exit_code == 2
    assert "no statistic 'asrr'. Did you mean 'asr'?" in strange.output
    family = json.loads(run(votes, "--only", "validity", "--format", "json").stdout)
    assert {row["statistic"] for row in family} > {"valid_rate", "missing_rate"}


def test_win_rates_come_where_authors_are_known(tmp_path: Path, votes: Path) -> None:
    known = {"anchor_author": "ant", "target_author": "bee"}
    lines = votes.read_text(encoding="utf-8").splitlines()
    path = write(tmp_path / "named.jsonl", [{**json.loads(line), **known} for line in lines])
    rows = json.loads(run(path, "--only", "win_rate", "--format", "json").stdout)
    rates = {row["subgroup"]: row["estimate"] for row in rows if row["statistic"] == "win_rate"}
    assert rates == {"ant": 1.0, "ant vs bee": 1.0, "bee": 0.0}
    assert "ant vs bee" in run(path, "--only", "decision_check").output


@pytest.mark.parametrize("mode", ["paper", "balanced"])
def test_mode_is_kept(votes: Path, mode: str) -> None:
    rows = json.loads(run(votes, "--mode", mode, "--only", "asr", "--format", "json").stdout)
    assert [(row["mode"], row["estimate"]) for row in rows] == [(mode, 1.0)]


def test_votes_and_labels_are_enough(tmp_path: Path) -> None:
    # Two people and a judge, who errs on the last of four: votes, labels, and nothing else.
    rows = [
        {
            "judge": judge,
            "human": judge != "ada",
            "sample": f"s{at}",
            "cluster": f"q{at}",
            "shown_first": "anchor",
            "repeat": 0,
            "choice": choice,
            "label": "target",
        }
        for judge, choices in (
            ("ada", ("second", "second", "second", "first")),
            ("Bob", ("second", "tie") * 2),
            ("Cid", ("second",) * 4),
        )
        for at, choice in enumerate(choices)
    ]
    path = write(tmp_path / "labels.jsonl", rows)
    result = run(path, "--format", "json")
    assert result.exit_code == 0, result.output
    found = {
        (row["statistic"], row["judge"], row["subgroup"]): row["estimate"]
        for row in json.loads(result.stdout)
    }
    assert found["accuracy", "ada", ""] == 0.75
    assert found["agreement", "ada", "Cid"] == 0.75
    assert found["agreement", "ada", "Bob"] == 0.5
    assert found["s1_micro", "ada", "humans"] == 5 / 8
    assert found["ceiling_ratio", "ada", "humans"] == 1.25
    assert ("asr", "ada", "") not in found
    table = run(path)
    assert table.exit_code == 0, table.output
    assert "accuracy" in table.output


def test_a_judge_that_draws_lots_is_not_to_be_used(tmp_path: Path) -> None:
    # Unbiased and consistent, but right on every second of 200 pairs, or on nine of ten.
    votes = [
        {
            "judge": judge,
            "sample": f"s{at}",
            "cluster": f"s{at}",
            "label": "target",
            "arm": arm,
            "perturbation": name,
            "kind": name and "promote",
            "shown_first": side,
            "repeat": 0,
            "choice": "first" if (side == "target") == right else "second",
        }
        for judge, period in (("lots", 2), ("sound", 10))
        for at in range(200)
        for right in (at % period > 0,)
        for arm, name in (("control", None), ("experimental", "boast"), ("sham", "boast"))
        for side in ("anchor", "target")
    ]
    shown = " ".join(run(write(tmp_path / "votes.jsonl", votes)).stdout.split())
    # Twice the ends of Wilson's interval of 100 in 200, less 1.
    assert (
        "✗ lots: do not use. Agrees with the labels hardly better than by chance "
        "(agreement beyond chance, Bennett's S .00 [-.14, .14], limit .20)" in shown
    )
    # None of 200 questions moved: at most 3.84 / 203.84 = .019 of all would, within the limit.
    assert "✓ sound: use. Passes all 4 gates" in shown


def test_bad_files_end_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"judge": 1}\n', encoding="utf-8")
    for wrong in (path, tmp_path, tmp_path / "nowhere.csv"):
        result = run(wrong)
        assert result.exit_code == 2
        assert result.output.startswith("voirdire: ")
        assert result.output.count("\n") == 1
        assert wrong.name in result.output


def test_names_from_outside_are_no_markup(tmp_path: Path, votes: Path) -> None:
    text = votes.read_text(encoding="utf-8").replace('"ada"', '"[red]<b>x</b>[/red]"')
    path = tmp_path / "markup.jsonl"
    path.write_text(text, encoding="utf-8")
    for options in ((), ("--only", "asr")):
        result = run(path, *options)
        assert result.exit_code == 0
        assert "[red]" in "".join(result.output.split())


BALLOT = st.fixed_dictionaries(
    {
        "judge": st.sampled_from(["ada", "bea"]),
        "arm": st.sampled_from(ARMS),
        "sample": st.sampled_from(["q1/a1", "q1/a2", "q2/a2", "q3/a2"]),
        "shown_first": st.sampled_from(SIDES),
        "repeat": st.integers(0, 2),
    }
)
STUDY = st.tuples(
    st.lists(BALLOT, max_size=60, unique_by=lambda ballot: tuple(map(ballot.get, sorted(ballot)))),
    st.sampled_from([["tie"], ["invalid", None], ["first"], ["first", "second"], [*CHOICES, None]]),
    st.sampled_from([None, "q"]),
    st.sampled_from(["promote", "detract"]),
    st.randoms(use_true_random=False),
)


EXACT = {"random_baseline", "random_baseline_coin", "e_value", "tier"}
STOPS = {"sequential_stop", "e_stop"}
"""Null also if nothing stops: then there is no place at which it does."""


def check(row: dict[str, Any]) -> None:
    """Assert what holds of every estimate."""
    numbers = [value for value in row.values() if isinstance(value, float)]
    assert all(math.isfinite(number) for number in numbers), row
    estimate, low, high = row["estimate"], row["low"], row["high"]
    if estimate is None:
        assert (low, high, row["p_value"]) == (None, None, None), row
        assert row["reason"], row
        return
    least, most = LIMITS.get(row["statistic"], (0 if row["statistic"] in SHARES else -1, 1))
    assert least <= estimate <= most, row
    assert (low is None) == (high is None), row
    if row["statistic"] == "asr_bounds":  # no confidence interval
        assert 0 <= low <= estimate <= high <= 1, row
        assert row["level"] is row["reason"] is None, row
        return
    assert (low is None and row["boot_low"] is None) == (row["level"] is None), row
    if low is not None:
        assert low - 1e-12 <= estimate <= high + 1e-12, row
        assert row["clusters"] > 1, row
    elif row["statistic"] not in {*EXACT, *STOPS}:
        said = str(row["reason"])
        assert said.endswith(": no interval") or said == UNBOUNDED, row


@pytest.mark.slow
@settings(max_examples=12)
@given(STUDY)
def test_no_frame_breaks_the_statistics(make_vote_log: Make, study: Any) -> None:
    ballots, choices, cluster, kind, random = study
    rows = []
    for ballot in ballots:
        planted = ballot["arm"] in {"experimental", "sham"}
        rows.append(
            {
                **ballot,
                "choice": random.choice(choices),
                "cluster": cluster or ballot["sample"][:2],
                "kind": kind if planted else None,
            }
        )
    log = make_vote_log(rows)
    for mode in ("paper", "balanced"):
        estimates = results_of_file(log, mode).estimates
        assert set(estimates["statistic"]) <= {g for s in STATISTICS.values() for g in s.gives}
        for row in estimates.to_dicts():
            check(row)
        for row in conclude(estimates).to_dicts():
            assert row["finding"] is None  # three clusters at most
            assert row["reason"]


def test_copies_in_a_half_cached_wave_are_left_out_of_drift_only(make_vote_log: Make) -> None:
    log = make_vote_log(
        {
            "wave": wave,
            "sample": f"s{n:02}",
            "shown_first": side,
            "repeat": repeat,
            "choice": "first" if wave == "n0" or n < 10 else "second",
            "cached": wave == "n1" and n < 10,
        }
        for wave in ("n0", "n1")
        for n in range(20)
        for side in SIDES
        for repeat in range(2)
    )
    found = results_of_file(log, "balanced").estimates
    moved = {row["statistic"]: row for row in found.filter(wave="n1", subgroup="n0").to_dicts()}
    # The ten new pairs always pick the other slot; with ten copies it would be half of that.
    assert moved["position_drift"]["estimate"] == -1.0
    # Each of the twenty new prompts has two votes a wave, alike within and unlike across.
    assert (moved["verdict_drift"]["estimate"], moved["verdict_drift"]["n"]) == (2.0, 20)
    gap = found.filter(wave="n1", statistic="position_gap").row(0, named=True)
    assert (gap["estimate"], gap["n"]) == (0.0, 80)
