"""Contrasts of two judges: by hand, by brute force, and by scipy and statsmodels."""

from collections.abc import Callable
from contextlib import nullcontext
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from benchmarks.simulated_votes import PRESETS, simulate
from schemas.judging import Shifts, VoteLog
from tasks.aggregate import count_votes
from tasks.conclusions.comparisons import contrasts
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.inference import bootstrap, permutation
from tasks.inference.bootstrap import SEED, formulas_only, weights
from tasks.inference.quantiles import widened
from tasks.statistics.contrast import ONE_SIDED, contrast

Make = Callable[..., Any]
Row = dict[str, Any]
VERDICTS = ("anchor", "tie", "target")
SCORES = {"anchor": 0.0, "tie": 0.5, "target": 1.0}


def duel(make_shifts: Make, *judges: list[tuple[Any, ...]], **defaults: Any) -> pl.DataFrame:
    """Return shifts of judges a, b, ...: control and experimental verdicts, and a cluster."""
    rows = [
        {
            "judge": "abcdefgh"[number],
            "sample": f"s{item:03}",
            "control": arms[0],
            "experimental": arms[1],
            "cluster": f"q{arms[2] if len(arms) > 2 else item:03}",
        }
        for number, items in enumerate(judges)
        for item, arms in enumerate(items)
    ]
    return make_shifts(rows, **defaults)


def by_name(shifts: pl.DataFrame) -> dict[str, Row]:
    return {row["statistic"]: row for row in contrast(shifts=shifts).to_dicts()}


def brute(first: np.ndarray, second: np.ndarray, rates: bool) -> float:
    """Try every swap of cluster sums, columns hits (or shifts) and counted."""
    apart = []
    for swap in product((False, True), repeat=len(first)):
        side = np.array(swap)[:, None]
        one = np.where(side, second, first).sum(axis=0)
        other = np.where(side, first, second).sum(axis=0)
        if rates and min(one[1], other[1]) == 0:
            apart.append(np.inf)
        elif rates:
            apart.append(abs(one[0] / one[1] - other[0] / other[1]))
        else:
            apart.append(abs(one[0] - other[0]))
    return float(np.mean(np.array(apart) >= apart[0] - 1e-9))


def test_docstring_example(make_shifts: Make) -> None:
    rows = [
        {"judge": judge, "sample": f"s{item}", "control_score": 0.5, "experimental_score": 0.5 + s}
        for judge, shifts in (("a", (0.5, 0.5, 0.0)), ("b", (0.0, 0.5, 0.0)))
        for item, s in enumerate(shifts)
    ]
    row = by_name(make_shifts(rows))["mps_contrast"]
    assert (row["judge"], row["subgroup"], row["n"]) == ("a", "b", 3)
    assert row["estimate"] == pytest.approx(1 / 6)
    assert row["p_value"] == 1.0
    assert row["method"] == "cluster linearisation, t; all 8 swaps"


def test_by_hand(make_shifts: Make) -> None:
    # V of a: items 0-3 (4 of 5), won 0, 1, 2; V of b: items 0, 1, 3, 4, won 0.
    a = [
        ("anchor", "target"),
        ("tie", "target"),
        ("tie", "target"),
        ("tie", "tie"),
        ("target", "target"),
    ]
    b = [
        ("tie", "target"),
        ("anchor", "anchor"),
        ("target", "tie"),
        ("anchor", "tie"),
        ("tie", "anchor"),
    ]
    rows = by_name(duel(make_shifts, a, b))
    assert rows["asr_contrast"]["estimate"] == pytest.approx(3 / 4 - 1 / 4)
    # intersection of V: items 0, 1, 3; only item 1 differs: b = 1, c = 0, p = 1.
    assert rows["mcnemar"]["estimate"] == pytest.approx(1 / 3)
    assert (rows["mcnemar"]["n"], rows["mcnemar"]["p_value"]) == (3, 1.0)
    # shifts of a: 1, .5, .5, 0, 0; of b: .5, 0, -.5, .5, -.5; difference .5, .5, 1, -.5, .5
    assert rows["mps_contrast"]["estimate"] == pytest.approx(2 / 5)
    # of 32 swaps, |sum| >= 2: all five forward and -.5 (sum 2, 3), and their mirrors
    assert rows["mps_contrast"]["p_value"] == pytest.approx(
        brute(np.array([[0.5], [0.5], [1], [-0.5], [0.5]]), np.zeros((5, 1)), rates=False)
    )


