"""Judges against people: figures by hand, from scikit-learn, and from labels of real annotators."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import polars as pl
import pytest

from tasks.agreement.compare import ADJUSTMENT, ComparisonWithPeople, Options, compare
from tasks.agreement.label_kinds import Declared
from tasks.calibration.calibrate import labelled_by_files
from tasks.kit.defaults import CalibrationThresholds, calibrated_by, share_interval
from tasks.reporting.agreement_rows import judge_views

Labels = dict[str, Sequence[Any]]


def frame(labels: Labels) -> pl.DataFrame:
    rows = [
        (who, f"i{place:03}", None if label is None else json.dumps(label))
        for who, given in labels.items()
        for place, label in enumerate(given)
    ]
    schema = dict.fromkeys(("annotator", "item", "label"), pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")


def run(
    humans: Labels,
    judges: Labels,
    options: Options | None = None,
    clusters: Sequence[str] = (),
    **columns: Sequence[Any],
) -> ComparisonWithPeople:
    labelled = labelled_by_files("d", frame(humans), frame(judges))
    items = labelled.items.sort("item").with_columns(
        pl.Series(f"slice:{name}", values) for name, values in columns.items()
    )
    if clusters:
        items = items.with_columns(cluster=pl.Series(clusters))
    return compare([labelled._replace(items=items)], options or Options())


def table(
    found: ComparisonWithPeople, judge: str = "j", part: str | None = None
) -> dict[str, dict[str, Any]]:
    rows = found.measures.filter(
        pl.col("judge") == judge, pl.col("slice").eq_missing(pl.lit(part, pl.String))
    )
    return {row["statistic"]: row for row in rows.to_dicts()}


# 30 passes of people, of which the judge passes 24; 20 fails, of which it fails 15.
HUMAN = ["pass"] * 30 + ["fail"] * 20
JUDGE = ["pass"] * 24 + ["fail"] * 6 + ["pass"] * 5 + ["fail"] * 15


def test_pass_and_fail_by_hand() -> None:
    found = run({"h": HUMAN}, {"j": JUDGE})
    rows = table(found)
    expected = {
        "agreement": 39 / 50,
        "agreement_by_chance": 29 / 50 * 30 / 50 + 21 / 50 * 20 / 50,
        "majority_share": 0.6,
        "kappa": (0.78 - 0.516) / (1 - 0.516),
        "tpr": 24 / 30,
        "tnr": 15 / 20,
        "judge_mean": 0.58,
        "human_mean": 0.6,
        "bias": -0.02,
    }
    assert {name: rows[name]["estimate"] for name in expected} == pytest.approx(expected)
    # Wilson at 29 effective items (30 clusters: G / (G - 1)), by hand: (.8 + .06623) / 1.13246 -+
    # 1.96 sqrt(.00552 + .00114) / 1.13246
    assert (rows["tpr"]["low"], rows["tpr"]["high"]) == pytest.approx((0.6237, 0.9061), abs=1e-4)
    # squared differences sum to 11, mean -.02: SE^2 = (11 - 50 * .0004) / (49 * 50), t = 2.0096
    assert rows["bias"]["high"] == pytest.approx(-0.02 + 2.00958 * 0.066945, abs=1e-4)
    assert rows["bias"]["finding"] == "inconclusive"
    # (2.8016 / .05)^2 * SE^2 * n = 703.6
    assert rows["labels_for_bias"]["estimate"] == 704
    # 1.96^2 * .7593 * .2407 / .05^2 * 50 / 49, p = 41 / 54: moved by two hits and two misses
    assert rows["labels_for_agreement"]["estimate"] == 287
    cells = {(h, j): n for h, j, n in found.confusion["human_label", "judge_label", "items"].rows()}
    assert cells == {
        ("pass", "pass"): 24,
        ("pass", "fail"): 6,
        ("fail", "pass"): 5,
        ("fail", "fail"): 15,
    }
    assert found.disagreements.height == 11


def test_exact_intervals_on_request() -> None:
    """Clopper-Pearson of .8 of 29 effective items: quantiles of beta distributions."""
    beta = pytest.importorskip("scipy.stats").beta
    with share_interval("clopper_pearson"):
        rows = table(run({"h": HUMAN}, {"j": JUDGE}))
    assert (rows["tpr"]["low"], rows["tpr"]["high"]) == pytest.approx(
        (beta.ppf(0.025, 23.2, 6.8), beta.ppf(0.975, 24.2, 5.8))
    )


def test_what_the_judge_failed_to_say_is_no_fail() -> None:
    judge: list[Any] = [*JUDGE]
    judge[0], judge[1], judge[49], judge[48] = "ERROR: time-out", None, "maybe", None
    rows = table(run({"h": HUMAN}, {"j": judge}))
    assert {row["missing"] for row in rows.values()} == {2}
    assert {row["invalid"] for row in rows.values()} == {2}
    assert rows["agreement"]["n"] == 46
    assert rows["tpr"]["estimate"] == pytest.approx(22 / 28)
    assert rows["tnr"]["estimate"] == pytest.approx(13 / 18)


def test_grades_against_other_libraries() -> None:
    stats = pytest.importorskip("scipy.stats")
    metrics = pytest.importorskip("sklearn.metrics")
    human = [1, 2, 2, 3, 5, 4, 4, 2, 1, 5, 3, 3, 4, 2, 5, 1, 3, 4, 2, 5]
    judge = [2, 2, 3, 3, 5, 5, 4, 3, 1, 5, 4, 3, 5, 2, 4, 2, 3, 4, 1, 5]
    rows = table(run({"h": human}, {"j": judge}))
    for name, weights in (
        ("kappa", None),
        ("kappa_linear", "linear"),
        ("kappa_quadratic", "quadratic"),
    ):
        expected = metrics.cohen_kappa_score(human, judge, weights=weights)
        assert rows[name]["estimate"] == pytest.approx(expected), name
    assert rows["spearman"]["estimate"] == pytest.approx(stats.spearmanr(human, judge).statistic)
    assert rows["kendall"]["estimate"] == pytest.approx(stats.kendalltau(human, judge).statistic)
    apart = [a - b for a, b in zip(judge, human, strict=True)]
    interval = stats.ttest_1samp(apart, 0)
    assert rows["bias"]["estimate"] == pytest.approx(sum(apart) / 20)
    assert rows["bias"]["p_value"] == pytest.approx(interval.pvalue)
    ends = interval.confidence_interval(0.95)
    assert (rows["bias"]["low"], rows["bias"]["high"]) == pytest.approx((ends.low, ends.high))
    assert rows["mean_error"]["estimate"] == pytest.approx(sum(map(abs, apart)) / 20)


def test_people_are_combined_and_compared_with_each_other() -> None:
    people = {"A": ["pass", "pass", "fail", "pass"], "B": ["pass", "fail", "fail", "fail"]}
    three = {**people, "C": ["pass", "pass", "fail", None]}
    found = run(three, {"j": ["pass", "pass", "pass", "pass"]})
    rows = table(found)
    # pass, pass, fail, and a tie, which is left out
    assert (rows["agreement"]["n"], rows["agreement"]["tied"]) == (3, 1)
    assert rows["agreement"]["estimate"] == pytest.approx(2 / 3)
    # Items 1 and 3: everybody agrees with the others. Item 2: for A and C the others are tied, B
    # disagrees with both. Item 4: each disagrees with the other.
    people_rows = table(found, "humans")
    assert people_rows["people_agreement"]["estimate"] == pytest.approx(6 / 9)
    assert people_rows["people_agreement"]["n"] == 9
    assert found.disagreements.select("item", "human_share").rows() == [("i002", 1.0)]


def test_disagreement_on_every_item_has_an_interval() -> None:
    """Wilson's limit of 0 of 40, z^2 / (40 + z^2), and agreement by chance 1/2."""
    human = ["pass", "fail"] * 20
    rows = table(run({"h": human}, {"j": human[::-1]}))
    high = rows["agreement"]["high"]
    assert (rows["agreement"]["estimate"], rows["kappa"]["estimate"]) == (0, pytest.approx(-1))
    assert high == pytest.approx(1.95996**2 / (40 + 1.95996**2), abs=1e-4)
    ends = (rows["kappa"]["low"], rows["kappa"]["high"])
    assert ends == pytest.approx((-1, (high - 0.5) / 0.5))


