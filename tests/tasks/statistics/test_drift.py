from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from schemas.keys import SERIES
from tasks.aggregate import count_votes
from tasks.drift.changes import paired_evidence
from tasks.inference.bootstrap import formulas_only, weights
from tasks.inference.quantiles import widened
from tasks.statistics.dasr import dasr
from tasks.statistics.drift import drift

Make = Callable[..., Any]
VERDICTS = np.array(["anchor", "tie", "target"])


def rows_of(frame: pl.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["statistic"]: row for row in frame.to_dicts()}


def votes(make: Make, choices: dict[str, list[str]], **columns: Any) -> pl.DataFrame:
    """Two samples' votes per wave: choices in order 12, twice as many as repeats."""
    rows = [
        {"wave": wave, "sample": f"s{n // 2}", "repeat": n % 2, "choice": choice, **columns}
        for wave, each in choices.items()
        for n, choice in enumerate(each)
    ]
    return count_votes(make(rows))


def two_waves(make_shifts: Make, seed: int, items: int = 40) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    waves = []
    for wave in ("n1", "n2"):
        arms = VERDICTS[draw.integers(3, size=(items, 3))]
        rows = [{"control": c, "sham": s, "experimental": e} for c, s, e in arms]
        waves.append(make_shifts(rows, wave=wave))
    return pl.concat(waves)


def test_docstring_example(make_vote_log: Make, make_shifts: Make) -> None:
    tallies = votes(make_vote_log, {"n1": ["first"] * 4, "n2": ["second"] * 4})
    row = rows_of(drift(tallies=tallies, shifts=make_shifts([])))["verdict_drift"]
    assert (row["estimate"], row["n"], row["clusters"]) == (2.0, 2, 2)
    # Each prompt deals its repeats apart in 2 of 6 ways.
    assert row["p_value"] == pytest.approx(1 / 9)
    assert (row["wave"], row["subgroup"]) == ("n2", "n1")


def test_shifts_are_compared_by_a_paired_t(make_vote_log: Make, make_shifts: Make) -> None:
    # Second implementation: scipy's paired t-test of the effects.
    shifts = two_waves(make_shifts, 3)
    tallies = votes(make_vote_log, {"n1": ["tie"], "n2": ["tie"]})
    row = rows_of(drift(tallies=tallies, shifts=shifts))["mps_drift"]
    effect = shifts.with_columns(d=pl.col("experimental_score") - pl.col("sham_score"))
    base, new = (effect.filter(wave=wave).sort("sample")["d"] for wave in ("n1", "n2"))
    test = stats.ttest_rel(new, base)
    interval = test.confidence_interval()
    assert row["estimate"] == pytest.approx((new - base).mean())
    assert row["p_value"] == pytest.approx(test.pvalue)
    assert (row["low"], row["high"]) == (pytest.approx(interval.low), pytest.approx(interval.high))


def test_dasr_is_the_difference_of_the_waves(make_vote_log: Make, make_shifts: Make) -> None:
    shifts = two_waves(make_shifts, 4)
    tallies = votes(make_vote_log, {"n1": ["tie"], "n2": ["tie"]})
    row = rows_of(drift(tallies=tallies, shifts=shifts))["dasr_drift"]
    by_wave = {
        wave: rows_of(dasr(shifts=shifts.filter(wave=wave)))["dasr"] for wave in ("n1", "n2")
    }
    assert row["estimate"] == pytest.approx(by_wave["n2"]["estimate"] - by_wave["n1"]["estimate"])
    # The waves are independent here, so the squared errors add but for their covariance.
    independent = sum(r["standard_error"] ** 2 for r in by_wave.values()) ** 0.5
    assert row["standard_error"] == pytest.approx(independent, rel=0.4)