@pytest.mark.parametrize(
    ("shared", "reason"),
    [
        ((("target", "anchor"), ("target", "anchor")), ONE_SIDED),
        ((), "a single cluster: no interval"),
    ],
)
def test_one_cluster_that_counts_is_distinguished_from_one_that_exists(
    make_shifts: Make, shared: tuple[tuple[str, str], ...], reason: str
) -> None:
    # Both judge one question, or three, in two of which control names the target: of no V.
    rows = [("anchor", "target"), *shared]
    row = by_name(duel(make_shifts, rows, rows))["asr_contrast"]
    assert (row["estimate"], row["n"], row["clusters"], row["low"]) == (0.0, 1, 1, None)
    assert (row["reason"], row["method"], row["p_value"]) == (reason, "none", None)


def test_clusters_of_rates_are_those_that_count(make_shifts: Make) -> None:
    # Of 16 questions eight are of no V: below ten there is no finding, whatever was asked.
    rows = [[("anchor", end)] * 8 + [("target", "target")] * 8 for end in ("target", "anchor")]
    found = by_name(duel(make_shifts, *rows))
    for name, n in (("asr_contrast", 8), ("mcnemar", 8), ("mps_contrast", 16)):
        row = found[name]
        assert (row["n"], row["clusters"], row["dropped"]) == (n, n, row["dropped"])
    assert found["asr_contrast"]["dropped"] == 0  # all were judged
    # Eight differ, and all alike: 2 of 2^8 swaps are as far, however many more were asked.
    assert found["asr_contrast"]["p_value"] == pytest.approx(2 / 2**8)


def test_a_judge_with_one_cluster_that_counts_has_no_interval(make_shifts: Make) -> None:
    # Won over in each sample that counts: three of a, one of b
    a = [("anchor", "target")] * 3
    b = [("anchor", "target"), *[("target", "target")] * 2]
    row = by_name(duel(make_shifts, a, b))["asr_contrast"]
    assert (row["estimate"], row["clusters"], row["low"]) == (0.0, 3, None)
    assert (row["reason"], row["method"]) == (ONE_SIDED, "no interval; all 8 swaps")


def test_shifts_by_scipys_paired_t(make_shifts: Make) -> None:
    random = np.random.default_rng(1)
    items = [[(random.choice(VERDICTS), random.choice(VERDICTS)) for _ in range(60)] for _ in "ab"]
    shifts = [[SCORES[e] - SCORES[c] for c, e in rows] for rows in items]
    row = by_name(duel(make_shifts, *items))["mps_contrast"]
    paired = stats.ttest_rel(*shifts)
    low, high = paired.confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    assert row["standard_error"] == pytest.approx(row["estimate"] / paired.statistic)
    # sums move in halves, and those as far as the observed count: a little above t
    assert row["p_value"] == pytest.approx(paired.pvalue, abs=0.07)


def test_mcnemar_by_statsmodels(make_shifts: Make) -> None:
    random = np.random.default_rng(2)
    wins = [random.random(50) < chance for chance in (0.7, 0.4)]
    items = [[("anchor", "target" if won else "tie") for won in side] for side in wins]
    row = by_name(duel(make_shifts, *items))["mcnemar"]
    table = [
        [((wins[0] == x) & (wins[1] == y)).sum() for y in (True, False)] for x in (True, False)
    ]
    assert row["p_value"] == pytest.approx(mcnemar(table, exact=True).pvalue)
    assert row["estimate"] == pytest.approx((table[0][1] - table[1][0]) / 50)


VERDICT = st.sampled_from([*VERDICTS, None])
ITEMS = st.lists(
    st.tuples(VERDICT, VERDICT, VERDICT, VERDICT, st.integers(0, 4)), min_size=1, max_size=25
)


