"""Ranks, against scipy's; their intervals by a second bootstrap; tiers by their contrasts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from benchmarks.simulated_votes import PRESETS, simulate
from schemas.judging import Shifts, Tallies, VoteLog
from tasks.aggregate import count_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.inference.multiplicity import holm
from tasks.pointwise.shifts import rating_shifts
from tasks.statistics.ranking import ranking, ranks, standardised
from tasks.statistics.rating_contrast import rating_contrast
from tasks.statistics.rating_shift import rating_shift

Make = Callable[..., Any]
FEW = "fewer than 10 independent questions"
NOBODY = Tallies.empty()


def study(make_shifts: Make, shifts: dict[str, list[float | None]], **more: Any) -> pl.DataFrame:
    rows = [
        {
            "judge": judge,
            "sample": f"s{n:03}",
            "control_score": 0.5,
            "experimental_score": None if value is None else 0.5 + value,
        }
        for judge, values in shifts.items()
        for n, value in enumerate(values)
    ]
    return make_shifts(rows, **more)


def noisy(mean: float, seed: int, items: int = 60) -> list[float | None]:
    return np.clip(np.random.default_rng(seed).normal(mean, 0.1, items), -0.5, 0.5).tolist()


def people(frame: pl.DataFrame, *names: str) -> Any:
    """Return what tells that these judges are people."""
    return frame.select("dataset", "judge", human=pl.col("judge").is_in(names))


def rows_of(
    frame: pl.DataFrame, statistic: str = "rank", tallies: Any = NOBODY
) -> dict[str, dict[str, Any]]:
    found = ranking(shifts=frame, tallies=tallies)
    rows = found.filter(pl.col("statistic") == statistic).to_dicts()
    return {row["judge"] + row["subgroup"]: row for row in rows}


@pytest.mark.parametrize(("kind", "expected"), [("promote", [1, 2, 3]), ("detract", [2, 3, 1])])
def test_docstring_example(make_shifts: Make, kind: str, expected: list[int]) -> None:
    shifts: dict[str, list[float | None]] = {"a": [-0.02] * 12, "b": [0.1] * 12, "c": [-0.3] * 12}
    found = rows_of(study(make_shifts, shifts, kind=kind))
    assert [found[judge]["estimate"] for judge in "abc"] == expected
    # every question shifts alike, so every draw ranks alike, and 2 of 2^12 swaps are as far
    assert all(row["low"] == row["high"] == row["estimate"] for row in found.values())
    tiers = rows_of(study(make_shifts, shifts, kind=kind), "tier")
    order = sorted("abc", key=lambda judge: found[judge]["estimate"])
    assert sorted(tiers) == sorted(f"{j}{t}" for j, t in zip(order, "abc", strict=True))


def test_letters_tell_directions_apart_which_ranks_do_not(make_shifts: Make) -> None:
    # Rank 3 alone is moved toward the anchor: it shares a letter with the best only.
    means = {"best": 0.0, "up": 0.1, "down": -0.11, "up more": 0.12}
    shifts = {judge: noisy(mean, n) for n, (judge, mean) in enumerate(means.items())}
    frame = study(make_shifts, {"best": [0.5, -0.5] * 30, **{j: shifts[j] for j in [*means][1:]}})
    assert [rows_of(frame)[judge]["estimate"] for judge in means] == [1, 2, 3, 4]
    tiers = [*rows_of(frame, "tier")]
    assert sorted(tiers) == ["besta", "bestb", "downb", "up morea", "upa"]


@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=8))
def test_ranks_like_scipy(values: list[list[int]]) -> None:
    table = np.array(values, float)
    assert (ranks(table) == rankdata(table, axis=1)).all()


def test_intervals_by_a_second_bootstrap(make_shifts: Make) -> None:
    shifts = {
        judge: noisy(mean, n)
        for n, (judge, mean) in enumerate({"a": 0.0, "b": 0.02, "c": 0.03, "d": 0.2}.items())
    }
    found = rows_of(study(make_shifts, shifts))
    table = np.array(list(shifts.values()), float).T
    random = np.random.default_rng(9)
    drawn = np.array(
        [rankdata(np.abs(table[random.integers(0, 60, 60)].mean(axis=0))) for _ in range(4000)]
    )
    for n, judge in enumerate("abcd"):
        low = np.quantile(drawn[:, n], 0.025, method="lower")
        high = np.quantile(drawn[:, n], 0.975, method="higher")
        assert (found[judge]["low"], found[judge]["high"]) == (low, high)
    assert found["d"]["low"] == found["d"]["high"] == 4
    tiers = set(rows_of(study(make_shifts, shifts), "tier"))
    assert "db" in tiers
    assert {"aa", "ba"} <= tiers


def test_what_cannot_be_ranked_says_why(make_shifts: Make) -> None:
    shifts: dict[str, list[float | None]] = {
        "a": noisy(0.0, 1, 15),
        "b": [None] * 15,
        "c": noisy(0.3, 2, 15),
        "d": [0.1, *[None] * 14],
    }
    found = rows_of(study(make_shifts, shifts))
    assert (found["b"]["estimate"], found["b"]["low"]) == (None, None)
    assert found["b"]["reason"].startswith("nothing qualifies: ")
    assert (found["d"]["estimate"], found["d"]["low"], found["d"]["reason"]) == (None, None, FEW)
    assert (found["a"]["estimate"], found["c"]["estimate"]) == (1, 2)
    assert {key[0] for key in rows_of(study(make_shifts, shifts), "tier")} == {"a", "c"}
    alone = rows_of(study(make_shifts, {"a": noisy(0, 1)}))
    assert (alone["a"]["estimate"], alone["a"]["reason"]) == (
        None,
        "a single judge: nothing to rank",
    )
    assert ranking(shifts=make_shifts([]), tallies=NOBODY).is_empty()


@pytest.mark.parametrize("clusters", [1, 9])
def test_who_saw_few_questions_pushes_nobody(make_shifts: Make, clusters: int) -> None:
    judges = {"a": noisy(0.02, 1), "b": noisy(0.03, 2), "c": noisy(0.2, 3)}
    few: list[float | None] = [0.0] * clusters + [None] * (60 - clusters)
    alone, more = (
        rows_of(study(make_shifts, shifts)) for shifts in (judges, {**judges, "person": few})
    )
    columns = ("estimate", "low", "high", "reason")
    for judge in judges:
        assert [more[judge][c] for c in columns] == [alone[judge][c] for c in columns]
    assert more["person"]["estimate"] is None
    # Nobody is left to rank "a" against.
    both = rows_of(study(make_shifts, {"a": judges["a"], "person": few}))
    assert both["a"]["reason"] == "a single judge: nothing to rank"


@pytest.mark.parametrize(("clusters", "ranked"), [(9, {}), (10, {"aa": 1, "bb": 2})])
def test_below_ten_questions_nobody_is_ranked(
    make_shifts: Make, clusters: int, ranked: dict[str, int]
) -> None:
    # All shift alike, so 2 of 2^9 or 2^10 swaps are as far: p below .05 with both.
    frame = study(make_shifts, {"a": [0.0] * clusters, "b": [0.4] * clusters})
    assert {key: row["estimate"] for key, row in rows_of(frame, "tier").items()} == ranked
    reported = [rows_of(frame)[judge]["estimate"] for judge in "ab"]
    assert reported == ([*ranked.values()] or [None, None])


UNSHARED = "shares too few questions with the other judges: fewer than 10"


def test_ranks_rest_on_what_all_judges_saw(make_shifts: Make) -> None:
    # Alike where both have a score; what b did not read would have moved a, and its rank.
    easy, hard = [0.0, 0.0, 0.0, 0.5] * 5, [0.5] * 20
    found = rows_of(study(make_shifts, {"a": easy + hard, "b": [*easy, *[None] * 20]}))
    for row in found.values():
        assert (row["n"], row["clusters"], row["dropped"]) == (20, 20, 20)
        # Where two tie in every draw, that is no certainty.
        assert (row["estimate"], row["low"], row["high"], row["level"]) == (1.5, None, None, None)
        assert row["reason"] == "equal to another judge in every draw: no interval"


def test_all_ties_give_no_interval_and_twins_leave_that_of_others(make_shifts: Make) -> None:
    still = rows_of(study(make_shifts, dict.fromkeys("abc", [0.0] * 20)))
    assert {(row["estimate"], row["low"]) for row in still.values()} == {(2.0, None)}
    one = noisy(0.3, 4)
    found = rows_of(study(make_shifts, {"a": one, "b": [0.0] * len(one), "c": one}))
    assert (found["a"]["low"], found["c"]["low"]) == (None, None)
    assert (found["b"]["estimate"], found["b"]["low"], found["b"]["high"]) == (1.0, 1.0, 1.0)


def test_a_person_of_few_questions_has_a_rank_and_changes_none(make_shifts: Make) -> None:
    models = {"a": noisy(0.0, 1), "b": noisy(0.1, 2), "c": noisy(0.2, 3)}
    alone = rows_of(study(make_shifts, models))
    short: list[float | None] = [None] * 48
    # The person moves as b does, by a little more, on the twelve questions read.
    person = [*short, *(value + 0.01 for value in models["b"][48:] if value is not None)]
    frame = study(
        make_shifts, {**models, "person": person, "quick": [*short, *[0.0] * 9, *[None] * 3]}
    )
    reported = people(frame, "person", "quick")
    found = rows_of(frame, tallies=reported)
    assert {judge: found[judge] for judge in models} == alone
    shared = np.array([*(values[48:] for values in models.values()), person[48:]], float)
    place = rankdata(np.abs(shared.mean(axis=1)))[-1]
    row = found["person"]
    assert (row["estimate"], row["n"], row["clusters"], row["dropped"]) == (place, 12, 12, 48)
    assert row["low"] <= place <= row["high"]
    assert (found["quick"]["estimate"], found["quick"]["reason"]) == (None, FEW)
    letters = rows_of(frame, "tier", reported)
    assert [key for key in letters if key.startswith("person")]
    assert {k: v for k, v in letters.items() if v["judge"] in models} == rows_of(
        study(make_shifts, models), "tier"
    )


def test_without_two_models_people_are_ranked_with_all(make_shifts: Make) -> None:
    frame = study(make_shifts, {"a": [0.0] * 12, "p": [0.4] * 12, "q": [0.2] * 12})
    found = rows_of(frame, tallies=people(frame, "p", "q"))
    assert {judge: row["estimate"] for judge, row in found.items()} == {"a": 1, "p": 3, "q": 2}


@pytest.mark.parametrize(("common", "ranked"), [(0, []), (9, []), (10, ["a", "b"])])
def test_judges_that_share_too_few_questions_are_not_ranked(
    make_shifts: Make, common: int, ranked: list[str]
) -> None:
    none: list[float | None] = [None] * 5
    shared = len(none) + common
    frame = study(make_shifts, {"a": [*none, *[0.0] * shared], "b": [*[0.4] * shared, *none]})
    found = rows_of(frame)
    assert [judge for judge in "ab" if found[judge]["estimate"] is not None] == ranked
    assert {row["reason"] for row in found.values()} == (
        {None} if ranked else {FEW if common == 0 else UNSHARED}
    )
    assert {row["n"] for row in found.values()} == {common if ranked else 0}
    assert {key[0] for key in rows_of(frame, "tier")} == set(ranked)


def test_one_question_of_two_samples_is_shared_by_its_samples(make_shifts: Make) -> None:
    # Each judge has one of the two samples of every question.
    frame = study(make_shifts, {"a": [0.0, None] * 12, "b": [None, 0.4] * 12})
    halves = pl.col("sample").str.slice(1).cast(pl.Int64) // 2
    found = rows_of(frame.with_columns(cluster=pl.format("q{}", halves)))
    assert {row["reason"] for row in found.values()} == {UNSHARED}


@pytest.mark.parametrize(
    ("seen", "ranked"),
    [
        # Of all three 4 are shared, without c as without d 12, which share as much: by name.
        ({"a": (0, 20), "c": (0, 12), "d": (8, 20)}, "ad"),
        # Without b 15 are shared, without a or c 5.
        ({"a": (0, 20), "b": (0, 10), "c": (5, 20)}, "ac"),
        # Two groups that have nothing in common, names in turn: one of them stays whole.
        (
            {"a": (0, 12), "c": (0, 12), "e": (0, 12), "b": (20, 32), "d": (20, 32), "f": (20, 32)},
            "bdf",
        ),
        # The tenth question is enough, of any number of judges.
        ({"a": (0, 20), "b": (3, 20), "c": (0, 13)}, "abc"),
    ],
)
def test_who_shares_least_is_left_out(
    make_shifts: Make, seen: dict[str, tuple[int, int]], ranked: str
) -> None:
    shifts: dict[str, list[float | None]] = {
        judge: [0.1 * n if first <= s < last else None for s in range(32)]
        for n, (judge, (first, last)) in enumerate(seen.items())
    }
    found = rows_of(study(make_shifts, shifts))
    assert "".join(judge for judge in sorted(found) if not found[judge]["reason"]) == ranked
    assert {found[judge]["reason"] for judge in set(seen) - set(ranked)} <= {UNSHARED}
    spans = [seen[judge] for judge in ranked]
    n = min(last for _, last in spans) - max(first for first, _ in spans)
    reported = [found[judge] for judge in ranked]
    assert {(row["n"], row["clusters"], row["dropped"]) for row in reported} == {(n, n, 32 - n)}


def test_order_of_rows_and_types_of_keys_do_not_matter(make_shifts: Make) -> None:
    frame = study(make_shifts, {judge: noisy(0.05 * n, n) for n, judge in enumerate("abcd")})
    other = frame.sample(fraction=1, shuffle=True, seed=1).with_columns(
        pl.col("judge", "sample", "cluster", "perturbation", "kind").cast(pl.Categorical)
    )
    assert ranking(shifts=other, tallies=NOBODY).equals(ranking(shifts=frame, tallies=NOBODY))


@pytest.mark.slow
def test_rankings_are_mostly_noise() -> None:
    # 8 judges, 142 questions, effects spread over 0 to 1 logit, simulated: neighbours cannot be
    # told apart, so intervals span several of the 7 ranks that they could.
    traits = PRESETS["honest"].traits
    logs = [
        simulate(
            traits,
            kind="promote",
            beta=n / 7,
            items=142,
            votes=6,
            seed=100 * study + n,
            judge=f"judge {n}",
        ).with_columns(dataset=pl.lit(f"study {study}"))
        for study in range(10)
        for n in range(8)
    ]
    shifts = match_groups(tally_votes(count_votes(VoteLog.of(pl.concat(logs))), "balanced"))
    found = ranking(shifts=shifts, tallies=NOBODY).filter(pl.col("statistic") == "rank")
    truth = pl.col("judge").str.tail(1).cast(pl.Float64) + 1
    assert 2.3 < (found["high"] - found["low"]).mean() < 4.8
    assert found.select(truth.is_between("low", "high").mean()).item() > 0.85


def test_judges_are_ranked_with_each_prompt(make_shifts: Make) -> None:
    """The ranking of judges with prompts is that of as many judges with one prompt."""
    shifts = {
        name: noisy(0.05 * place, place) for place, name in enumerate(("ap", "aq", "bp", "bq"))
    }
    one = study(make_shifts, shifts)
    names = pl.col("judge").cast(pl.String)
    units = Shifts.of(one.with_columns(judge=names.str.slice(0, 1), prompt=names.str.slice(1, 1)))
    for statistic in ("rank", "tier"):
        single = ranking(shifts=one, tallies=NOBODY).filter(statistic=statistic)
        several = ranking(shifts=units, tallies=NOBODY).filter(statistic=statistic)
        together = several.with_columns(judge=pl.col("judge").cast(pl.String) + several["prompt"])
        key = ["judge", "subgroup"]
        same = pl.exclude("prompt")
        assert together.select(same).sort(key).equals(single.select(same).sort(key))
    assert several["prompt"].n_unique() == 2


def test_prompts_asked_about_different_questions_are_ranked_apart(make_shifts: Make) -> None:
    one = study(make_shifts, {"a": noisy(0.0, 1), "b": noisy(0.1, 2)})
    other = study(make_shifts, {"a": noisy(0.2, 3), "c": noisy(0.1, 4)}, prompt="stern")
    other = other.with_columns(pl.col("sample", "cluster").cast(pl.String) + "x")
    found = ranking(shifts=Shifts.of(pl.concat([one, other])), tallies=NOBODY)
    ranked = found.filter(statistic="rank").select("judge", "prompt", "estimate", "n", "dropped")
    assert sorted(ranked.rows()) == [
        ("a", "plain", 1.0, 60, 0),
        ("a", "stern", 2.0, 60, 0),
        ("b", "plain", 2.0, 60, 0),
        ("c", "stern", 1.0, 60, 0),
    ]


def grades(judge: str, shift: float, seed: int, *, items: int = 60) -> list[dict[str, Any]]:
    """Return ratings of a judge whose grades a perturbation moves by ``shift`` points."""
    random = np.random.default_rng(seed)
    quality = random.normal(5.5, 1.5, items)
    arms = {"control": 0.0, "sham": 0.0, "experimental": shift}
    return [
        {"judge": judge, "sample": f"s{i:03}", "arm": arm, "value": float(value)}
        for arm, more in arms.items()
        for i, value in enumerate(np.clip(quality + more + random.normal(0, 0.8, items), 1, 10))
    ]


def test_grades_are_ranked_by_shifts_in_standard_deviations(make_ratings: Make) -> None:
    """Shifts by ``rating_shift``; intervals by a bootstrap of the ratio; letters by contrasts."""
    judges = {"a": 0.0, "b": 0.1, "c": 1.2, "d": -1.4}
    rows = [row for n, (j, shift) in enumerate(judges.items()) for row in grades(j, shift, n)]
    ratings = make_ratings(rows)
    none = {"shifts": Shifts.empty(), "tallies": NOBODY}
    found = ranking(**none, ratings=ratings)
    rank = {row["judge"]: row for row in found.filter(statistic="rank").to_dicts()}
    shifts = rating_shift(ratings=ratings).filter(statistic="rating_shift_sham_sd")
    order = sorted(shifts.to_dicts(), key=lambda row: abs(row["estimate"]))
    assert [rank[row["judge"]]["estimate"] for row in order] == [1, 2, 3, 4]
    assert {row["floor"] for row in rank.values()} == {"sham"}
    table = {(row["judge"], row["arm"], row["sample"]): row["value"] for row in rows}
    control, sham, changed = (
        np.array([[table[j, arm, f"s{i:03}"] for j in judges] for i in range(60)])
        for arm in ("control", "sham", "experimental")
    )
    random = np.random.default_rng(9)
    drawn = []
    for _ in range(4000):
        at = random.integers(0, 60, 60)
        effect = (changed - sham)[at].mean(axis=0) / control[at].std(axis=0)
        drawn.append(rankdata(np.abs(effect)))
    for n, judge in enumerate(judges):
        low = np.quantile([row[n] for row in drawn], 0.025, method="lower")
        high = np.quantile([row[n] for row in drawn], 0.975, method="higher")
        assert (rank[judge]["low"], rank[judge]["high"]) == (low, high)
    apart = rating_contrast(ratings=ratings).filter(statistic="rating_sham_contrast")
    adjusted = apart.with_columns(p=holm(apart["p_value"]))
    tiers: dict[str, set[str]] = {}
    for row in found.filter(statistic="tier").to_dicts():
        tiers.setdefault(row["judge"], set()).add(row["subgroup"])
    for row in adjusted.to_dicts():
        assert (row["p"] < 0.05) == tiers[row["judge"]].isdisjoint(tiers[row["subgroup"]])


def test_linearised_shifts_have_the_mean_and_the_error_of_the_standardised_shift(
    make_ratings: Make,
) -> None:
    ratings = make_ratings(grades("a", 0.7, 1, items=20))
    [row] = rating_shift(ratings=ratings).filter(statistic="rating_shift_sham_sd").to_dicts()
    shifts = rating_shifts(ratings).with_columns(over_sham=True)
    values = shifts.select(standardised()).to_series()
    assert values.mean() == pytest.approx(row["estimate"])
    assert float(values.std()) / 20**0.5 == pytest.approx(row["standard_error"])


def test_prompts_with_different_scales_are_ranked_apart(make_ratings: Make) -> None:
    rows = [
        {**row, "prompt": prompt, "highest": highest}
        for prompt, highest in (("ten", 10.0), ("other ten", 10.0), ("hundred", 100.0))
        for row in [*grades("a", 0.0, 1), *grades("b", 1.0, 2)]
    ]
    found = ranking(shifts=Shifts.empty(), tallies=NOBODY, ratings=make_ratings(rows)).filter(
        statistic="rank"
    )
    ranks = {(r["prompt"], r["judge"]): r["estimate"] for r in found.to_dicts()}
    assert ranks == {
        ("ten", "a"): 1.5,
        ("other ten", "a"): 1.5,
        ("ten", "b"): 3.5,
        ("other ten", "b"): 3.5,
        ("hundred", "a"): 1,
        ("hundred", "b"): 2,
    }


def test_judges_that_pass_or_fail_are_ranked_apart_from_those_that_grade(
    make_ratings: Make,
) -> None:
    def passes(judge: str, flips: int) -> list[dict[str, Any]]:
        kept = {"judge": judge, "prompt": "binary", "kind": "label", "lowest": None}
        return [
            {**kept, "sample": f"s{i:03}", "arm": arm, "value": value, "highest": None}
            for i in range(40)
            for arm, value in (
                ("control", float(i % 2)),
                ("experimental", 1.0 if i < flips else float(i % 2)),
            )
        ]

    everything = [row | {"value": 1.0, "judge": "c"} for row in passes("c", 0)]
    rows = [*grades("a", 0.0, 1), *grades("b", 1.0, 2), *passes("a", 4), *passes("b", 30)]
    found = ranking(
        shifts=Shifts.empty(), tallies=NOBODY, ratings=make_ratings([*rows, *everything])
    ).filter(statistic="rank")
    ranks = {(r["prompt"], r["judge"]): r["estimate"] for r in found.to_dicts()}
    graded = {("grade", "a"): 1, ("grade", "b"): 2}
    # Who passes every answer is not the least biased of all.
    assert ranks == graded | {("binary", "a"): 1, ("binary", "b"): 2, ("binary", "c"): None}
    [unmoved] = found.filter(judge="c").to_dicts()
    assert "nothing could move them" in unmoved["reason"]