def test_several_people_s_grades_are_averaged() -> None:
    found = run({"A": [1, 2, 5, 4], "B": [2, 2, 4, 4]}, {"j": [2, 2, 5, 1]})
    rows = table(found)
    assert rows["human_mean"]["estimate"] == pytest.approx((1.5 + 2 + 4.5 + 4) / 4)
    assert rows["bias"]["estimate"] == pytest.approx(-0.5)
    worst = found.disagreements.select("item", "human_label", "judge_label", "gap").rows()
    assert worst[0] == ("i003", "4", "1", 3.0)
    assert [row[3] for row in worst] == [3.0]
    assert table(found, "humans")["people_error"]["estimate"] == pytest.approx((1 + 0 + 1 + 0) / 4)


def test_the_error_of_people_s_grades_may_exceed_1() -> None:
    stats = pytest.importorskip("scipy.stats")
    found = run({"A": [1, 2, 5, 9], "B": [4, 2, 3, 4]}, {"j": [2, 2, 5, 1]})
    row = table(found, "humans")["people_error"]
    # Both people of an item differ from the other by 3, 0, 2 and 5.
    low, high = stats.ttest_1samp([3, 0, 2, 5], 0).confidence_interval(0.95)
    assert row["estimate"] == pytest.approx(2.5)
    assert (row["low"], row["high"]) == pytest.approx((low, high))


