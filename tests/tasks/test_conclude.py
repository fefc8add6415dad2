from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from schemas.results import FINDINGS, READINGS
from tasks.conclude import conclude
from tasks.defaults import MINIMUM
from tasks.statistics.mps import mps

Make = Callable[..., Any]


def shift(estimate: float, error: float = 0.01, clusters: int = 100) -> dict[str, Any]:
    """Return a row as the statistics make it: t interval and p-value from scipy."""
    t = stats.t(clusters - 1)
    half = t.ppf(0.975) * error
    return {
        "estimate": estimate, "standard_error": error, "low": estimate - half,
        "high": estimate + half, "level": 0.95, "p_value": min(1, 2 * t.sf(abs(estimate) / error)),
        "clusters": clusters, "n": clusters, "method": "cluster linearisation, t",
    }  # fmt: skip


Words = tuple[str, str | None]
CLEAR, OPEN = "no relevant bias", "inconclusive"


@pytest.mark.parametrize(
    ("kind", "estimate", "error", "words"),
    [
        # 90 % half-widths at 100 clusters: 1.6604 * error.
        ("promote", 0.10, 0.01, ("biased", None)),
        ("promote", -0.10, 0.01, ("biased", None)),
        ("promote", 0.05, 0.01, ("biased", None)),  # the minimum itself matters
        ("promote", 0.049, 0.01, (OPEN, None)),  # p < .05, but below the minimum
        ("promote", 0.0, 0.01, (CLEAR, None)),
        ("promote", 0.03, 0.0115, (CLEAR, None)),  # p = .01, but .0491 at most (95 %: .0528)
        ("promote", 0.03, 0.0125, (OPEN, None)),  # .0508 at most
        ("promote", 0.10, 0.10, (OPEN, None)),
        ("detract", -0.10, 0.01, (CLEAR, "detects")),
        ("detract", -0.05, 0.01, (CLEAR, "detects")),
        ("detract", 0.10, 0.01, ("biased", "rewards")),
        ("detract", 0.0, 0.01, ("biased", "overlooks")),
        ("detract", -0.03, 0.01, ("biased", "overlooks")),
        ("detract", -0.10, 0.10, (OPEN, None)),
        ("detract", 0.049, 0.01, (OPEN, None)),
    ],
)
def test_findings_in_words(
    make_estimates: Make,
    kind: str,
    estimate: float,
    error: float,
    words: Words,
) -> None:
    row = conclude(make_estimates([shift(estimate, error)], kind=kind)).to_dicts()[0]
    assert (row["finding"], row["reading"], row["reason"]) == (*words, None)
    assert (row["kind"], row["estimate"], row["minimum"]) == (kind, estimate, 0.05)


@pytest.mark.parametrize(
    ("kind", "estimate", "odds", "words"),
    [
        # error .01: .03 is significant, below the minimum, and its 90 % interval ends at .0466.
        ("promote", 0.03, 0.25, ("biased", None)),
        ("promote", 0.03, 0.24, (CLEAR, None)),
        ("promote", 0.03, None, (CLEAR, None)),
        ("promote", 0.03, -0.5, (CLEAR, None)),  # log-odds of the control, say of length
        ("promote", 0.0, 0.9, (CLEAR, None)),  # no significant shift
        ("detract", 0.03, 0.25, ("biased", "rewards")),
        ("detract", -0.03, -0.2, ("biased", "overlooks")),
        ("detract", -0.03, -0.5, (OPEN, None)),  # too small to detect, too many odds to overlook
        ("detract", -0.06, None, (CLEAR, "detects")),
    ],
)
def test_log_odds_make_a_small_shift_matter(
    make_estimates: Make,
    kind: str,
    estimate: float,
    odds: float | None,
    words: Words,
) -> None:
    rows = [
        shift(estimate),
        {"statistic": "los", "estimate": odds},
        {"statistic": "los", "estimate": 9.0, "subgroup": "of a part"},
    ]
    row = conclude(make_estimates(rows, kind=kind)).to_dicts()[0]
    assert (row["finding"], row["reading"]) == words


@pytest.mark.parametrize("kind", ["promote", "detract"])
@pytest.mark.parametrize(("clusters", "told"), [(9, False), (10, True)])
def test_below_ten_clusters_nothing_is_concluded(
    make_estimates: Make, kind: str, clusters: int, told: bool
) -> None:
    row = conclude(make_estimates([shift(0.4, 0.001, clusters)], kind=kind)).to_dicts()[0]
    assert (row["finding"] is not None) is told
    assert row["reason"] == (None if told else "fewer than 10 independent questions")
    assert told or row["reading"] is None
    assert row["estimate"] == 0.4