def test_the_bootstrap_beside_the_interval(make_vote_log: Make, make_shifts: Make) -> None:
    shifts = two_waves(make_shifts, 5)
    tallies = votes(make_vote_log, {"n1": ["tie"], "n2": ["tie"]})
    rows = rows_of(drift(tallies=tallies, shifts=shifts))
    effect = shifts.with_columns(d=pl.col("experimental_score") - pl.col("sham_score"))
    base, new = (
        effect.filter(wave=wave).sort(pl.col("cluster").cast(pl.String))["d"].to_numpy()
        for wave in ("n1", "n2")
    )
    drawn = np.concatenate([some @ (new - base) / 40 for some in weights(40)])
    level = float(widened(0.95, 40))
    ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    row = rows["mps_drift"]
    assert (row["boot_low"], row["boot_high"]) == pytest.approx(tuple(ends))
    assert rows["dasr_drift"]["boot_low"] < rows["dasr_drift"]["estimate"]
    assert rows["verdict_drift"]["boot_low"] is None
    with formulas_only():
        bare = rows_of(drift(tallies=tallies, shifts=shifts))["mps_drift"]
    assert (bare["boot_low"], bare["low"], bare["level"]) == (None, row["low"], 0.95)


def test_position_gap_by_hand(make_vote_log: Make, make_shifts: Make) -> None:
    choices = {"n1": ["first", "second", "first", "tie"], "n2": ["first"] * 4}
    row = rows_of(drift(tallies=votes(make_vote_log, choices), shifts=make_shifts([])))[
        "position_drift"
    ]
    # First picks 2 of 3 before, 4 of 4 after: 1 - 2/3. u = 0 - (.5 * 0 - ...): by samples
    # num - R den: (0 - 1/6 * 2, 1/2 - 1/6) / 3 = (-1/9, 1/9) before, (0, 0) after.
    assert row["estimate"] == pytest.approx(1 / 3)
    assert row["standard_error"] == pytest.approx((2 * 2 / 81) ** 0.5)
    assert (row["mode"], row["perturbation"]) == ("any", None)


def test_what_comes_from_a_cache_is_not_measured(make_vote_log: Make, make_shifts: Make) -> None:
    choices = {"n1": ["first"] * 8, "n2": ["second"] * 8}
    log = [
        votes(make_vote_log, {wave: each}, cached=wave == "n2") for wave, each in choices.items()
    ]
    found = drift(tallies=pl.concat(log), shifts=two_waves(make_shifts, 5))
    assert found["p_value"].null_count() == found.height == 4  # no label, so no agreement
    assert set(found["reason"]) == {"not measured: every vote is from a cache"}


@pytest.mark.parametrize("only", ["n1", ""])
def test_one_wave_has_nothing_to_be_compared_with(
    make_vote_log: Make, make_shifts: Make, only: str
) -> None:
    tallies = votes(make_vote_log, {only: ["first", "second"]})
    assert drift(tallies=tallies, shifts=make_shifts([])).is_empty()


def test_too_little_to_tell(make_vote_log: Make, make_shifts: Make) -> None:
    # A single question, one vote each; then ties only.
    tallies = votes(make_vote_log, {"n1": ["first"], "n2": ["first"]})
    found = rows_of(drift(tallies=tallies, shifts=make_shifts([])))
    assert found["position_drift"]["reason"] == "a single cluster: no interval"
    assert found["verdict_drift"]["reason"] == (
        "no prompt has two replies in each of the two waves (--votes 4, or --votes 2 for single "
        "answers)"
    )
    ties = votes(make_vote_log, {"n1": ["tie"] * 4, "n2": ["tie"] * 4})
    row = rows_of(drift(tallies=ties, shifts=make_shifts([])))["position_drift"]
    assert (row["estimate"], row["reason"]) == (
        None,
        "nothing qualifies: one of the waves has no vote for a slot",
    )


def test_a_judge_that_repeats_itself_has_not_changed(
    make_vote_log: Make, make_shifts: Make
) -> None:
    one = make_shifts([{"control": "tie", "experimental": "target"}] * 12, wave="n1")
    both = pl.concat([one, one.with_columns(wave=pl.lit("n2"))])
    tallies = votes(make_vote_log, {"n1": ["first"] * 24, "n2": ["first"] * 24})
    found = rows_of(drift(tallies=tallies, shifts=both))
    for name in ("mps_drift", "position_drift", "verdict_drift"):
        assert (found[name]["estimate"], found[name]["p_value"]) == (0.0, 1.0), name


