import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from tasks.calibration.alt_test import ANNOTATORS, CURVE, JUDGES, AltTest, alt_test
from tasks.metrics import METRICS

Labels = dict[str, dict[str, Any]]


def frame(labels: Labels) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"annotator": who, "item": item, "label": None if x is None else json.dumps(x)}
            for who, given_ in labels.items()
            for item, x in (given_ or {None: None}).items()
        ],
        schema=dict.fromkeys(("annotator", "item", "label"), pl.String),
    )


def run(humans: Labels, judges: Labels, metric: str = "accuracy", **options: Any) -> AltTest:
    options = {"least": 1, **options}
    return alt_test(frame(humans), frame(judges), METRICS[metric], **options)


def tell(labels: str, prefix: str = "i") -> dict[str, str]:
    return {f"{prefix}{number}": label for number, label in enumerate(labels) if label != "-"}


HUMANS = {"Ann": tell("aaab"), "Bob": tell("aabb"), "Cid": tell("abbb")}
JUDGE = {"ada": tell("aaaa")}


def test_by_hand() -> None:
    # Ann, held against Bob and Cid: her a, a, a, b fit 2, 1, 0, 2; ada's a, a, a, a 2, 1, 0, 0.
    # Bob: 2, 1, 1, 2 and ada 2, 1, 1, 0. Cid: 2, 0, 1, 2 and ada 2, 2, 1, 0.
    found = run(HUMANS, JUDGE)
    each = found.annotators
    assert each["annotator"].to_list() == ["Ann", "Bob", "Cid"]
    assert each["n"].to_list() == [4, 4, 4]
    assert each["better"].to_list() == [1, 1, 1]
    assert each["worse"].to_list() == [0, 0, 1]
    assert each["advantage_probability"].to_list() == [0.75, 0.75, 0.75]
    assert each["human_advantage_probability"].to_list() == [1, 1, 0.75]
    assert each["tied"].to_list() == [0.75, 0.75, 0.5]
    assert each["test"].to_list() == ["score"] * 3
    row = found.judges.row(0, named=True)
    assert row["advantage_probability"] == 0.75
    assert row["human_advantage_probability"] == pytest.approx(11 / 12)
    assert row["tied"] == pytest.approx(2 / 3)
    assert (row["n"], row["dropped"], row["annotators"]) == (4, 0, 3)
    assert row["winning_rate"] == 0
    assert row["passed"] is False


def test_frames_have_their_columns() -> None:
    found = run(HUMANS, JUDGE, epsilons=CURVE)
    assert found.judges.schema == JUDGES
    assert found.annotators.schema == ANNOTATORS
    assert found.judges["epsilon"].to_list() == list(CURVE)


def test_items_need_the_judge_and_two_people() -> None:
    humans = {"Ann": tell("aaa-"), "Bob": tell("ab--"), "Cid": tell("a--a")}
    found = run(humans, {"ada": tell("a-aa")})
    # i0 alone: i1 has no label of ada, i2 and i3 one of a person
    row = found.judges.row(0, named=True)
    assert (row["n"], row["dropped"]) == (1, 3)
    assert found.annotators["n"].to_list() == [1, 1, 1]


def test_who_labels_little_is_left_out_of_the_family_but_not_of_the_others() -> None:
    humans = {"Ann": tell("a" * 40), "Bob": tell("a" * 40), "Cid": tell("bb")}
    found = run(humans, {"ada": tell("a" * 40)}, least=30)
    each = found.annotators
    assert each["n"].to_list() == [40, 40, 2]
    assert each["p_value"].is_null().to_list() == [False, False, True]
    assert each["rejected"].to_list() == [True, True, None]
    assert each["reason"][2] == "fewer than 30 instances"
    assert each["advantage_probability"][2] == 1.0
    # Cid counts among Ann's others: alone, these would not be tied
    row = found.judges.row(0, named=True)
    assert (row["annotators"], row["winning_rate"]) == (2, 1.0)
    assert row["reason"] == "fewer than 3 annotators, which is too few to trust the winning rate"


def test_both_tests_are_stored() -> None:
    humans = {name: tell("ab" * 60) for name in ("Ann", "Bob", "Cid")}
    judge = {"ada": tell("ab" * 45 + "ba" * 15)}
    for test in ("t", "score"):
        each = run(humans, judge, test=test).annotators
        assert each["test"].to_list() == [test] * 3
        assert each["p_value"].to_list() == each[f"p_value_{test}"].to_list()
    assert run(humans, judge).annotators["test"].to_list() == ["t"] * 3