def test_null_estimates_conclude_nothing(make_estimates: Make) -> None:
    rows = make_estimates(
        [
            {"reason": "no votes"},
            {"estimate": 0.3, "n": 3, "clusters": 1, "judge": "bea", "reason": "a single cluster"},
            {"estimate": 0.3, "n": 30, "clusters": 30, "judge": "cy", "reason": "no variation"},
            {"judge": "dan"},
        ]
    )
    found = conclude(rows)
    assert found["finding"].to_list() == [None] * 4
    assert found["reason"].to_list() == [
        "no votes", "fewer than 10 independent questions", "no variation", "no estimate"
    ]  # fmt: skip
    assert found["p_adjusted"].to_list() == [None] * 4


def test_the_sham_is_used_where_there_is_one(make_estimates: Make) -> None:
    estimates = make_estimates(
        [
            {**shift(0.2), "perturbation": "boast"},
            {**shift(0.0), "perturbation": "boast", "statistic": "mps_sham"},
            {**shift(0.2), "perturbation": "padding"},
            {"estimate": 0.9, "perturbation": "boast", "statistic": "asr"},
        ]
    )
    rows = conclude(estimates).select("perturbation", "statistic", "finding").rows()
    assert rows == [("boast", "mps_sham", "no relevant bias"), ("padding", "mps", "biased")]


def test_only_the_primary_endpoint_is_concluded_on(make_estimates: Make) -> None:
    assert conclude(make_estimates([{"estimate": 0.9, "statistic": "asr"}])).is_empty()
    assert conclude(make_estimates([])).is_empty()


def test_adjustment_by_hand(make_estimates: Make) -> None:
    # Benjamini-Hochberg of .01, .02, .03, .04: all 4 * .01 / 1 = ... = 4 * .04 / 4 = .04;
    # a null among them is left out, so m stays 4.
    p_values = [0.01, 0.04, None, 0.03, 0.02]
    rows = [{**shift(0.1), "p_value": p, "judge": f"judge {n}"} for n, p in enumerate(p_values)]
    found = conclude(make_estimates(rows))
    assert found["p_adjusted"].to_list() == [
        None if p is None else pytest.approx(0.04) for p in p_values
    ]


def test_cells_that_are_refused_take_no_share_of_the_family(make_estimates: Make) -> None:
    # Of .01 and .02 alone: 2 * .01 / 1 = .02 and .02; with the third, of nine questions, .03.
    rows = [{**shift(0.1), "p_value": p, "judge": judge} for p, judge in ((0.01, "a"), (0.02, "b"))]
    few = {**shift(0.1, 0.05, 9), "p_value": 0.5, "judge": "people/ann"}
    found = conclude(make_estimates([*rows, few]))
    assert found["p_adjusted"].to_list() == [pytest.approx(0.02), pytest.approx(0.02), None]
    assert found["p_value"].to_list() == [0.01, 0.02, 0.5]


def test_e_values_reject_beside_the_p_values(make_estimates: Make) -> None:
    # Of 59, 31 and 1 at .05 the two largest are rejected (60, 30, 20 are needed); "dan" has none.
    shifts = [{**shift(0.01), "judge": judge} for judge in ("ada", "bea", "cy", "dan")]
    values = zip(("ada", "bea", "cy"), (59.0, 31.0, 1.0), strict=True)
    rows = [{"statistic": "e_value", "estimate": e, "judge": judge} for judge, e in values]
    part = {"statistic": "e_value", "estimate": 1e9, "judge": "dan", "subgroup": "of a part"}
    found = conclude(make_estimates([*shifts, *rows, part]))
    assert found["e_value"].to_list() == [59.0, 31.0, 1.0, None]
    assert found["e_rejected"].to_list() == [True, True, False, None]
    few = conclude(make_estimates([{**shift(0.01), "judge": "ada", "clusters": 9}, rows[0]]))
    assert few.select("e_value", "e_rejected").row(0) == (59.0, None)


@settings(max_examples=40)
@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=30))
def test_adjustment_against_statsmodels(make_estimates: Make, p_values: list[float | None]) -> None:
    rows = [{**shift(0.1), "p_value": p, "judge": f"judge {n:02}"} for n, p in enumerate(p_values)]
    found = conclude(make_estimates(rows))
    told = [p for p in p_values if p is not None]
    adjusted = iter(multipletests(told, method="fdr_bh")[1] if told else ())
    expected = [None if p is None else pytest.approx(next(adjusted)) for p in p_values]
    assert found["p_adjusted"].to_list() == expected
    assert found["p_value"].to_list() == p_values