def test_the_other_side_of_a_pair_is_worse_than_a_tie() -> None:
    people = ["anchor", "anchor", "tie", "target", "target"]
    found = run({"h": people}, {"j": ["tie", "target", "anchor", "target", "anchor"]})
    listed = found.disagreements.select("item", "gap").rows()
    assert listed == [("i001", 1.0), ("i004", 1.0), ("i000", 0.5), ("i002", 0.5)]


def test_grades_outside_the_scale_are_invalid() -> None:
    found = run({"h": [1, 2, 3, 4]}, {"j": [1, 2, 30, "7/10"]}, Options(Declared(scale=(1.0, 5.0))))
    row = table(found)["agreement"]
    assert (row["n"], row["invalid"]) == (2, 2)


def test_kappa_at_its_ends() -> None:
    perfect = table(run({"h": HUMAN}, {"j": HUMAN}))
    low = perfect["agreement"]["low"]
    # by chance .6^2 + .4^2 = .52
    assert perfect["kappa"]["estimate"] == pytest.approx(1)
    assert perfect["kappa"]["low"] == pytest.approx((low - 0.52) / 0.48)
    # Five items with people's names for the faults: no bound without pass and fail.
    names = table(run({"h": ["bug", "slow"] * 5}, {"j": ["bug"] * 10}))["kappa"]
    assert (names["estimate"], names["low"]) == (pytest.approx(0), None)
    assert "no variation" in names["reason"]


@pytest.mark.parametrize("constant", ["judge", "people"])
def test_kappa_of_one_verdict_is_bounded_by_verdicts_not_seen(constant: str) -> None:
    always = ["pass"] * 50
    humans, judges = (HUMAN, always) if constant == "judge" else (always, HUMAN)
    kappa = table(run({"h": humans}, {"j": judges}))["kappa"]
    # Wilson: none of 50 is .07135 at most; 30 of 50, whose effective size is 49, lies in .46044 to
    # .72502, so the two differ on .27498 to .53956 of the items. The ends by hand:
    # 1 - (.27498 - .07135) / (.27498 + .07135 - 2 * .07135 * .27498) = .3369 and
    # 1 - (.53956 + .07135) / (.53956 + .07135 - 2 * .07135 * .53956) = -.1442.
    assert kappa["estimate"] == pytest.approx(0)
    assert kappa["high"] == pytest.approx(0.3369, abs=5e-5)
    assert kappa["low"] == pytest.approx(-0.1442, abs=5e-5)
    assert kappa["reason"] is None