def test_margins_of_both_kinds_differ() -> None:
    humans = {name: tell("a" * 100) for name in ("Ann", "Bob", "Cid")}
    judge = {"ada": tell("a" * 85 + "b" * 15)}
    # 100 items, people better in 15: .85 against 1 - eps, or against (1 - eps) * 1, which is alike
    one, two = (
        run(humans, judge, epsilons=[0.2], kind=kind).annotators["p_value_score"][0]
        for kind in ("additive", "multiplicative")
    )
    assert one == pytest.approx(two)
    judge = {"ada": tell("a" * 70 + "b" * 15 + "a" * 15)}
    humans["Ann"] = tell("a" * 70 + "a" * 15 + "b" * 15)
    one, two = (
        run(humans, judge, epsilons=[0.2], kind=kind).annotators["p_value_score"][0]
        for kind in ("additive", "multiplicative")
    )
    # Ann's own advantage probability is .85: .2 of it is less than .2
    assert one < two


def test_families_are_benjamini_yekutielis() -> None:
    humans = {f"H{i}": tell("ab" * (30 + i) + "ba" * i) for i in range(6)}
    found = run(humans, {"ada": tell("ab" * 25 + "bb" * 12)}, epsilons=[0.25]).annotators
    wanted = multipletests(found["p_value"].to_numpy(), 0.05, "fdr_by")[0]
    assert found["rejected"].to_list() == wanted.tolist()


# --- hostile inputs


def test_nothing_in_common() -> None:
    humans = {"Ann": tell("aaaa"), "Bob": tell("abaa"), "Cid": tell("aaaa", "z")}
    found = run(humans, {"ada": tell("aaaa"), "bee": tell("aa", "q")})
    each = found.annotators.filter(pl.col("judge") == "ada")
    assert each["n"].to_list() == [4, 4, 0]
    last = each.row(2, named=True)
    assert last["reason"] == "no instance has labels of the judge and of another person"
    for column in ("p_value", "advantage_probability", "rejected", "tied", "test"):
        assert last[column] is None
    bee = found.judges.row(1, named=True)
    assert bee["winning_rate"] is None
    assert bee["passed"] is None
    assert bee["reason"] == "no instance has labels of the judge and of two people"


def test_one_annotator_only() -> None:
    row = run({"Ann": tell("aaaa")}, JUDGE).judges.row(0, named=True)
    assert row["winning_rate"] is None
    assert row["reason"] == "no instance has labels of the judge and of two people"


def test_all_labels_equal() -> None:
    humans = {name: tell("a" * 40) for name in ("Ann", "Bob", "Cid")}
    found = run(humans, {"ada": tell("a" * 40)}, epsilons=[0.0, 0.1])
    none, some = found.judges.to_dicts()
    assert (none["winning_rate"], some["winning_rate"], some["tied"]) == (0, 1, 1)
    equal = "all labels of people are equal, so any judge that always gives that label passes"
    assert none["reason"] == some["reason"] == equal
    each = found.annotators.filter(pl.col("epsilon") == 0.1)
    assert (
        each["reason"].to_list()
        == ["all differences are equal: t is infinite, its p is 0 or 1"] * 3
    )
    assert each["p_value_t"].to_list() == [0, 0, 0]
    # the score test: z = -n eps / sqrt(n eps (1 - eps)) = -sqrt(40 / 9)
    assert each["p_value"][0] == pytest.approx(0.017507, abs=1e-6)


def test_labels_that_are_equal_on_a_judges_own_items() -> None:
    humans = {name: tell("a" * 40 + "b" * 40) for name in ("Ann", "Bob", "Cid")}
    judges = {
        "half": tell("a" * 40),
        "odd": tell("b" * 40),
        "most": tell("a" * 40 + "b"),
        "one": tell("a" * 80),
    }
    reasons = dict(run(humans, judges).judges.select("judge", "reason").rows())
    assert reasons["half"] == reasons["odd"]
    assert str(reasons["half"]).startswith("all labels of people are equal")
    assert (reasons["most"], reasons["one"]) == (None, None)
    two = run({who: humans[who] for who in ("Ann", "Bob")}, {"half": judges["half"]}).judges
    assert str(two["reason"].item()).startswith("fewer than 3 annotators, ")
    assert "; all labels of people are equal, " in str(two["reason"].item())


