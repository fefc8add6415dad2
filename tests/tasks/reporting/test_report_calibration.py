import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from schemas.calibration import ConfusionMatrix, Disagreements, HumanAgreement
from tasks.agreement.compare import ComparisonWithPeople
from tasks.kit.defaults import CalibrationThresholds, calibrated_by
from tasks.reporting.calibration_report import CalibrationFacts, calibration_report

Make = Callable[..., pl.DataFrame]
FACTS = CalibrationFacts(
    name="tickets",
    people="people.json",
    judges="judges.json",
    run="r1",
    code_version="0.1+abc",
    when="2024-11-13T12:00:00Z",
    warehouse="v.duckdb",
    least=30,
)
NOBODY = ComparisonWithPeople(
    HumanAgreement.empty(), ConfusionMatrix.empty(), Disagreements.empty()
)
CELL = {"perturbation": None, "kind": None, "simulated": None, "prompt": "none"}
HOSTILE = ["<script>alert(1)</script>", "$\\frac{x", "\u202eevil", "{{7*7}}", "=1+1", "x" * 500]


def agreed(judge: str, other: str = "humans", **values: float | None) -> list[dict[str, Any]]:
    return [
        {**CELL, "judge": judge, "subgroup": other, "statistic": name, "estimate": value}
        for name, value in values.items()
    ]


@pytest.fixture
def page(make_alt_tests: Make, make_advantages: Make, make_estimates: Make) -> Callable[..., str]:
    def write(judges: Any = ({},), people: Any = ({},), agreement: Any = ()) -> str:
        return calibration_report(
            FACTS,
            make_alt_tests(judges),
            make_advantages(people),
            make_estimates(agreement),
            NOBODY,
        )

    return write


def words(page: str) -> str:
    text = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_the_page_says_who_may_replace_people(page: Any) -> None:
    judges = [
        {"judge": "good"},
        {"judge": "poor", "winning_rate": 0.0, "passed": False},
        {
            "judge": "mute",
            "winning_rate": None,
            "passed": None,
            "advantage_probability": None,
            "human_advantage_probability": None,
            "tied": None,
            "low": None,
            "high": None,
            "n": 0,
            "annotators": 0,
            "dropped": 60,
            "unreadable": 2,
            "reason": "no label",
        },
        {"judge": "good", "epsilon": 0.2, "asked": False, "winning_rate": 0.123},
    ]
    reported = words(page(judges, [{"judge": "good"}]))
    assert "✓ good : may replace people . Winning rate 1.00 among 3 people;" in reported
    assert "? poor : not shown that it may replace people . Winning rate .00" in reported
    assert "? mute : not enough data . Not tested: no label" in reported
    assert "Metric accuracy, additive epsilon .10, test auto" in reported
    assert "good passes 1.00 .90 [.80, .95] .85 .75 3 60 none" in reported
    assert (
        "mute not testable no label none none none none 0 0 60 instances and 2 labels" in reported
    )
    assert "good : may replace 1 of 1 person" in reported
    assert "Ann may be replaced .90 [.80, .95] .85 .75 .004 .001 t .001, score .001 60" in reported
    assert "minimum instances of a person 30" in reported


def test_the_limit_is_that_of_the_calibration(page: Any) -> None:
    with calibrated_by(CalibrationThresholds(least_winning_rate=0.6)):
        reported = words(
            page([{"judge": "good"}, {"judge": "good", "epsilon": 0.2, "asked": False}])
        )
    assert "; at .60 the judge passes." in reported
    assert not re.search(r"passes[^.]*at \.5|at \.5[^.]* passes|, at \.5", reported)


def test_a_doubt_stands_beside_the_verdict(page: Any) -> None:
    why = "fewer than 3 annotators, which is too few"
    reported = words(page([{"judge": "good"}, {"judge": "lucky", "reason": why}]))
    assert "✓ good : may replace people ." in reported
    assert "! lucky : may replace people, with care ." in reported
    assert f"that of people .85; {why} ." in reported
    assert f"lucky passes, doubtful {why} 1.00" in reported


def test_agreement_stands_beside_it(page: Any) -> None:
    agreement = [
        *agreed(
            "ada",
            noise_ceiling=0.8,
            below_ceiling=0.6,
            ceiling_ratio=0.75,
            krippendorff_alpha_nominal=0.41,
        ),
        *agreed("ada", "Ann", cohen_kappa=0.5, agreement=0.6),
        *agreed("ada", "Bob", cohen_kappa=0.7, agreement=0.8),
        *agreed("Ann", "Bob", cohen_kappa=0.55, agreement=0.65),
        *agreed("humans", "", krippendorff_alpha_nominal=0.52),
    ]
    reported = words(page([{"judge": "ada"}], [{"judge": "ada"}], agreement))
    assert (
        "Agreement among people: mean agreement .65 over 1 pair (.65 to .65); "
        "mean kappa .55; Krippendorff&#39;s alpha .52" in reported
    )
    # agreement, ceiling, ratio, kappa from .5 to .7, alpha
    assert re.search(r"ada .60 .80 .75 .60 .50 to .70 .41", reported)


def test_simulated_judges_have_a_banner(page: Any) -> None:
    assert "All judges are simulated" in page([{"simulated": True}])
    assert "All judges are simulated" not in page()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_change_nothing(parts: Any, page: Any, name: str) -> None:
    agreement = [*agreed(name, noise_ceiling=0.5), *agreed(name, name + "2", cohen_kappa=0.5)]
    written = page(
        [{"judge": name, "metric": name, "reason": name}],
        [{"judge": name, "annotator": name}],
        agreement,
    )
    assert parts.Page(written).scripts == parts.Page(page()).scripts
    assert all(json.loads(each) for each in parts.Page(written).data)
    assert "\u202e" not in written
    assert "default-src 'none'" in written
    shown = re.sub(r"<script>.*?</script>", "", written, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)=["'](?!#)""", shown)
    assert "49" not in words(shown)
    for drawing in re.findall(r"<svg.*?</svg>", shown, flags=re.DOTALL):
        ET.fromstring(drawing)


def test_equal_facts_give_equal_bytes(page: Any) -> None:
    assert page() == page()