def test_names_have_no_rates_and_no_bias() -> None:
    rows = table(run({"h": ["bug", "billing", "bug", "other"]}, {"j": ["bug", "bug", "bug", "x"]}))
    assert rows["agreement"]["estimate"] == 0.5
    assert {*rows} == {
        "agreement",
        "agreement_by_chance",
        "majority_share",
        "kappa",
        "labels_for_agreement",
        "labels_to_decide",
    }


def test_labels_to_decide_are_the_fewest_with_a_chance_of_80_percent() -> None:
    # 14 items of 50 differ: kappa is above the limit of .20, and its interval is not.
    judge = ["pass"] * 22 + ["fail"] * 8 + ["pass"] * 6 + ["fail"] * 14
    rows = table(run({"h": HUMAN}, {"j": judge}))
    kappa, limit = rows["kappa"], 0.2
    assert kappa["finding"] == "inconclusive"

    def chance(total: float) -> float:
        """The estimate from all items is normal; the chance that its interval leaves the limit."""
        narrower = (50 / total) ** 0.5
        error = (kappa["high"] - kappa["low"]) / 2 / 1.959964 * (1 - 50 / total) ** 0.5
        later = NormalDist(kappa["estimate"], error)
        above = kappa["high"] - kappa["estimate"], kappa["estimate"] - kappa["low"]
        lost = later.cdf(limit - above[0] * narrower)
        return lost + 1 - later.cdf(limit + above[1] * narrower)

    more = rows["labels_to_decide"]["estimate"]
    # Totals are tried in steps of .6 %.
    assert chance((50 + more) / 1.006 - 1) < 0.8 <= chance(50 + more)
    always = ["pass"] * 30 + ["fail"] * 20
    assert "labels_to_decide" not in table(run({"h": HUMAN}, {"j": always}))


def test_the_pass_can_be_named() -> None:
    human, judge = ["Safe", "unsafe", "safe", "unsafe"], ["safe", "safe", "SAFE", "unclear"]
    rows = table(run({"h": human}, {"j": judge}, Options(Declared(positive="safe"))))
    assert rows["tpr"]["estimate"] == 1
    assert (rows["tnr"]["n"], rows["agreement"]["invalid"]) == (1, 1)


def test_slices_have_results_of_their_own_in_one_family() -> None:
    slices = ["easy", "hard"] * 25
    found = run({"h": HUMAN}, {"j": JUDGE}, column=slices)
    easy, hard, whole = (table(found, part=part) for part in ("easy", "hard", None))
    assert easy["agreement"]["n"] + hard["agreement"]["n"] == 50
    assert easy["agreement"]["slice_column"] == "column"
    apart = easy["agreement"]["estimate"] - hard["agreement"]["estimate"]
    assert easy["agreement_difference"]["estimate"] == pytest.approx(apart)
    assert hard["agreement_difference"]["estimate"] == pytest.approx(-apart)
    assert "agreement_difference" not in whole
    # Benjamini-Hochberg by hand over the five p-values of this calibration.
    tests = found.measures.filter(pl.col("p_value").is_not_null()).sort("p_value")
    assert tests.height == 5
    p, best = tests["p_value"].to_list(), 1.0
    expected = []
    for rank in range(5, 0, -1):
        best = min(best, p[rank - 1] * 5 / rank)
        expected.append(best)
    assert tests["p_adjusted"].to_list() == pytest.approx(expected[::-1])
    assert {*tests["adjustment"]} == {ADJUSTMENT}


