"""Sections of the report that stand only where there is something to tell."""

import html
import re
from typing import Any

import polars as pl
import pytest

from schemas.results import Drifts, Estimates
from tasks.conclude import conclude

MINUS = "\N{MINUS SIGN}"
Row = dict[str, Any]
WHOLE: dict[str, Any] = {"perturbation": None, "kind": None, "mode": "any"}


def test_models_have_a_section_only_where_they_are_known(parts: Any) -> None:
    title = "What the verdicts say about models"
    assert title not in parts.report(
        parts.FACTS, parts.estimates(), parts.findings(), parts.perturbed()
    )
    pair = {**parts.OVERALL, "subgroup": "ant vs bee"}
    found = parts.estimates(
        {**pair, "statistic": "win_rate", "estimate": 0.56, "low": 0.52, "high": 0.6},
        {**pair, "statistic": "ppi_win_rate", "estimate": None, "reason": "<b>few</b>"},
        {**pair, "statistic": "bias_bound", "perturbation": "padding", "estimate": 0.0714},
        {**pair, "statistic": "tipping_shift", "perturbation": "padding", "estimate": 0.12},
        {**pair, "statistic": "bias_bound", "perturbation": "rich", "estimate": 0.05},
        {**pair, "statistic": "tipping_shift", "perturbation": "rich", "estimate": 0.3},
    )
    page = parts.report(parts.FACTS, found, parts.findings(), parts.perturbed())
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", page)).split())
    assert title in text
    assert "ant vs bee" in text
    assert "conclusion not robust to padding (a shift of .12 reverses it)" in text
    assert "not estimable(<b>few</b>)" in text
    assert "rich (a shift" not in text
    assert " none conclusion not robust" in " ".join(parts.Page(page).text.split())


def test_an_asr_stands_beside_what_unreadable_votes_hide(parts: Any) -> None:
    bounds = {"statistic": "asr_bounds", "estimate": 27 / 57, "low": 0.45, "high": 0.5, "n": 60}
    lost = [
        {"statistic": "lost_rate", "subgroup": arm, "hits": hits, "n": 120, "estimate": hits / 120}
        for arm, hits in (("control", 1), ("experimental", 4), ("sham", 9))
    ]

    def page(*rows: dict[str, Any]) -> str:
        estimates = parts.estimates(*rows)
        reported = parts.report(parts.FACTS, estimates, parts.findings(), parts.perturbed())
        return str(parts.Page(reported).text)

    note = "5 votes without a verdict: .45 to .50"
    assert f".47 [.36, .58]; {note}" in page(bounds, *lost)
    # Two samples without a verdict could only have been no success: 27 of 57 is above the range.
    beside = {**bounds, "low": 0.44, "high": 0.46}
    assert "5 votes without a verdict: .44 to .46" in page(beside, *lost)
    assert "votes without a verdict:" not in page(bounds, *({**row, "hits": 0} for row in lost))


def test_the_text_on_position_states_the_rule_of_its_findings(parts: Any) -> None:
    """The gap decides (docs/concepts/findings.md); the effect's interval here is far too wide."""
    about = {**WHOLE, "subgroup": "", "clusters": 50, "df": 49.0, "n": 50, "unit": "share"}
    rows = [
        {"statistic": "position_gap", "estimate": 0.01, "low": -0.01, "high": 0.03}
        | {"standard_error": 0.01, "p_value": 0.32},
        {"statistic": "position_kappa", "estimate": 0.1, "low": -0.7, "high": 0.9}
        | {"standard_error": 0.4, "p_value": 0.8, "unit": "logit"},
    ]
    found = parts.estimates(*(about | row for row in rows))
    page = parts.Page(parts.report(parts.FACTS, found, conclude(found), parts.perturbed()))
    text = " ".join(page.text.split())
    assert "no relevant bias based on the gap: too few verdicts depend on the order" in text
    assert (
        "no relevant bias : the 90 % interval of the gap lies within its limit, unless the effect "
        "says otherwise: it reaches its limit, and its 95 % interval excludes 0."
    ) in text


