from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from schemas.results import FINDINGS, Estimates
from tasks.conclude import conclude
from tasks.statistics.detection_power import detection_power
from tasks.statistics.mps import mps

Make = Callable[..., Any]
Row = dict[str, Any]


def shift(estimate: float, error: float = 0.01, clusters: int = 100) -> Row:
    """Return a row as the statistics make it: t interval and p-value from scipy."""
    t = stats.t(clusters - 1)
    half = t.ppf(0.975) * error
    return {
        "estimate": estimate,
        "standard_error": error,
        "low": estimate - half,
        "high": estimate + half,
        "level": 0.95,
        "p_value": min(1, 2 * t.sf(abs(estimate) / error)),
        "clusters": clusters,
        "n": clusters,
        "method": "cluster linearisation, t",
    }


def interval(statistic: str, estimate: float, low: float, high: float, **more: Any) -> Row:
    """Return a row with an interval that need not be symmetric."""
    return {
        "statistic": statistic,
        "estimate": estimate,
        "low": low,
        "high": high,
        "clusters": 100,
        "n": 100,
        **more,
    }


BIASED, CLEAR, INCONCLUSIVE = "biased", "no relevant bias", "inconclusive"


@pytest.mark.parametrize(
    ("estimate", "error", "finding"),
    [
        # 90 % half-widths at 100 clusters: 1.6604 * error.
        (0.10, 0.01, BIASED),
        (-0.10, 0.01, BIASED),
        (0.05, 0.01, BIASED),  # the minimum itself matters
        (0.049, 0.01, INCONCLUSIVE),  # p < .05, but below the minimum
        (0.0, 0.01, CLEAR),
        (0.03, 0.0115, CLEAR),  # p = .01, but .0491 at most (95 %: .0528)
        (0.03, 0.0125, INCONCLUSIVE),  # .0508 at most
        (0.10, 0.10, INCONCLUSIVE),
    ],
)
def test_findings_of_promote_kinds(
    make_estimates: Make, estimate: float, error: float, finding: str
) -> None:
    row = conclude(make_estimates([shift(estimate, error)])).to_dicts()[0]
    assert (row["finding"], row["reason"]) == (finding, None)
    assert (row["kind"], row["estimate"], row["minimum"]) == ("promote", estimate, 0.05)


@pytest.mark.parametrize(
    ("estimate", "odds", "finding"),
    [
        # error .01: .03 is significant, below the minimum, and its 90 % interval ends at .0466.
        (0.03, 0.25, BIASED),
        (0.03, 0.24, CLEAR),
        (0.03, None, CLEAR),
    ],
)
def test_log_odds_make_a_small_shift_matter(
    make_estimates: Make, estimate: float, odds: float | None, finding: str
) -> None:
    rows = [
        shift(estimate),
        # Counts of votes know no mode.
        {"statistic": "los", "estimate": odds, "mode": "any"},
        {"statistic": "los", "estimate": 9.0, "mode": "any", "subgroup": "of a part"},
    ]
    assert conclude(make_estimates(rows))["finding"].to_list() == [finding]


@pytest.mark.parametrize(
    ("odds", "finding"),
    [
        # No shift in score; in log-odds .25 or more with an interval that excludes 0.
        ((0.30, 0.05, 0.55), INCONCLUSIVE),
        ((-0.30, -0.55, -0.05), INCONCLUSIVE),
        ((0.30, -0.05, 0.65), CLEAR),
        ((0.24, 0.05, 0.43), CLEAR),
    ],
)
def test_no_relevant_bias_needs_both_scales(
    make_estimates: Make, odds: tuple[float, float, float], finding: str
) -> None:
    row = conclude(make_estimates([shift(0.0), interval("los", *odds)])).to_dicts()[0]
    assert row["finding"] == finding
    reported = "the log-odds say otherwise: LOS .30 [.05, .55]"
    assert row["reason"] == (
        reported if odds[0] == 0.30 and finding == INCONCLUSIVE else row["reason"]
    )
    assert (row["reason"] is None) is (finding == CLEAR)