def test_a_slice_against_the_rest_by_hand() -> None:
    """Newcombe, from the Wilson intervals of the two parts."""
    found = run({"h": HUMAN}, {"j": JUDGE}, column=["easy", "hard"] * 25)
    easy, hard = (table(found, part=part)["agreement"] for part in ("easy", "hard"))
    (a, la, ua), (b, lb, ub) = ((r["estimate"], r["low"], r["high"]) for r in (easy, hard))
    row = table(found, part="easy")["agreement_difference"]
    low = a - b - ((a - la) ** 2 + (ub - b) ** 2) ** 0.5
    high = a - b + ((ua - a) ** 2 + (b - lb) ** 2) ** 0.5
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    assert row["method"] == "Newcombe"
    assert 0.5 < row["p_value"] < 1


def test_the_p_value_of_a_slice_agrees_with_its_interval() -> None:
    human, judge = ["pass", "fail"] * 30, ["pass", "fail"] * 20 + ["fail", "pass"] * 10
    row = table(run({"h": human}, {"j": judge}, column=["a"] * 30 + ["b"] * 30), part="b")
    apart = row["agreement_difference"]
    assert apart["high"] < 0
    assert apart["p_value"] < 0.05


def test_a_slice_of_grades_against_the_rest_is_welch_s_test() -> None:
    stats = pytest.importorskip("scipy.stats")
    human, judge = [3] * 12, [3, 4, 5, 3, 4, 3, 1, 5, 1, 3, 5, 2]
    found = run({"h": human}, {"j": judge}, column=["a"] * 5 + ["b"] * 7)
    row = table(found, part="a")["error_difference"]
    errors = [abs(g - 3) for g in judge]
    welch = stats.ttest_ind(errors[:5], errors[5:], equal_var=False)
    assert row["p_value"] == pytest.approx(welch.pvalue)
    ends = welch.confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high))


def test_repeats_of_an_item_do_not_narrow_intervals() -> None:
    once = table(run({"h": HUMAN}, {"j": JUDGE}))
    clusters = [f"c{place:02}" for place in range(50) for _ in range(2)]
    doubled = [[label for label in given for _ in range(2)] for given in (HUMAN, JUDGE)]
    twice = table(run({"h": doubled[0]}, {"j": doubled[1]}, clusters=clusters))
    for name in ("agreement", "kappa", "tpr", "tnr", "bias"):
        assert twice[name]["clusters"] == once[name]["clusters"]
        ends = [twice[name][end] for end in ("estimate", "low", "high")]
        assert ends == pytest.approx([once[name][end] for end in ("estimate", "low", "high")]), name


def test_findings_on_the_bias() -> None:
    human = ["pass", "fail"] * 200
    lenient = ["pass"] * 80 + ["pass", "fail"] * 160
    rows = table(run({"h": human}, {"j": lenient}))
    assert rows["bias"]["estimate"] == pytest.approx(0.1)
    assert rows["bias"]["finding"] == "biased"
    fair = table(run({"h": human}, {"j": [*human[1:3], *human[2:]]}))
    assert fair["bias"]["finding"] == "no relevant bias"
    few = table(run({"h": human[:8]}, {"j": lenient[:8]}))
    assert few["bias"]["finding"] == "inconclusive"
    assert "fewer than 10" in few["bias"]["reason"]


def test_error_rates_of_labels_drawn_unequally_correct_nothing() -> None:
    human, judge = [*HUMAN, *[None] * 100], [*JUDGE, *["pass"] * 70, *["fail"] * 30]
    labelled = labelled_by_files("d", frame({"h": human}), frame({"j": judge}))
    for chances, known in (([0.3, 0.3], True), ([0.1, 0.5], False)):
        drawn = pl.Series([chances[word == "fail"] for word in judge])
        items = labelled.items.sort("item").with_columns(label_chance=drawn)
        rows = table(compare([labelled._replace(items=items)], Options()))
        corrected = rows["corrected_rogan_gladen"]
        assert (corrected["estimate"] is not None) == known
        assert ("label_chance differs" in (corrected["reason"] or "")) != known
        assert rows["corrected_ppi"]["estimate"] is not None