def test_a_wave_like_its_base_has_an_interval(make_vote_log: Make, make_shifts: Make) -> None:
    # Nothing rose and nothing fell of 200 questions: Wilson gives each z^2 / (200 + z^2) at most,
    # as shares of the widest change: 2 of shifts, 1 of a share. Positions have two votes a question
    # here, which count once: 400^2 / (200 * 2^2) = 200.
    arms = [
        ("anchor", "tie", "target"),
        ("tie", "tie", "tie"),
        ("target", "anchor", "tie"),
        ("tie", "target", "anchor"),
    ]
    rows = [{"control": c, "sham": s, "experimental": e} for c, s, e in arms * 50]
    shifts = pl.concat([make_shifts(rows, wave=wave) for wave in ("n1", "n2")])
    tallies = votes(
        make_vote_log,
        {wave: ["first", "second", "second", "second"] * 100 for wave in ("n1", "n2")},
        label="anchor",
    )
    found = rows_of(drift(tallies=tallies, shifts=shifts))
    share = 1.959964**2 / (200 + 1.959964**2)
    for name, widest in (("mps_drift", 2), ("position_drift", 1)):
        row = found[name]
        assert (row["estimate"], row["p_value"]) == (0.0, 1.0), name
        assert (row["low"], row["high"]) == pytest.approx((-widest * share, widest * share)), name
        assert (row["method"], row["reason"], row["level"]) == ("Newcombe", None, 0.95)
        assert row["standard_error"] is None
    # V of control and sham: 1, 1, 1/2 and 1/2 of four, so 150 of 200.
    half = 2 * 1.959964**2 / (150 + 1.959964**2)
    row = found["dasr_drift"]
    assert (row["low"], row["high"]) == pytest.approx((-half, half))


def test_agreement_of_a_wave_like_its_base(make_vote_log: Make, make_shifts: Make) -> None:
    log = [
        {
            "wave": wave,
            "sample": f"s{n:03}",
            "shown_first": side,
            "choice": "first",
            "label": "tie" if n % 3 else "target",
        }
        for wave in ("n1", "n2")
        for n in range(100)
        for side in ("anchor", "target")
    ]
    tallies = count_votes(make_vote_log(log))
    row = rows_of(drift(tallies=tallies, shifts=make_shifts([])))["agreement_drift"]
    half = 1.959964**2 / (100 + 1.959964**2)
    assert (row["low"], row["high"]) == pytest.approx((-half, half))
    assert (row["p_value"], row["method"]) == (1.0, "Newcombe, p by McNemar")


def test_every_question_changed_alike(make_vote_log: Make, make_shifts: Make) -> None:
    # From tie to target in all 20: a quarter of the widest change, and 2 of 2^20 flips as far.
    waves = [
        make_shifts([{"control": "tie", "experimental": e}] * 20, wave=wave)
        for wave, e in (("n1", "tie"), ("n2", "target"))
    ]
    tallies = votes(make_vote_log, {"n1": ["first"] * 4, "n2": ["first"] * 4})
    row = rows_of(drift(tallies=tallies, shifts=pl.concat(waves)))["mps_drift"]
    low, high = proportion_confint(5, 20, method="wilson")
    none, most = proportion_confint(0, 20, method="wilson")
    assert (row["estimate"], row["p_value"]) == pytest.approx((0.5, 2.0**-19))
    assert row["low"] == pytest.approx(0.5 - 2 * np.hypot(0.25 - low, most))
    assert row["high"] == pytest.approx(0.5 + 2 * np.hypot(high - 0.25, none))