def test_a_judge_that_labels_nothing() -> None:
    for nothing in ({}, {"i0": None, "i1": None}):
        row = run(HUMANS, {"ada": nothing}).judges.row(0, named=True)
        assert row["winning_rate"] is None
        assert row["passed"] is None
        assert row["reason"] == "the judge gave no valid label"
        assert row["unreadable"] == len(nothing)


def test_names_are_no_numbers_and_the_reason_says_so() -> None:
    names, numbers = tell("aabb"), {"i0": 1, "i1": 2}
    (row,) = run(HUMANS, {"ada": names}, "neg_rmse").judges["reason"]
    assert row == "the judge gave no number, which metric neg_rmse needs"
    (row,) = run(HUMANS, {"ada": numbers}, "neg_rmse").judges["reason"]
    assert row == (
        "no instance has numbers of the judge and of two people, which metric neg_rmse needs"
    )


def test_unreadable_labels_are_counted_and_left_out() -> None:
    humans = {
        "Ann": {"i0": 1, "i1": "two", "i2": None, "i3": [3], "i4": True, "i5": 5},
        "Bob": {f"i{i}": i for i in range(6)},
        "Cid": {f"i{i}": str(i) for i in range(6)},
    }
    found = run(humans, {"ada": {"i0": 1, "i1": {}, "i5": 1e200}}, "neg_rmse")
    assert found.annotators["unreadable"].to_list() == [4, 0, 0]
    assert found.judges["unreadable"].to_list() == [2]
    assert found.judges["n"].to_list() == [1]


def test_mixed_types_are_names() -> None:
    humans = {"Ann": {"i": 3}, "Bob": {"i": "3"}, "Cid": {"i": 3.0}, "Dan": {"i": True}}
    each = run(humans, {"ada": {"i": "3"}}).annotators
    assert each["better"].to_list() == [0, 0, 0, 0]
    assert each["worse"].to_list() == [0, 0, 0, 1]


@pytest.mark.parametrize("epsilon", [-0.1, 1.0, float("nan")])
def test_epsilon_outside_its_range(epsilon: float) -> None:
    with pytest.raises(ValueError, match="must be at least 0 and below 1"):
        run(HUMANS, JUDGE, epsilons=[epsilon])


def test_options_that_are_not() -> None:
    with pytest.raises(ValueError, match="no test 'wilcoxon'"):
        run(HUMANS, JUDGE, test="wilcoxon")
    with pytest.raises(ValueError, match="must be 1 or more"):
        run(HUMANS, JUDGE, least=0)


def test_two_labels_for_one_item() -> None:
    twice = pl.concat([frame(HUMANS), frame({"Bob": {"i2": None}})])
    with pytest.raises(ValueError, match="'Bob' labels item 'i2' more than once"):
        alt_test(twice, frame(JUDGE), METRICS["accuracy"])
    twice = pl.concat([frame(JUDGE), frame(JUDGE)])
    with pytest.raises(ValueError, match="'ada' labels item 'i0' more than once"):
        alt_test(frame(HUMANS), twice, METRICS["accuracy"])


def test_nothing_at_all() -> None:
    found = run({}, {})
    assert found.judges.schema == JUDGES
    assert found.annotators.schema == ANNOTATORS
    assert found.annotators.is_empty()
    assert run(HUMANS, {}).judges.is_empty()
    alone = run({}, JUDGE).judges.row(0, named=True)
    assert alone["reason"] == "no instance has labels of the judge and of two people"


def test_markup_and_formulas_are_names() -> None:
    odd = ["<script>alert(1)</script>", "=1+1", '=HYPERLINK("x")', "[red]", "{{x}}"]
    humans = {name: {str(i): x for i, x in enumerate(odd)} for name in ("Ann", "Bob", "Cid")}
    each = run(humans, {"ada": dict(humans["Ann"])}).annotators
    assert each["tied"].to_list() == [1, 1, 1]


# --- a second implementation, and what must not matter

NAMES = ("p", "q", "r", "s")
SETS = st.lists(st.sampled_from(NAMES), max_size=4, unique=True)
OWN = {
    "accuracy": st.sampled_from(NAMES),
    "neg_rmse": st.integers(-3, 5),
    "jaccard": SETS,
    "hamming": SETS,
    "macro_jaccard": SETS,
    "bits_jaccard": SETS,
}


def shared(a: set[str], b: set[str]) -> Fraction:
    return Fraction(len(a & b), len(a | b)) if a | b else Fraction(1)