def test_findings_on_the_agreement() -> None:
    human = ["pass", "fail"] * 100
    # Kappa by hand: 170 of 200 equal, half by chance: (.85 - .5) / .5 = .7, and 100: 0.
    wrong = ["fail", "pass"] * 15 + human[30:]
    near, apart = table(run({"h": human}, {"j": wrong})), ["pass", "pass", "fail", "fail"] * 50
    assert near["kappa"]["estimate"] == pytest.approx(0.7)
    assert near["kappa"]["finding"] == "agrees"
    assert table(run({"h": human}, {"j": apart}))["kappa"]["finding"] == "does not agree"
    undecided = table(run({"h": human[:12]}, {"j": ["fail"] * 5 + human[5:12]}))["kappa"]
    assert undecided["low"] < 0.2 < undecided["high"]
    assert undecided["finding"] == "inconclusive"
    strict = CalibrationThresholds(least_agreement=0.9)
    with calibrated_by(strict):
        limited = table(run({"h": human}, {"j": wrong}))
    assert limited["kappa"]["finding"] == "does not agree"
    few = table(run({"h": human[:8]}, {"j": human[:8]}))["kappa"]
    assert (few["finding"], "fewer than 10" in few["reason"]) == ("inconclusive", True)
    grades = [str(at % 5) for at in range(60)]
    graded = table(run({"h": grades}, {"j": grades}))
    assert graded["spearman"]["finding"] == "agrees"
    assert graded["kappa"]["finding"] is None


def test_rates_of_all_items_are_corrected_by_those_with_labels() -> None:
    """Rogan-Gladen by hand: p = .7, se = .8, sp = .75: theta = .45 / .55."""
    human = [*HUMAN, *[None] * 100]
    judge = [*JUDGE, *["pass"] * 70, *["fail"] * 30]
    rows = table(run({"h": human}, {"j": judge}))
    assert rows["agreement"]["unlabelled"] == 100
    assert rows["corrected_rogan_gladen"]["estimate"] == pytest.approx(0.45 / 0.55)
    assert rows["all_judged_mean"]["estimate"] == pytest.approx(99 / 150)
    # Labels not known to be a random sample give no PPI++.
    assert rows["corrected_ppi"]["estimate"] is None
    assert "label_chance" in rows["corrected_ppi"]["reason"]
    random = table(run({"h": human}, {"j": judge}, Options(random_labels=True)))["corrected_ppi"]
    # lambda = cov(Y, F) / (1.5 var(all F)), cov = (24 - 50 * .6 * .58) / 49
    slope = (24 - 50 * 0.6 * 0.58) / 49 / (1.5 * 0.66 * 0.34 * 150 / 149)
    assert random["estimate"] == pytest.approx(slope * 0.7 + 0.6 - slope * 0.58)
    assert random["low"] < random["estimate"] < random["high"]


def test_sets_of_labels_are_compared_label_by_label(reference_data: Path) -> None:
    """GovTech's format: flags per label; against scikit-learn, label by label."""
    metrics = pytest.importorskip("sklearn.metrics")
    data = json.loads((reference_data / "multilabel_synthetic" / "data.json").read_text())
    names = next(key for key in data if key not in {"labels", "humans"})
    judge = next(iter(data[names]))
    items = sorted(data["humans"]["h0"])
    people = {who: [given[i] for i in items] for who, given in data["humans"].items()}
    found = run(people, {judge: [data[names][judge][i] for i in items]})
    measures = found.measures.filter(pl.col("statistic") == "kappa")
    assert measures.height == len(data["labels"])
    for place in range(len(data["labels"])):
        votes = [[int(given[i][place]) for given in data["humans"].values()] for i in items]
        sums = [sum(each) * 2 - len(each) for each in votes]
        pairs = [
            (int(total > 0), int(data[names][judge][i][place]))
            for i, total in zip(items, sums, strict=True)
            if total
        ]
        expected = metrics.cohen_kappa_score(*zip(*pairs, strict=True))
        own = measures.filter(criterion=str(place))
        assert own["estimate"].item() == pytest.approx(expected)
        assert own["n"].item() == len(pairs)
        assert own["tied"].item() == sums.count(0)


