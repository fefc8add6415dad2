"""Defaults stand in one place, and SQL, which cannot import it, says the same."""

import ast
import re
from pathlib import Path

import schemas
import warehouse
from tasks.kit import defaults

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


def test_limits_of_exclusion_and_gates() -> None:
    text = (SHARED / "exclusions.sql").read_text(encoding="utf-8")
    limits = {name: float(limit) for limit, name in re.findall(r"([\d.]+) as (\w+)_limit\b", text)}
    assert limits == defaults.EXCLUSION_LIMITS
    gates = (SHARED / "scorecard.sql").read_text(encoding="utf-8")
    invalid = re.findall(r"([\d.]+) as tolerance,\n\s*low > tolerance", gates)
    assert [float(limit) for limit in invalid] == [limits["invalid_rate"]]
    # Position and each bias go by their findings, which have minima of their own.
    discernment = re.findall(r"([\d.]+) as tolerance,\n\s*coalesce\(", gates)
    assert [float(limit) for limit in discernment] == [defaults.OVERLOOKS_BELOW]


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
        defaults.MINIMUM,
        defaults.LOG_ODDS_MINIMUM,
        defaults.MINIMA["dasr_drift"],
        defaults.BOOTSTRAPS,
        defaults.PERMUTATIONS,
        defaults.BUDGET / defaults.NIGHTS,
        defaults.FEWEST_CLUSTERS,
        defaults.LEAST_DF,
    )
    assert told == (0.05, 0.05, 0.25, 0.10, 2000, 9999, 1 / 90, 10, 9)


def test_contrasts_have_the_same_level_and_minima() -> None:
    text = (SHARED / "contrasts.sql").read_text(encoding="utf-8")
    (told,) = re.findall(r"case((?:(?!case).)+)end::double as minimum", text, re.DOTALL)
    minima = re.findall(r"(?:then|else) ([\d.]+)", told)
    assert tuple(map(float, minima)) == (
        defaults.MINIMUM,
        defaults.LOG_ODDS_MINIMUM,
        defaults.MINIMA["dasr_drift"],
    )
    assert re.findall(r"p_holm < ([\d.]+)", text) == [str(defaults.ALPHA)]


def test_the_jury_has_the_same_level_and_minimum() -> None:
    text = (SHARED / "jury_findings.sql").read_text(encoding="utf-8")
    found = re.findall(r"([\d.]+)::double as minimum, ([\d.]+) as alpha", text)
    assert [tuple(map(float, pair)) for pair in found] == [(defaults.MINIMUM, defaults.ALPHA)]