@pytest.mark.parametrize(("finding", "grey"), [("biased", False), ("inconclusive", True)])
def test_a_judge_that_is_left_out_is_grey_unless_a_finding_speaks_against_it(
    parts: Any, finding: str, grey: bool
) -> None:
    ties = {"statistic": "tie_rate", "estimate": 0.9, "low": 0.85, "high": 0.95, "clusters": 57}
    found = parts.estimates({**WHOLE, **ties})
    page = parts.report(parts.FACTS, found, parts.findings(finding=finding), parts.perturbed())
    (row,) = re.findall("<tr[^\n]*<small>left out: tie rate .90 [^\n]*</tr>", page)
    assert row.startswith('<tr class="out">') == grey


@pytest.mark.parametrize(("usd", "reported"), [(0.0123, "costs 0.012 USD"), (None, ""), (0.0, "")])
def test_the_jury_has_its_price_beside_it(parts: Any, usd: float | None, reported: str) -> None:
    rows = [
        {"judge": judge, "statistic": name, "estimate": 0.1, "low": 0.0, "high": 0.2}
        for judge, name in (
            ("a", "mps_sham"),
            ("b", "mps_sham"),
            ("c", "mps_sham"),
            ("jury/all", "jury_mps_sham"),
            ("jury/all", "jury_mps"),
        )
    ]
    frames = (parts.estimates(*rows), parts.findings(), parts.perturbed())
    page = parts.Page(parts.report(parts.FACTS, *frames, usd=usd)).text
    assert "The judges as one jury" in page
    assert ("A verdict of the whole jury" in page) == bool(reported)
    assert reported in page


def test_judges_that_differ_have_a_table_of_their_own(parts: Any) -> None:
    title = "Which judges differ"
    assert title not in parts.report(
        parts.FACTS, parts.estimates(), parts.findings(), parts.perturbed()
    )
    pair = {"judge": "ada", "subgroup": "<i>bea"}
    page = parts.report(
        parts.FACTS,
        parts.estimates(
            {
                **pair,
                "statistic": "mps_sham_contrast",
                "estimate": -0.2,
                "low": -0.3,
                "high": -0.1,
                "p_value": 0.0004,
                "standard_error": 0.05,
            }
        ),
        parts.findings(),
        parts.perturbed(),
    )
    assert title in page
    assert "a difference in 1 of 1 comparison, no relevant difference in 0" in parts.Page(page).text
    assert "<i>bea is moved further toward the target" in parts.Page(page).text
    assert "<i>bea" not in page


GAP_OF_BEA: list[Row] = [
    {
        "statistic": name,
        "estimate": estimate,
        "low": low,
        "high": low + 0.1,
        "judge": judge,
        **WHOLE,
    }
    for judge, name, estimate, low in (
        ("acme/judge-1", "position_gap", 0.01, -0.04),
        ("acme/judge-1", "tie_rate", 0.1, 0.05),
        ("acme/judge-1", "invalid_rate", 0.01, 0.0),
        ("bea", "position_gap", -0.31, -0.36),
        ("bea", "tie_rate", 0.1, 0.05),
    )
]


def test_who_is_left_out_is_listed_and_both_results_are_given(parts: Any) -> None:
    shifts = [
        {
            "judge": judge,
            "statistic": "mps_sham",
            "estimate": shift,
            "low": shift - 0.04,
            "high": shift + 0.04,
            "standard_error": 0.02,
            "p_value": p,
        }
        for judge, shift, p in (("bea", 0.3, 0.0001), ("acme/judge-1", 0.1, 0.04))
    ]
    means = [
        {
            "judge": "judges/all",
            "statistic": name,
            "subgroup": subgroup,
            "estimate": estimate,
            "low": estimate - 0.02,
            "high": estimate + 0.02,
        }
        for name, subgroup, estimate in (
            ("mean_shift", "", 0.2),
            ("mean_asr", "", 0.7),
            ("mean_asr", "kept", 0.47),
        )
    ]
    rows = [
        *GAP_OF_BEA,
        *shifts,
        *means,
        {"judge": "bea", "statistic": "asr", "estimate": 0.9311},
    ]
    own = parts.estimates().filter(pl.col("statistic") != "mps_sham").to_dicts()
    frame = Estimates.of(
        pl.DataFrame(
            [*own, *(parts.CELL | parts.SIZES | row for row in rows)], infer_schema_length=None
        )
    )
    page = parts.Page(parts.report(parts.FACTS, frame, conclude(frame), parts.perturbed()))
    for text in (
        "position gap .15, tie rate .80 and invalid rate .10",
        f"Left out: bea: position gap {MINUS}.31 [{MINUS}.36, {MINUS}.26], beyond",
        f"{MINUS}.26], beyond \N{PLUS-MINUS SIGN}.15.",
        f"left out: position gap {MINUS}.31 [{MINUS}.36,",
        "Mean of 2 judges, including the 1 left out .20 [.18, .22] .70",
        # Of two cells and of one, Benjamini-Hochberg leaves the largest as it is: nothing to add
        "raw .040",
    ):
        assert text in page.text, text
    assert ("class", "out") in page.attributes
    assert "; kept" not in page.text
    # That of one judge would repeat its row.
    assert "Mean of 1 judge" not in page.text