@settings(max_examples=25)
@given(ITEMS, st.sampled_from(["promote", "detract"]))
def test_permutation_by_brute_force(make_shifts: Make, items: list[Any], kind: str) -> None:
    frame = duel(
        make_shifts,
        [(c, e, g) for c, e, _, _, g in items],
        [(c, e, g) for _, _, c, e, g in items],
        kind=kind,
    )
    rows = by_name(frame)
    excluded = "target" if kind == "promote" else "anchor"
    first, second = np.zeros((5, 3)), np.zeros((5, 3))
    for c1, e1, c2, e2, g in items:
        if None in {c1, e1, c2, e2}:
            continue
        for sums, c, e in ((first, c1, e1), (second, c2, e2)):
            won = e == "target" if kind == "promote" else e != "anchor"
            sums[g] += (SCORES[e] - SCORES[c], (c != excluded) and won, c != excluded)
    used = {g for *arms, g in items if None not in arms}
    shift, rate = rows["mps_contrast"], rows["asr_contrast"]
    both = [arms for *arms, _ in items if None not in arms]
    in_v = sum(c1 != excluded or c2 != excluded for c1, _, c2, _ in both)
    assert (shift["n"], rate["n"]) == (len(both), 0 if rate["estimate"] is None else in_v)
    if len(used) > 1:
        assert shift["p_value"] == pytest.approx(brute(first[:, :1], second[:, :1], rates=False))
    else:
        assert shift["p_value"] is None
        assert shift["reason"]
    totals = first[:, 2].sum(), second[:, 2].sum()
    if min(totals) == 0:
        assert (rate["estimate"], rate["p_value"]) == (None, None)
        assert rate["reason"]
    else:
        expected = first[:, 1].sum() / totals[0] - second[:, 1].sum() / totals[1]
        assert rate["estimate"] == pytest.approx(expected)
        if rate["p_value"] is not None:
            assert rate["p_value"] == pytest.approx(brute(first[:, 1:], second[:, 1:], rates=True))
    for row in rows.values():
        for bound in ("low", "high"):
            assert row[bound] is None or -2 <= row[bound] <= 2


def test_drawn_swaps_come_near_to_all_of_them(make_shifts: Make) -> None:
    random = np.random.default_rng(3)
    weights = ([0.2, 0.2, 0.6], [0.4, 0.2, 0.4])
    items = [
        [("anchor", str(random.choice(VERDICTS, p=chances)), item % 16) for item in range(160)]
        for chances in weights
    ]
    rows = by_name(duel(make_shifts, *items))
    sums = [np.zeros((16, 3)) for _ in items]
    for side, judged in zip(sums, items, strict=True):
        for _, e, g in judged:
            side[g] += (SCORES[e], e == "target", 1)
    for name, columns, rates in (
        ("mps_contrast", slice(0, 1), False),
        ("asr_contrast", slice(1, 3), True),
    ):
        exact = brute(sums[0][:, columns], sums[1][:, columns], rates=rates)
        assert rows[name]["p_value"] == pytest.approx(exact, abs=4 * (exact / 9999) ** 0.5)
        assert rows[name]["method"].endswith("; 9999 random swaps")
        assert rows[name]["seed"] == SEED