def test_neither_order_nor_type_of_keys_matters(make_vote_log: Make, make_shifts: Make) -> None:
    shifts = two_waves(make_shifts, 6)
    tallies = votes(make_vote_log, {"n1": ["first", "tie"] * 9, "n2": ["second", "first"] * 9})
    plain = drift(tallies=tallies, shifts=shifts)
    keys = ["dataset", "judge", "prompt", "wave", "sample", "cluster", "perturbation"]
    others = [
        frame.sample(fraction=1, shuffle=True, seed=1).with_columns(
            pl.col(keys).cast(pl.Categorical)
        )
        for frame in (tallies, shifts)
    ]
    assert drift(tallies=others[0], shifts=others[1]).equals(plain)


def labelled(waves: dict[str, list[str]]) -> list[dict[str, Any]]:
    """One vote per order, sample and wave, for the answer named."""
    slots = {"anchor": ("first", "second"), "target": ("second", "first"), "tie": ("tie", "tie")}
    return [
        {"wave": wave, "sample": f"s{n}", "shown_first": side, "choice": choice, "label": "target"}
        for wave, answers in waves.items()
        for n, answer in enumerate(answers)
        for side, choice in zip(("anchor", "target"), slots[answer], strict=True)
    ]


@pytest.mark.parametrize(
    ("right", "wrong", "same"), [(0, 6, 1), (3, 9, 20), (5, 5, 0), (0, 0, 4), (12, 1, 7)]
)
def test_agreement_drift_is_mcnemars_test(
    make_vote_log: Make, make_shifts: Make, right: int, wrong: int, same: int
) -> None:
    base = ["anchor"] * right + ["target"] * (wrong + same)
    new = ["target"] * right + ["tie"] * wrong + ["target"] * same
    log = make_vote_log(labelled({"n1": base, "n2": new}))
    row = rows_of(drift(tallies=count_votes(log), shifts=make_shifts([])))["agreement_drift"]
    moved, n = right + wrong, right + wrong + same
    assert (row["estimate"], row["n"]) == (pytest.approx((right - wrong) / n), n)
    # Second implementation: scipy's binomial test.
    assert row["p_value"] == pytest.approx(stats.binomtest(right, moved).pvalue if moved else 1.0)
    assert (row["mode"], row["perturbation"], row["subgroup"]) == ("any", None, "n1")


def test_agreement_takes_questions_as_units(make_vote_log: Make, make_shifts: Make) -> None:
    # Two pairs a question, alike: ten pairs that turn are worth five.
    waves = {"n1": ["target"] * 20, "n2": ["anchor"] * 10 + ["target"] * 10}
    log = make_vote_log(labelled(waves)).with_columns(
        cluster=pl.col("sample").str.slice(1).cast(pl.Int64).floordiv(2).cast(pl.String)
    )
    row = rows_of(drift(tallies=count_votes(log), shifts=make_shifts([])))["agreement_drift"]
    test = stats.ttest_1samp([-1.0] * 5 + [0.0] * 5, 0)
    assert (row["estimate"], row["n"], row["clusters"]) == (-0.5, 20, 10)
    assert row["p_value"] == pytest.approx(test.pvalue)
    assert row["method"] == "paired cluster t"


def test_agreement_needs_a_label_and_a_valid_vote_in_each_order(
    make_vote_log: Make, make_shifts: Make
) -> None:
    rows = labelled({"n1": ["target"] * 4, "n2": ["target"] * 4})
    rows[8] |= {"choice": "invalid"}
    rows[6] |= {"label": None}
    rows[7] |= {"label": None}
    log = make_vote_log(rows)
    row = rows_of(drift(tallies=count_votes(log), shifts=make_shifts([])))["agreement_drift"]
    # s0 has no verdict in n2, s3 no label in n1: both are in n2 and cannot be compared.
    assert (row["estimate"], row["n"], row["dropped"]) == (0.0, 2, 2)
    bare = make_vote_log([{**each, "label": None} for each in rows])
    found = rows_of(drift(tallies=count_votes(bare), shifts=make_shifts([])))
    assert "agreement_drift" not in found