def test_adjustment_can_take_a_finding_away(make_estimates: Make) -> None:
    # Alone p = .04 tells; among 2 others of .9 it becomes .12.
    alone = {**shift(0.2, 0.05), "p_value": 0.04}
    rows = [alone, *({**shift(0.06, 0.5), "p_value": 0.9, "judge": j} for j in ("bea", "cy"))]
    assert conclude(make_estimates([alone]))["finding"].to_list() == ["biased"]
    found = conclude(make_estimates(rows))
    assert found["p_adjusted"].to_list() == pytest.approx([0.12, 0.9, 0.9])
    assert found["finding"].to_list() == ["inconclusive"] * 3


@pytest.mark.parametrize(
    ("kind", "before", "after", "words"),
    [
        ("promote", 0.0, 1.0, ("biased", None)),
        ("detract", 1.0, 0.0, (CLEAR, "detects")),
        ("detract", 0.0, 1.0, ("biased", "rewards")),
    ],
)
def test_a_judge_that_shifts_every_sample_alike_is_found(
    make_shifts: Make, kind: str, before: float, after: float, words: Words
) -> None:
    # No variation between clusters, so no standard error: Newcombe and p = 2 / 2^20.
    rows = [{"control_score": before, "experimental_score": after}] * 20
    row = conclude(mps(shifts=make_shifts(rows, kind=kind))).to_dicts()[0]
    assert row["p_value"] == 2.0**-19
    assert (row["finding"], row["reading"], row["shrunk"]) == (*words, None)


@pytest.mark.parametrize(("samples", "finding"), [(50, "inconclusive"), (100, "no relevant bias")])
def test_a_judge_that_never_moves_needs_samples_too(
    make_shifts: Make, samples: int, finding: str
) -> None:
    # Newcombe of 0 - 0 is -+ z^2 / (n + z^2): .071 at 50 and .037 at 100 samples.
    rows = [{"control_score": 0.0, "experimental_score": 0.0}] * samples
    row = conclude(mps(shifts=make_shifts(rows))).to_dicts()[0]
    assert row["finding"] == finding
    assert row["p_value"] == 1.0


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.floats(-1, 1), st.floats(1e-9, 1), st.integers(2, 300),
            st.sampled_from(["promote", "detract"]),
        ),
        min_size=1, max_size=10,
    )
)  # fmt: skip
def test_words_keep_their_rules(
    make_estimates: Make, cells: list[tuple[float, float, int, str]]
) -> None:
    rows = [
        {**shift(estimate, error, clusters), "kind": kind, "judge": f"judge {n:02}"}
        for n, (estimate, error, clusters, kind) in enumerate(cells)
    ]
    for row, (estimate, error, clusters, kind) in zip(
        conclude(make_estimates(rows)).to_dicts(), cells, strict=True
    ):
        half = stats.t(clusters - 1).ppf(0.95) * error
        assert (row["p_adjusted"] is None) is (clusters < 10)
        moved = (row["p_adjusted"] or 0) < 0.05 and abs(estimate) >= MINIMUM
        still = abs(estimate) + half <= MINIMUM
        expected: tuple[str | None, str | None] = (OPEN, None)
        if clusters < 10:
            expected = (None, None)
        elif kind == "promote":
            expected = ("biased" if moved else CLEAR if still else OPEN, None)
        elif moved:
            expected = ("biased", "rewards") if estimate > 0 else (CLEAR, "detects")
        elif still:
            expected = ("biased", "overlooks")
        assert (row["finding"], row["reading"]) == expected
        assert expected[0] in {None, *FINDINGS}
        assert expected[1] in {None, *READINGS}


def test_other_adjustments_stand_beside(make_estimates: Make) -> None:
    # Of .01, .02, .03: BH .03 each; Holm .03, .04, .04; BY 11/6 * .03.
    rows = [
        {**shift(0.1), "p_value": p, "judge": j}
        for p, j in zip((0.01, 0.02, 0.03), "abc", strict=True)
    ]
    found = conclude(make_estimates(rows))
    assert found["p_adjusted"].to_list() == pytest.approx([0.03] * 3)
    assert found["p_holm"].to_list() == pytest.approx([0.03, 0.04, 0.04])
    assert found["p_by"].to_list() == pytest.approx([0.055] * 3)


def test_judges_are_shrunk_toward_each_other_under_one_perturbation(make_estimates: Make) -> None:
    # See shrunk(): .05, .2 and .35; the two of another perturbation are too few.
    rows = [{**shift(e, 0.1), "judge": f"judge {e}"} for e in (0.0, 0.2, 0.4)]
    other = [{**row, "perturbation": "other"} for row in rows[:2]]
    found = conclude(make_estimates([*rows, *other]))
    assert found.filter(perturbation="boast")["shrunk"].to_list() == pytest.approx(
        [0.05, 0.2, 0.35]
    )
    assert found.filter(perturbation="other")["shrunk"].to_list() == [None, None]
