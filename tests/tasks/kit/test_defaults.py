"""Thresholds stand in one place, and SQL has none."""

import ast
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

import schemas
import warehouse
from schemas.calibration import AltTests
from tasks.kit import defaults
from tasks.kit.defaults import Thresholds
from tasks.reporting.wording import number

SHARED = Path(schemas.__file__).parent
MARTS = Path(warehouse.__file__).parent / "marts"
QUESTIONS = MARTS.parents[1] / "flows" / "cli" / "questions"
ARITHMETIC = {"+", "-", "*", "/", "split_part", "sqrt", "ln", "exp"}
NAMES = {name for name, value in vars(defaults).items() if name.isupper() and value != str(value)}


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
    reported = (
        defaults.ALPHA,
        defaults.BOOTSTRAPS,
        defaults.PERMUTATIONS,
        defaults.BUDGET / defaults.DEFAULTS.nights_per_false_alert,
    )
    assert reported == (0.05, 2000, 9999, 1 / 90)


def test_thresholds_of_a_study_are_those_of_the_methods() -> None:
    limits = Thresholds()
    assert limits.model_dump() == {
        "fewest_questions": 10,
        "minimum_shift": 0.05,
        "minimum_log_odds": 0.25,
        "minimum_rating_shift": 0.25,
        "minimum_pass_rate_shift": 0.05,
        "tie_band": 0.10,
        "minimum_asr_difference": 0.10,
        "most_unanimous": 0.80,
        "overlooks_below": 0.20,
        "least_floor": 0.10,
        "least_informedness": 0.20,
        "order_alpha": 0.001,
        "minimum_lost": 0.05,
        "most_lost": 0.10,
        "minimum_spread": 0.10,
        "spread_alpha": 0.10,
        "most_position_gap": 0.15,
        "most_ties": 0.80,
        "most_invalid": 0.10,
        "most_agreement_lost": 0.10,
        "least_agreement": 0.20,
        "least_reliability": 0.50,
        "disqualifying": ("drift", "discernment", "agreement", "validity", "bias", "position"),
        "minimum_shift_drift": 0.05,
        "minimum_dasr_drift": 0.10,
        "minimum_position_drift": 0.05,
        "minimum_agreement_drift": 0.05,
        "nights_per_false_alert": 90,
    }


def test_descriptions_name_the_defaults() -> None:
    least = number(defaults.CALIBRATION.least_winning_rate, 1)
    assert AltTests.descriptions()["passed"].endswith(f", by default {least}")
    columns = tomllib.loads((MARTS / "columns.toml").read_text(encoding="utf-8"))
    width = f"+-{number(defaults.TARGET_HALF_WIDTH)}"
    assert columns["human_agreement"]["labels_for_agreement"].endswith(width)


def test_marts_decide_nothing() -> None:
    # A rule would choose between words, or hold a number against a limit.
    chosen, limits, fallbacks, computed = set(), set(), set(), set()
    for file in (*SHARED.glob("*.sql"), *MARTS.glob("*.sql")):
        for node in _parsed(file):
            if node.get("class") == "CASE" and file.parent == MARTS:
                results = [each["then_expr"] for each in node["case_checks"]]
                chosen |= _constants([*results, node["else_expr"]])
            if node.get("class") == "COMPARISON":
                limits |= _constants([node["left"], node["right"]])
            if file.parent == SHARED:
                continue
            if node.get("type") == "OPERATOR_COALESCE":
                # Only a key is compared: null stands for the whole judge, as '' does.
                fallbacks |= {json.dumps(each) for each in node["children"][1:]}
            if node.get("class") == "FUNCTION":
                computed.add((file.stem, node["function_name"]))
    assert chosen == {None}  # `if` without a value
    assert {json.loads(each)["value"]["value"] for each in fallbacks} == {""}
    # Of two grades the distance is shown.
    assert {each for each in computed if each[1] in ARITHMETIC} == {("comparisons", "-")}
    assert {limit for limit in limits if not isinstance(limit, str)} <= {0, 1}


def test_questions_decide_nothing() -> None:
    chosen, limits, computed = set(), set(), set()
    for file in QUESTIONS.glob("*.sql"):
        for node in _parsed(file):
            if node.get("class") == "CASE":
                results = [each["then_expr"] for each in node["case_checks"]]
                words = _constants([*results, node["else_expr"]]) - {None}
                chosen |= {(file.stem, word) for word in words}
            if node.get("class") == "COMPARISON":
                limits |= _constants([node["left"], node["right"]])
            if node.get("class") == "FUNCTION":
                computed.add((file.stem, node["function_name"]))
    # It explains what the saved verdict of the gate means, or why there is none.
    assert {name for name, _ in chosen} == {"what_drifted"}
    assert {limit for limit in limits if not isinstance(limit, str | bool)} == set()
    # The days back from now, the sign by which rows are sorted, and 0 in place of -0.
    assert {each for each in computed if each[1] in ARITHMETIC} == {
        ("cost_per_judge_per_night", "-"),
        ("what_drifted", "-"),
        ("who_disagrees_with_people", "-"),
        ("who_disagrees_with_people", "+"),
    }


def _parsed(file: Path) -> Iterator[dict[str, Any]]:
    text = {"text": file.read_text(encoding="utf-8")}
    (parsed,) = duckdb.execute("select json_serialize_sql($text)", text).fetchone() or ("",)
    return _nodes(json.loads(parsed))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(part)


def _constants(expressions: list[dict[str, Any]]) -> set[Any]:
    constant = [each["value"] for each in expressions if each.get("class") == "CONSTANT"]
    return {value.get("value") for value in constant}