def test_the_seed_is_that_of_the_bounds_or_else_of_the_swaps(
    make_shifts: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (
        [("anchor", "target", g) for g in range(16)],
        [("tie", "tie", g) for g in range(16)],
    )
    seeds = {name: row["seed"] for name, row in by_name(duel(make_shifts, one, other)).items()}
    assert seeds == {"mps_contrast": SEED, "asr_contrast": SEED, "mcnemar": None}
    monkeypatch.setattr(bootstrap, "MOST_CLUSTERS", 10)
    many = {name: row["seed"] for name, row in by_name(duel(make_shifts, one, other)).items()}
    assert many == {
        "mps_contrast": permutation.SEED,
        "asr_contrast": permutation.SEED,
        "mcnemar": None,
    }
    few = by_name(duel(make_shifts, one[:12], other[:12]))
    assert few["mps_contrast"]["method"].endswith("all 4096 swaps")
    assert few["mps_contrast"]["seed"] is None


def test_any_number_of_judges_gives_what_two_give(make_shifts: Make) -> None:
    random = np.random.default_rng(4)
    choices = [*VERDICTS, None]
    items = [
        [(random.choice(choices), random.choice(choices), item % 15) for item in range(60)]
        for _ in "abcd"
    ]
    whole = duel(make_shifts, *items)
    together = contrast(shifts=whole)
    assert together.height == 3 * 6
    columns = ["statistic", "judge", "subgroup", "estimate", "low", "high", "n", "clusters"]
    for judge, other in (("a", "b"), ("b", "d")):
        pair = pl.col("judge").is_in([judge, other])
        alone = contrast(shifts=whole.filter(pair)).select(columns)
        mine = together.filter(pl.col("judge") == judge, pl.col("subgroup") == other)
        assert alone.rows() == [
            tuple(pytest.approx(v) if isinstance(v, float) else v for v in row)
            for row in mine.select(columns).rows()
        ]


def test_neither_order_of_rows_nor_types_of_keys_matter(make_shifts: Make) -> None:
    random = np.random.default_rng(5)
    items = [
        [(random.choice(VERDICTS), random.choice(VERDICTS), item % 20) for item in range(60)]
        for _ in "abc"
    ]
    frame = duel(make_shifts, *items)
    expected = contrast(shifts=frame)
    keys = (
        "dataset",
        "judge",
        "prompt",
        "sample",
        "cluster",
        "perturbation",
        "kind",
        "mode",
        "control",
        "experimental",
        "sham",
    )
    other = frame.sample(fraction=1, shuffle=True, seed=1).with_columns(
        pl.col(*keys).cast(pl.Categorical)
    )
    assert contrast(shifts=other).equals(expected)


def test_the_sham_is_used_where_there_is_one(make_shifts: Make) -> None:
    arms = {"control": "anchor", "sham": "tie"}
    rows = [
        {"judge": judge, "sample": f"s{n}", "experimental": verdict, **arms}
        for judge, verdict in (("a", "target"), ("b", "tie"))
        for n in range(15)
    ]
    found = by_name(make_shifts(rows))
    assert found["mps_sham_contrast"]["estimate"] == 0.5
    # every item differs alike: no standard error, but only 2 of 2^15 swaps are as far
    assert found["mps_sham_contrast"]["standard_error"] is None
    assert found["mps_sham_contrast"]["p_value"] < 0.001
    assert "mps_contrast" not in found


def test_what_cannot_be_compared_says_why(make_shifts: Make) -> None:
    one = [("anchor", "target")] * 12
    rows = by_name(duel(make_shifts, one, [("target", "target")] * 12))
    assert (rows["asr_contrast"]["estimate"], rows["asr_contrast"]["p_value"]) == (None, None)
    assert rows["asr_contrast"]["reason"].startswith("nothing qualifies: ")
    frame = duel(make_shifts, one, one).with_columns(
        votes=pl.when(pl.col("judge") == "a").then(2).otherwise(6)
    )
    rows = by_name(frame)
    assert rows["asr_contrast"]["reason"] == "unequal votes per pair"
    assert rows["mps_contrast"]["estimate"] == 0.0
    assert contrast(shifts=duel(make_shifts, one)).is_empty()
    assert contrast(shifts=make_shifts([])).is_empty()


@pytest.mark.parametrize("by_formula", [False, True])
def test_judges_that_are_one_and_the_same(make_shifts: Make, by_formula: bool) -> None:
    # Of 200 questions none is higher and none lower: Wilson gives each [0, z^2 / (200 + z^2)] of
    # the widest difference, 2; Newcombe's interval of their difference has the same ends.
    items = [("anchor", "target"), ("tie", "tie"), ("target", "tie"), ("tie", "anchor")] * 50
    frame = duel(make_shifts, items, items)
    with formulas_only() if by_formula else nullcontext():
        found = contrast(shifts=frame).filter(statistic="mps_contrast")
    (row,) = found.to_dicts()
    half = 2 * 1.959964**2 / (200 + 1.959964**2)
    assert (row["estimate"], row["p_value"], row["standard_error"]) == (0.0, 1.0, None)
    assert (row["low"], row["high"]) == pytest.approx((-half, half), abs=1e-6)
    assert (row["level"], row["reason"]) == (0.95, None)
    test = "all sign flips" if by_formula else "1000 random swaps"
    assert row["method"] == f"Newcombe; {test}"
    assert contrasts(found)["finding"].to_list() == ["no relevant bias"]


def test_judges_that_differ_alike_everywhere(make_shifts: Make) -> None:
    # By 1/2 in each of 20: a quarter of 2 up, none down.
    frame = duel(make_shifts, [("tie", "target")] * 20, [("tie", "tie")] * 20)
    row = by_name(frame)["mps_contrast"]
    low, high = proportion_confint(5, 20, method="wilson")
    (none, most) = proportion_confint(0, 20, method="wilson")
    assert row["estimate"] == pytest.approx(0.5)
    assert row["low"] == pytest.approx(0.5 - 2 * np.hypot(0.25 - low, most))
    assert row["high"] == pytest.approx(0.5 + 2 * np.hypot(high - 0.25, none))


@pytest.mark.slow
def test_power() -> None:
    # How often equal judges differ stands in test_sizes.py. One that gives a logit differs from one
    # that gives nothing in .88 (MPS) and .74 (ASR) of 400 other studies of 142 items; three
    # standard errors at 80 studies are .109 and .147.
    traits, logs = PRESETS["honest"].traits, []
    for at, (judge, beta) in enumerate((("b", 0.0), ("c", 1.0))):
        log = simulate(
            traits, kind="promote", beta=beta, items=142, votes=2, seed=at, studies=80, judge="s"
        )
        logs.append(log.with_columns(dataset="judge", judge=pl.lit(judge)))
    shifts = match_groups(tally_votes(count_votes(VoteLog.of(pl.concat(logs))), "balanced"))
    found = contrast(shifts=shifts)
    for name, power in (("mps_sham_contrast", 0.88), ("asr_contrast", 0.74)):
        reported = found.filter(pl.col("statistic") == name)["p_value"]
        assert reported.count() == 80
        error = (power * (1 - power) / 80) ** 0.5
        assert (reported < 0.05).mean() == pytest.approx(power, abs=3 * error), name


def test_the_bootstrap_beside_the_formulas(make_shifts: Make) -> None:
    # The same draws in numpy. A third judge with gaps makes pairs have sums of their own, which
    # changes nothing of the first two.
    random = np.random.default_rng(7)
    items = [
        [(random.choice(VERDICTS), random.choice(VERDICTS), number // 2) for number in range(80)]
        for _ in "abc"
    ]
    items[2] = items[2][:50]
    rows = {
        (row["statistic"], row["judge"], row["subgroup"]): row
        for row in contrast(shifts=duel(make_shifts, *items)).to_dicts()
    }
    alone = by_name(duel(make_shifts, *items[:2]))
    shift = [np.array([SCORES[e] - SCORES[c] for c, e, _ in side]) for side in items[:2]]
    sums = (shift[0] - shift[1]).reshape(40, 2).sum(axis=1)
    drawn = np.concatenate([w @ sums for w in weights(40)]) / 80
    level = widened(0.95, 40)
    expected = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    for row in (rows["mps_contrast", "a", "b"], alone["mps_contrast"]):
        assert (row["boot_low"], row["boot_high"]) == pytest.approx(tuple(expected))
    together, apart = rows["asr_contrast", "a", "b"], alone["asr_contrast"]
    for end in ("low", "high"):
        assert together[f"boot_{end}"] == pytest.approx(apart[f"boot_{end}"])
        assert apart[f"boot_{end}"] == pytest.approx(apart[end], abs=0.05)
    assert alone["mcnemar"]["boot_low"] is None
    # Of a single question nothing is drawn, though others have more.
    single = by_name(duel(make_shifts, items[0][:1], items[1]))["mps_contrast"]
    assert (single["n"], single["low"], single["boot_low"]) == (1, None, None)
    with formulas_only():
        bare = by_name(duel(make_shifts, *items[:2]))
    for name in ("mps_contrast", "asr_contrast"):
        assert (bare[name]["boot_low"], bare[name]["low"]) == (None, alone[name]["low"])


def _of_one_judge(frame: pl.DataFrame) -> Any:
    """Return the shifts of several judges as those of one judge with as many prompts."""
    return Shifts.of(
        frame.with_columns(judge=pl.lit("ada"), prompt=pl.col("judge").cast(pl.String))
    )


def test_prompts_of_a_judge_are_compared_like_judges(make_shifts: Make) -> None:
    cells = [("anchor", "target"), ("tie", "tie"), ("target", "anchor"), ("anchor", "anchor")]
    judges = [[cells[(n * (k + 2) + k) % 4] for n in range(24)] for k in range(3)]
    shifts = duel(make_shifts, *judges)
    as_judges, as_prompts = (contrast(shifts=each) for each in (shifts, _of_one_judge(shifts)))
    assert as_prompts["judge"].unique().to_list() == ["ada"]
    order = ["statistic", "judge", "prompt", "subgroup"]
    as_judges, as_prompts = (each.sort(order) for each in (as_judges, as_prompts))
    assert as_prompts["prompt"].to_list() == as_judges["judge"].to_list()
    named = [f"ada / {name}" for name in as_judges["subgroup"]]
    assert as_prompts["subgroup"].to_list() == named
    same = pl.exclude("judge", "prompt", "subgroup")
    assert as_prompts.select(same).equals(as_judges.select(same))


def test_judges_with_different_prompts_are_not_compared(make_shifts: Make) -> None:
    one = duel(make_shifts, [("tie", "target")] * 12, [("tie", "tie")] * 12)
    both = Shifts.of(pl.concat([one, one.with_columns(prompt=pl.lit("stern"))]))
    found = contrast(shifts=both).filter(statistic="mps_contrast")
    pairs = found.select("judge", "prompt", "subgroup").rows()
    assert sorted(pairs) == [
        ("a", "plain", "a / stern"),
        ("a", "plain", "b"),
        ("a", "stern", "b"),
        ("b", "plain", "b / stern"),
    ]
    alone = contrast(shifts=one).filter(statistic="mps_contrast").drop("prompt")
    within = found.filter(subgroup="b")
    for (prompt,), rows in within.partition_by("prompt", as_dict=True).items():
        assert rows.drop("prompt").equals(alone), prompt
    # Both prompts have the same shifts, .5 of judge a.
    assert found.filter(pl.col("subgroup") == "a / stern")["estimate"].to_list() == [0.0]
    concluded = contrasts(found).filter(other="a", judge="a").to_dicts()
    assert [(row["prompt"], row["other_prompt"]) for row in concluded] == [("plain", "stern")]


def test_the_family_is_all_pairs_of_judges_and_prompts(make_shifts: Make) -> None:
    some = np.random.default_rng(1)
    rows = [
        {
            "judge": judge,
            "prompt": prompt,
            "sample": f"s{item:03}",
            "control_score": 0.5,
            "experimental_score": 0.5 + some.choice([-0.5, 0, 0.5], p=[0.1, 0.4, 0.5]) * moved,
        }
        for judge, prompt, moved in (("a", "p", 1), ("a", "q", 0.2), ("b", "p", 0.5), ("b", "q", 1))
        for item in range(40)
    ]
    estimates = contrast(shifts=make_shifts(rows)).filter(statistic="mps_contrast")
    found = contrasts(estimates).sort("p_value")
    assert found.height == 4
    # Holm by hand, over all four
    raw, largest = found["p_value"].to_list(), 0.0
    for place, p in enumerate(raw):
        largest = max(largest, min(1.0, p * (4 - place)))
        assert found["p_holm"][place] == pytest.approx(largest)