def fits(metric: str, label: Any, others: list[Any], universe: set[str]) -> Fraction:
    """Score as the definitions say, in fractions."""
    if metric == "accuracy":
        return Fraction(sum(label == other for other in others), len(others))
    if metric == "neg_rmse":  # the root is monotone
        return -Fraction(sum((label - other) ** 2 for other in others), len(others))
    mine, theirs = set(label), [set(other) for other in others]
    if metric == "macro_jaccard":
        each = []
        for name in universe:
            either = sum(name in mine or name in other for other in theirs)
            both = sum(name in mine and name in other for other in theirs)
            each.append(Fraction(both, either) if either else Fraction(1))
        return sum(each, Fraction(0))
    score: Callable[[set[str]], Fraction] = {
        "jaccard": lambda other: shared(mine, other),
        "hamming": lambda other: -Fraction(len(mine ^ other)),
        "bits_jaccard": lambda other: (
            shared(mine, other) + shared(universe - mine, universe - other)
        ),
    }[metric]
    return sum(map(score, theirs), Fraction(0)) / len(others)


def slowly(metric: str, humans: Labels, judge: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    sets = metric not in {"accuracy", "neg_rmse"}
    reported = [x for labels in (*humans.values(), judge) for x in labels.values()]
    universe = {name for x in reported for name in x} if sets else set()
    counted = {}
    for who, labels in humans.items():
        n = better = worse = 0
        for item, label in labels.items():
            others = [o[item] for name, o in humans.items() if name != who and item in o]
            if not others or item not in judge:
                continue
            human, other = (fits(metric, x, others, universe) for x in (label, judge[item]))
            n, better, worse = n + 1, better + (human > other), worse + (other > human)
        counted[who] = (n, better, worse)
    return counted


@st.composite
def studies(draw: Any) -> tuple[str, Labels, Labels]:
    metric = draw(st.sampled_from(sorted(OWN)))
    items = st.sampled_from([f"i{i}" for i in range(6)])
    some = st.dictionaries(items, OWN[metric], max_size=6)
    return (
        metric,
        {f"H{i}": draw(some) for i in range(draw(st.integers(1, 5)))},
        {"ada": draw(some)},
    )


@given(studies())
@settings(max_examples=100)
def test_counts_are_those_of_the_definition(study: tuple[str, Labels, Labels]) -> None:
    metric, humans, judges = study
    each = run(humans, judges, metric).annotators.select("annotator", "n", "better", "worse")
    assert {who: tuple(rest) for who, *rest in each.rows()} == slowly(metric, humans, judges["ada"])


def facts(found: AltTest) -> tuple[list[Any], list[Any]]:
    judges = found.judges.drop("judge").rows()
    return judges, sorted(found.annotators.drop("annotator", "judge").rows(), key=repr)


@given(studies(), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_names_and_order_do_not_matter(study: tuple[str, Labels, Labels], random: Any) -> None:
    metric, humans, judges = study
    names = [f"n{i}" for i in range(20)]
    random.shuffle(names)
    who, item = (
        dict(zip(humans, names, strict=False)),
        dict(zip("012345", names[10:], strict=False)),
    )

    def renamed(labels: dict[str, Any]) -> dict[str, Any]:
        return {item[key[1]]: label for key, label in reversed(labels.items())}

    other = {who[name]: renamed(labels) for name, labels in humans.items()}
    one = facts(run(humans, judges, metric, epsilons=[0, 0.2]))
    two = facts(run(other, {"bee": renamed(judges["ada"])}, metric, epsilons=[0, 0.2]))
    for mine, theirs in zip(one[0], two[0], strict=True):
        assert mine == pytest.approx(theirs)
    assert one[1] == two[1]


@given(studies())
@settings(max_examples=50)
def test_winning_rates_rise_with_epsilon(study: tuple[str, Labels, Labels]) -> None:
    metric, humans, judges = study
    for test in ("t", "score"):
        rates = run(humans, judges, metric, epsilons=CURVE, test=test).judges["winning_rate"]
        assert rates.is_sorted()


@given(studies())
@settings(max_examples=50)
def test_whoever_copies_an_annotator_always_ties_with_them(
    study: tuple[str, Labels, Labels],
) -> None:
    metric, humans, _ = study
    each = run(humans, {"ada": humans["H0"]}, metric).annotators.row(0, named=True)
    assert (each["better"], each["worse"]) == (0, 0)