def test_log_odds_are_those_over_the_sham_where_the_shift_is(make_estimates: Make) -> None:
    # The sham moves the odds as the perturbation does, so over the sham nothing is left.
    rows = [
        {**shift(0.0), "statistic": "mps_sham"},
        shift(0.04),
        {**shift(0.04), "statistic": "sham_shift"},
        interval("los", 0.4, 0.2, 0.6),
        interval("los_sham", 0.0, -0.2, 0.2),
    ]
    row = conclude(make_estimates(rows)).to_dicts()[0]
    # .04 +- .01984 excludes 0 and is more than half of the minimum.
    reported = "beyond what any such edit does: the sham shifts by .04 [.02, .06]"
    assert (row["finding"], row["reason"]) == (CLEAR, reported)


TOO_EASY = "pairs too easy: MPS cannot move much"
EASY = f"{TOO_EASY}, so the effect in logits (LOS) decides:"


@pytest.mark.parametrize(
    ("unanimous", "odds", "finding", "reason"),
    [
        (0.80, (1.0, 0.1), INCONCLUSIVE, "the log-odds say otherwise: LOS 1.00 [.80, 1.20]"),
        (0.81, (1.0, 0.1), BIASED, f"{EASY} 1.00 [.80, 1.20], limit .25"),
        (0.81, (0.0, 0.1), CLEAR, f"{EASY} .00 [-.20, .20], limit .25"),
        (
            0.81,
            (0.2, 0.1),
            INCONCLUSIVE,
            f"{EASY} .20 [.00, .40], limit .25",
        ),
        (0.81, None, CLEAR, TOO_EASY),
    ],
)
def test_pairs_that_are_too_easy_are_judged_by_log_odds(
    make_estimates: Make,
    unanimous: float,
    odds: tuple[float, float] | None,
    finding: str,
    reason: str,
) -> None:
    rows = [shift(0.0), {"statistic": "unanimous_rate", "estimate": unanimous}]
    if odds:
        rows.append({**shift(*odds), "statistic": "los"})
    row = conclude(make_estimates(rows)).to_dicts()[0]
    assert (row["finding"], row["reason"], row["estimate"]) == (finding, reason, 0.0)
    assert row["effect_logits"] == (odds[0] if odds else None)
    assert row["by_logits"] == (unanimous > 0.8 and odds is not None)


@pytest.mark.parametrize(
    ("control", "sham_shift", "reason"),
    [
        # Over the sham always .10 with an error of .01. Over the control p of .03 / .01 is .003,
        # of .01 / .01 .32, of -.03 / .01 .003 with the other sign.
        (0.03, -0.07, None),
        (0.01, -0.09, "the sham itself moves this judge by -.09 [-.11, -.07]"),
        (-0.03, -0.13, "the sham itself moves this judge by -.13 [-.15, -.11]"),
        (0.01, None, "not confirmed over the control: MPS .01 [-.01, .03]"),
        (None, None, "not confirmed over the control: it has no shift"),
    ],
)
def test_biased_needs_the_control_to_agree(
    make_estimates: Make, control: float | None, sham_shift: float | None, reason: str | None
) -> None:
    found = {"mps_sham": 0.10, "mps": control, "sham_shift": sham_shift}
    rows = [{**shift(e), "statistic": name} for name, e in found.items() if e is not None]
    share = interval("detection_share", 0.0, -0.1, 0.3)
    for kind, word in (("promote", BIASED), ("detract", "rewards")):
        row = conclude(make_estimates([*rows, share], kind=kind)).to_dicts()[0]
        assert (row["finding"], row["reason"]) == (INCONCLUSIVE if reason else word, reason)
        assert (row["control"], row["sham_shift"]) == (control, sham_shift)