def test_real_annotators_against_counting(reference_data: Path) -> None:
    """MT-Bench labels of the alternative annotator test's authors, majority by hand."""
    folder = reference_data / "alttest" / "mtbench"
    people, models = (
        json.loads((folder / f"{who}_annotations.json").read_text()) for who in ("human", "llm")
    )
    judge = min(models)
    items = sorted({item for given in people.values() for item in given})
    columns = [
        {who: [given.get(i) for i in items] for who, given in each.items()}
        for each in (people, {judge: models[judge]})
    ]
    rows = table(run(columns[0], columns[1]), judge)
    hits = total = tied = 0
    for item in items:
        votes = Counter(given[item] for given in people.values() if item in given).most_common(2)
        said = models[judge].get(item)
        if len(votes) > 1 and votes[0][1] == votes[1][1]:
            tied += 1
        elif said is not None:
            total += 1
            hits += said == votes[0][0]
    assert (rows["agreement"]["hits"], rows["agreement"]["n"]) == (hits, total)
    assert rows["agreement"]["tied"] == tied


@pytest.mark.parametrize(
    ("whole", "hits", "columns"),
    [
        # 2.5 counts as 3, 4.5 as 5, 8 / 3 as 3: all but the last agree.
        ((None,), 3, {"2", "3", "5"}),
        ((), 0, {"2", "2.5", "2.6666666666666665", "3", "4.5", "5"}),
    ],
)
def test_means_of_whole_grades_count_as_the_nearest_grade(
    whole: tuple[None, ...], hits: int, columns: set[str]
) -> None:
    humans, judges = frame({"ann": [3, 5, 3, 2]}), frame({"j": [2.5, 4.5, 8 / 3, 3]})
    labelled = labelled_by_files("d", humans, judges)._replace(whole=whole)
    found = compare([labelled], Options())
    rows = table(found)
    assert (rows["agreement"]["hits"], rows["agreement"]["n"]) == (hits, 4)
    assert {*found.confusion["judge_label"], *found.confusion["human_label"]} == columns
    # The exact means: (-.5 - .5 - 1/3 + 1) / 4 and (.5 + .5 + 1/3 + 1) / 4.
    assert rows["bias"]["estimate"] == pytest.approx(-1 / 12)
    assert rows["mean_error"]["estimate"] == pytest.approx(7 / 12)
    # What agrees is no disagreement.
    assert found.disagreements["judge_label"].to_list() == ["3", "2.5", "4.5", "2.67"][: 4 - hits]


def on_one_to_five(people: Sequence[float], judge: Sequence[float]) -> ComparisonWithPeople:
    labelled = labelled_by_files("d", frame({"ann": people}), frame({"j": judge}))
    ends = {"lowest": pl.lit(1.0), "highest": pl.lit(5.0)}
    items = labelled.items.with_columns(**ends)
    return compare([labelled._replace(items=items)], Options())


def test_grades_of_people_off_the_scale_are_correlated_alone() -> None:
    judge = [1, 2, 3, 4, 5, 3]
    found = on_one_to_five([20, 35, 50, 70, 90, 55], judge)
    measures = table(found)
    known = {name for name, row in measures.items() if row["estimate"] is not None}
    assert known == {"spearman", "kendall", "labels_to_decide"}
    # Ranks 1, 2, 3.5, 5, 6, 3.5 and 1, 2, 3, 5, 6, 4: r = 17 / sqrt(17 * 17.5).
    assert measures["spearman"]["estimate"] == pytest.approx(17 / (17 * 17.5) ** 0.5)
    reasons = {row["reason"] for name, row in measures.items() if name not in known}
    assert reasons == {"no answer has a valid rating and a grade of people on the same scale"}
    assert measures["bias"]["finding"] is None
    assert found.disagreements.is_empty()
    assert found.confusion.is_empty()