def test_nobody_left_out_is_said_too(parts: Any) -> None:
    source = parts.report(parts.FACTS, parts.estimates(), parts.findings(), parts.perturbed())
    page = parts.Page(
        parts.report(
            parts.FACTS, parts.estimates(*GAP_OF_BEA[:3]), parts.findings(), parts.perturbed()
        )
    )
    assert "No judge is left out." in page.text
    assert "Mean of" not in page.text
    assert "No judge is left out." not in source  # of what was not measured nobody can be


def test_charts_of_what_is_not_there_are_left_out_and_of_waves_are_drawn(parts: Any) -> None:
    source = parts.report(parts.FACTS, parts.estimates(), parts.findings(), parts.perturbed())
    from tasks.charts import CHARTS

    waves = [{"wave": "n1"}, {"wave": "n2", "state": "suspect", "estimate": 0.3}]
    row = {
        **parts.CELL,
        "measure": "mps_drift",
        "epoch": 1,
        "base": "n0",
        "estimate": 0.0,
        "level": 0.011,
        "minimum": 0.05,
        "n": 58,
        "clusters": 57,
        "state": "quiet",
        "low": -0.01,
        "high": 0.02,
        "p_value": 0.4,
    }
    drifts = Drifts.of(pl.DataFrame([row | wave for wave in waves]))
    title = CHARTS["drift_strip"].title
    page = parts.report(
        parts.FACTS,
        parts.estimates(wave="n2"),
        parts.findings(wave="n2"),
        parts.perturbed(),
        drifts,
    )
    assert title not in source
    assert title in page
    reported = parts.Page(page).text
    assert "suspect" in reported
    assert f"voirdire show {parts.FACTS.study} --changed prints the votes that changed" in reported
    assert "--changed" not in source
    assert f"inconclusive [{MINUS}.01, .02]" in reported  # its gate, of the last wave alone


def test_of_very_many_numbers_those_of_whole_cells_stand_in_the_page(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.report.MOST_NUMBERS", 9)
    pairs = [
        {"statistic": "asr", "subgroup": f"c{n}", "estimate": 0.5550 + n / 1e4} for n in range(5)
    ]
    found = parts.estimates(*pairs)
    facts = parts.FACTS._replace(study="ann's")
    page = parts.report(facts, found, parts.findings(), parts.perturbed(), numbers=found)
    text = parts.Page(page).text
    assert "sample sizes and methods (all judges and perturbations: 9 of 14 rows)" in text
    assert ".81" in text
    assert ".56" not in text
    assert "voirdire sql --format csv 'from mart.numbers where study = '\"'\"'ann'\"'\"''" in text


def test_a_percentage_and_the_time_of_the_run_stay_in_one_line(parts: Any) -> None:
    page = parts.report(parts.FACTS, parts.estimates(), parts.findings(), parts.perturbed())
    told = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    # From the text of a template, and from the glossary.
    for words in ("Brackets contain 95\N{NO-BREAK SPACE}% intervals", "the 95\N{NO-BREAK SPACE}% "):
        assert words in told
    assert not re.search(r"\d %", told)
    assert f"run of <time>{parts.FACTS.when}</time>" in page
    assert "time { white-space: nowrap; }" in page