def test_paired_evidence_by_hand(make_shifts: Make) -> None:
    # Each of three questions moves by 1, half of it is bet on: E = (1.25^2 + 1) / 2, as the first
    # bet is 0, and the others .5 of x = .5.
    before = make_shifts([{"control": "tie", "experimental": "anchor"}] * 3, wave="n1")
    after = make_shifts([{"control": "tie", "experimental": "target"}] * 3, wave="n2")
    shifts = pl.concat([before, after]).with_columns(
        num=pl.col("experimental_score") - pl.col("control_score"), den=pl.lit(1.0)
    )
    bases = shifts.filter(wave="n2").select(*SERIES, "wave", base=pl.lit("n1")).unique()
    row = paired_evidence(shifts, bases).row(0, named=True)
    assert row["e_value"] == pytest.approx((1.25**2 + 1) / 2)
    assert paired_evidence(shifts.filter(wave="n2"), bases).is_empty()


def test_paired_evidence_is_rarely_large_without_drift(make_shifts: Make) -> None:
    # E(e) <= 1 for an unchanged judge, so P(e >= 20) <= .05 (Ville), however noisy the baseline.
    draw = np.random.default_rng(11)
    rows = [
        {"judge": f"j{judge:03}", "wave": wave, "sample": f"s{n:03}", "experimental": verdict}
        for judge in range(200)
        for wave in ("n1", "n2")
        for n, verdict in enumerate(VERDICTS[draw.integers(3, size=30)])
    ]
    shifts = make_shifts(rows, control="tie").with_columns(
        num=pl.col("experimental_score") - pl.col("control_score"), den=pl.lit(1.0)
    )
    bases = shifts.filter(wave="n2").select(*SERIES, "wave", base=pl.lit("n1")).unique()
    found = paired_evidence(shifts, bases)["e_value"]
    assert found.len() == 200
    assert found.mean() < 1.5
    assert (found >= 20).mean() <= 0.05


def test_rates_of_unequal_votes_are_not_compared(make_vote_log: Make, make_shifts: Make) -> None:
    shifts = two_waves(make_shifts, 5).with_columns(
        votes=pl.when(pl.col("wave") == "n2").then(2).otherwise(6).cast(pl.Int64)
    )
    tallies = votes(make_vote_log, {"n1": ["tie"], "n2": ["tie"]})
    rows = rows_of(drift(tallies=tallies, shifts=shifts))
    assert (rows["dasr_drift"]["estimate"], rows["dasr_drift"]["reason"]) == (
        None,
        "unequal votes per pair",
    )
    # The shift is the same whatever the number of votes (methods, section 2).
    assert rows["mps_drift"]["estimate"] is not None


def test_agreement_of_unequal_votes_is_not_compared(make_vote_log: Make, make_shifts: Make) -> None:
    # The judge is the same; the mean of six votes is right more often than that of two.
    rows = labelled({"n1": ["target"] * 12, "n2": ["tie"] * 12})
    more = [row | {"repeat": 1} for row in rows if row["wave"] == "n1"]
    log = make_vote_log([*rows, *more])
    row = rows_of(drift(tallies=count_votes(log), shifts=make_shifts([])))["agreement_drift"]
    assert (row["estimate"], row["p_value"]) == (None, None)
    assert row["reason"] == "unequal votes per pair"


def test_clusters_are_those_in_which_something_counts(
    make_vote_log: Make, make_shifts: Make
) -> None:
    # Eight of 16 questions are of no V, control or sham; the others are all won over in n2 only.
    def wave(name: str, end: str) -> Any:
        won = {"control": "anchor", "sham": "anchor", "experimental": end}
        never = {"control": "target", "sham": "target", "experimental": "target"}
        return make_shifts([won] * 8 + [never] * 8, wave=name, has_sham=True)

    shifts = pl.concat([wave("n1", "anchor"), wave("n2", "target")])
    tallies = votes(make_vote_log, {"n1": ["tie"], "n2": ["tie"]})
    row = rows_of(drift(tallies=tallies, shifts=shifts))["dasr_drift"]
    assert (row["estimate"], row["clusters"]) == (1.0, 8)
    # Of 2^8 flips of signs two are as far.
    assert row["p_value"] == pytest.approx(2 / 2**8)