def test_some_grades_of_people_off_the_scale_are_left_out() -> None:
    judge, people = [1, 2, 3, 4, 5, 3], [1, 3, 3, 4, 90, 2]
    found = on_one_to_five(people, judge)
    measures = table(found)
    assert judge_views(found)[0].items == "6 items compared, 1 of them by rank only"
    inside = table(on_one_to_five([*people[:4], 2], [*judge[:4], 3]))
    for name in ("agreement", "kappa_quadratic", "mean_error", "bias"):
        assert measures[name]["estimate"] == inside[name]["estimate"]
        assert measures[name]["n"] == 5
    assert measures["bias"]["estimate"] == pytest.approx(0)
    assert measures["kendall"]["n"] == measures["spearman"]["n"] == 6
    assert measures["mean_error"]["reason"] == (
        "without 1 of 6 items, whose grade of people is not on the scale of the judge"
    )


def test_an_item_has_a_label_or_lacks_it() -> None:
    people, judge = [["rude"], [], ["rude"]], [[], [], ["rude"]]
    found = run({"ann": people}, {"j": judge})
    assert table(found)["tpr"]["estimate"] == 0.5
    [missed] = found.disagreements.to_dicts()
    assert (missed["human_label"], missed["judge_label"]) == ("has the label", "lacks the label")
    assert {*found.confusion["human_label"]} == {"has the label", "lacks the label"}
    [view] = judge_views(found)
    notes = {each.name: each.note for each in view.measures}
    assert notes["TPR"].startswith("of 2 items to which people give the label")
    assert notes["TNR"].startswith("of 1 item to which people do not give the label")
    assert notes["bias"].startswith("judge minus people: share with the label .33 and .67")


def test_a_judge_is_named_first_then_what_differs() -> None:
    grades = [1.0, 2.0, 3.0]
    one, other = (
        labelled_by_files(name, frame({"ann": grades}), frame({"j": grades}))
        for name in ("desk: new", "desk: old")
    )
    titles = [view.title for view in judge_views(compare([one, other], Options()))]
    assert titles == ["j / desk: new", "j / desk: old"]


def test_grades_that_agree_everywhere_by_hand() -> None:
    """A perfect judge had no interval, and so no conclusion, where one with an error had both."""
    grades = [1 + at % 5 for at in range(40)]
    rows = table(run({"h": grades}, {"j": grades}))
    # w = z^2 / (40 + z^2) of the items may differ. Midranks .1 to .9: range .8, variance .08;
    # grades: range 4, variance 2. Both 1 - w * 4. The bias is at most w * 4.
    w = 3.841459 / 43.841459
    for name in ("spearman", "kappa_quadratic"):
        ends = (rows[name]["low"], rows[name]["high"])
        assert ends == pytest.approx((1 - 4 * w, 1.0), abs=1e-6), name
    assert (rows["bias"]["low"], rows["bias"]["high"]) == pytest.approx((-4 * w, 4 * w), abs=1e-6)
    # .25 standard deviations of the judge (1.432); the 90 % interval ends at 4 * 2.7055 / 42.7055.
    assert rows["bias"]["finding"] == "no relevant bias"
    rows = table(run({"h": grades[:20]}, {"j": grades[:20]}))
    assert rows["bias"]["finding"] == "inconclusive"
    # 4 w is .25 * 1.451 for n = z^2 (4 / .3627 - 1) = 38.5
    assert rows["labels_for_bias"]["estimate"] == 39
    higher = [grade + 1 for grade in grades]
    assert table(run({"h": grades}, {"j": higher}))["bias"]["finding"] == "biased"