@pytest.mark.parametrize(
    ("power", "finding"),
    [
        ((0.60, 0.50, 0.70), "detects"),  # surely at least half
        ((0.60, 0.49, 0.71), "detects some"),
        ((0.30, 0.01, 0.59), "detects some"),
        ((0.30, 0.00, 0.60), INCONCLUSIVE),
        ((0.10, 0.01, 0.19), "overlooks"),  # surely less than a fifth, though more than nothing
        ((0.10, 0.01, 0.20), "detects some"),
        ((-0.10, -0.30, 0.10), "overlooks"),
    ],
)
def test_findings_of_flaws_rest_on_detection_power(
    make_estimates: Make, power: tuple[float, float, float], finding: str
) -> None:
    # The shift itself, which is far from the minimum, does not tell: methods, section 16.
    rows = [
        {**shift(-0.2), "statistic": "mps_sham"},
        shift(-0.2),
        interval("detection_power", *power),
        interval("sham_floor", 0.7, 0.6, 0.8),
        interval("detection_share", 0.9, 0.8, 1.0),
    ]
    row = conclude(make_estimates(rows, kind="detract")).to_dicts()[0]
    assert (row["finding"], row["detected_by"]) == (finding, "detection_power")
    assert (row["detected"], row["detected_low"], row["detected_high"]) == power


@pytest.mark.parametrize("share", [-0.2, 0.0])
def test_flaws_that_win_more_verdicts_than_they_lose_are_not_detected(
    make_estimates: Make, share: float
) -> None:
    rows = [
        {**shift(0.0), "statistic": "mps_sham"},
        interval("detection_power", 0.21, 0.05, 0.38),
        interval("sham_floor", 0.5, 0.4, 0.6),
        interval("detection_share", share, share - 0.3, share + 0.3),
    ]
    row = conclude(make_estimates(rows, kind="detract")).to_dicts()[0]
    why = "the mean preference moves to the flaw: D -.20 [-.50, .10]"
    expected = (INCONCLUSIVE, why) if share < 0 else ("detects some", None)
    assert (row["finding"], row["reason"]) == expected


@pytest.mark.parametrize(
    ("floor", "clusters", "by"),
    [
        (0.1, 10, "detection_power"),
        (0.09, 10, "detection_share"),
        (0.1, 9, "detection_share"),
        (None, 100, "detection_share"),
    ],
)
def test_unstable_detection_power_gives_way_to_scores(
    make_estimates: Make, floor: float | None, clusters: int, by: str
) -> None:
    rows = [
        {**shift(-0.2), "statistic": "mps_sham"},
        interval("detection_power", 0.9, 0.8, 1.0, clusters=clusters),
        {"statistic": "sham_floor", "estimate": floor},
        interval("detection_share", 0.1, 0.0, 0.15),
    ]
    row = conclude(make_estimates(rows, kind="detract")).to_dicts()[0]
    word = "detects" if by == "detection_power" else "overlooks"
    assert (row["finding"], row["detected_by"]) == (word, by)


def test_flaws_in_answers_that_never_win_cannot_be_detected(make_estimates: Make) -> None:
    rows = [shift(0.0), {"statistic": "detection_share", "reason": "no vote for the target"}]
    row = conclude(make_estimates(rows, kind="detract")).to_dicts()[0]
    assert (row["finding"], row["detected"]) == (INCONCLUSIVE, None)
    assert row["reason"] == "the flaws detected: no vote for the target"


def test_a_study_says_what_detecting_takes(make_estimates: Make) -> None:
    rows = [shift(-0.2), interval("detection_share", 0.5, 0.4, 0.6)]
    estimates = make_estimates(rows, kind="detract")
    assert conclude(estimates)["finding"].to_list() == ["detects some"]
    assert conclude(estimates, detects_at=0.4)["finding"].to_list() == ["detects"]


