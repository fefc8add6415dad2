"""Thresholds stand in one place, and SQL has none."""

import ast
import re
from pathlib import Path

import pytest

import schemas
import warehouse
from tasks.kit import defaults
from tasks.kit.defaults import Thresholds

SHARED = Path(schemas.__file__).parent
MARTS = Path(warehouse.__file__).parent / "marts"
NAMES = {name for name, value in vars(defaults).items() if name.isupper() and value != str(value)}


def test_sql_does_not_decide_how_many_questions_are_enough() -> None:
    # `too_few` says it of each estimate (tasks/conclusions/exclusions.py).
    deciding = [
        file.name
        for file in (*SHARED.glob("*.sql"), *MARTS.glob("*.sql"))
        if re.search(r"\b(clusters|df)\b[^,\n]* (<|<=|>|>=) ", file.read_text(encoding="utf-8"))
    ]
    assert deciding == []


def test_no_other_module_has_its_own() -> None:
    tasks = Path(defaults.__file__).parent
    again = [
        f"{file.relative_to(tasks)}: {node.id}"
        for file in tasks.rglob("*.py")
        if file.name != "defaults.py" and file.parent.name != "charts"  # whose NIGHTS are shown
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NAMES
    ]
    assert again == []


def test_defaults_are_those_of_the_methods() -> None:
    told = (
        defaults.ALPHA,
        defaults.BOOTSTRAPS,
        defaults.PERMUTATIONS,
        defaults.BUDGET / defaults.DEFAULTS.nights_per_false_alert,
    )
    assert told == (0.05, 2000, 9999, 1 / 90)


def test_thresholds_of_a_study_are_those_of_the_methods() -> None:
    limits = Thresholds()
    assert limits.model_dump() == {
        "fewest_questions": 10,
        "minimum_shift": 0.05,
        "minimum_log_odds": 0.25,
        "minimum_asr_difference": 0.10,
        "most_unanimous": 0.80,
        "overlooks_below": 0.20,
        "least_floor": 0.10,
        "minimum_lost": 0.05,
        "most_lost": 0.10,
        "minimum_spread": 0.10,
        "spread_alpha": 0.10,
        "most_position_gap": 0.15,
        "most_ties": 0.80,
        "most_invalid": 0.10,
        "most_agreement_lost": 0.10,
        "minimum_shift_drift": 0.05,
        "minimum_dasr_drift": 0.10,
        "minimum_position_drift": 0.05,
        "minimum_agreement_drift": 0.05,
        "nights_per_false_alert": 90,
    }


@pytest.mark.parametrize(
    "rule", [r"\b0?\.05\b", r"\b1\.64", r"\.25\b", r"'biased'", r"'no relevant bias'", r"p_holm <"]
)
def test_marts_decide_nothing(rule: str) -> None:
    deciding = [file.name for file in MARTS.glob("*.sql") if re.search(rule, file.read_text())]
    assert deciding == []