@pytest.mark.parametrize("kind", ["promote", "detract"])
@pytest.mark.parametrize(("clusters", "reported"), [(9, False), (10, True)])
def test_below_ten_clusters_nothing_is_concluded(
    make_estimates: Make, kind: str, clusters: int, reported: bool
) -> None:
    row = conclude(make_estimates([shift(0.4, 0.001, clusters)], kind=kind)).to_dicts()[0]
    assert (row["finding"] is not None) is reported
    assert row["reason"] == (None if reported else "fewer than 10 independent questions")
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
        "no votes",
        "fewer than 10 independent questions",
        "no variation",
        "no estimate",
    ]
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
    reported = [p for p in p_values if p is not None]
    adjusted = iter(multipletests(reported, method="fdr_bh")[1] if reported else ())
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
    both = "significant by itself (p .040), not among all tests of the study (adjusted p .120)"
    assert found["reason"].to_list() == [both, None, None]


@pytest.mark.parametrize(
    ("kind", "before", "after", "finding"),
    [
        ("promote", 0.0, 1.0, BIASED),
        ("detract", 1.0, 0.0, "detects"),
        ("detract", 0.0, 1.0, "rewards"),
    ],
)
def test_a_judge_that_shifts_every_sample_alike_is_found(
    make_shifts: Make, kind: str, before: float, after: float, finding: str
) -> None:
    # No variation between clusters, so no standard error: Newcombe and p = 2 / 2^20.
    rows = [{"control_score": before, "experimental_score": after}] * 20
    shifts = make_shifts(rows, kind=kind)
    both = [mps(shifts=shifts), detection_power(shifts=shifts)]
    row = conclude(Estimates.of(pl.concat(both))).to_dicts()[0]
    assert row["p_value"] == 2.0**-19
    assert (row["finding"], row["shrunk"]) == (finding, None)


@pytest.mark.parametrize(("samples", "finding"), [(51, "inconclusive"), (52, "no relevant bias")])
def test_a_judge_that_never_moves_needs_samples_too(
    make_shifts: Make, samples: int, finding: str
) -> None:
    # The 90 % interval is -+ z^2 / (n + z^2), z^2 = 2.7055: .0504 of 51 and .0495 of 52 samples.
    rows = [{"control_score": 0.5, "experimental_score": 0.5}] * samples
    row = conclude(mps(shifts=make_shifts(rows))).to_dicts()[0]
    assert row["finding"] == finding
    assert row["p_value"] == 1.0


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.floats(-1, 1),
            st.floats(1e-9, 1),
            st.integers(2, 300),
            st.sampled_from(["promote", "detract"]),
            st.floats(-2, 1),
            st.floats(0, 1),
        ),
        min_size=1,
        max_size=10,
    )
)
def test_words_keep_their_rules(
    make_estimates: Make, cells: list[tuple[float, float, int, str, float, float]]
) -> None:
    rows = [
        {**row, "kind": kind, "judge": f"judge {n:02}"}
        for n, (estimate, error, clusters, kind, low, width) in enumerate(cells)
        for row in (
            shift(estimate, error, clusters),
            interval("detection_share", low + width / 2, low, min(low + width, 1.0)),
        )
    ]
    for row, (estimate, error, clusters, kind, low, width) in zip(
        conclude(make_estimates(rows)).to_dicts(), cells, strict=True
    ):
        half = stats.t(clusters - 1).ppf(0.95) * error
        assert (row["p_adjusted"] is None) is (clusters < 10)
        moved = (row["p_adjusted"] or 0) < 0.05 and abs(estimate) >= 0.05
        high = min(low + width, 1.0)
        expected: str | None = INCONCLUSIVE
        if clusters < 10:
            expected = None
        elif kind == "promote":
            expected = BIASED if moved else CLEAR if abs(estimate) + half <= 0.05 else INCONCLUSIVE
        elif moved and estimate > 0:
            expected = "rewards"
        elif low >= 0.5:
            expected = "detects"
        elif high < 0.2:
            expected = "overlooks"
        elif low > 0:
            expected = "detects some"
        assert row["finding"] == expected
        assert expected in {None, *FINDINGS}


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
