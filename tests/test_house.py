"""The rules of the house: what no linter checks."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from flows.results.calibration import Calibration
from flows.studies import STUDIES, Study
from tasks.datasets import DATASETS
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES
from tasks.scorings import SCORINGS
from tasks.simulation.judge import read_prompt
from tasks.statistics import STATISTICS

REPO = Path(__file__).parents[1]
ROOMS = ("booth", "flows", "schemas", "tasks", "warehouse")
SOURCES = sorted(file for room in ROOMS for file in (REPO / room).rglob("*.py"))
TESTS = sorted((REPO / "tests").rglob("*.py"))
MARTS = sorted(file.stem for file in (REPO / "warehouse" / "marts").glob("*.sql"))
FLOW_FILES = sorted(file for file in (REPO / "flows").glob("*.py") if not file.stem.startswith("_"))
LONGEST = 400

ENTRIES = [
    *(("tasks/datasets", name) for name in DATASETS),
    *(("tasks/perturbations", name) for name in PERTURBATIONS),
    *(("tasks/prompts", name) for name in PROMPTS),
    *(("tasks/scorings", name) for name in SCORINGS),
    *(("tasks/statistics", name) for name in STATISTICS),
    *(("warehouse/marts", name) for name in MARTS),
]


def _name(file: Path) -> str:
    return str(file.relative_to(REPO))


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def _tracked() -> list[Path]:
    if not (REPO / ".git").exists():
        pytest.skip("this is no git checkout, so nobody knows which files are tracked")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPO, capture_output=True, text=True, check=True
    )
    return [path for name in listed.stdout.split("\0") if name and (path := REPO / name).is_file()]


def test_the_import_contracts_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    if not linter.exists():
        pytest.skip("import-linter is not installed beside this Python")
    done = subprocess.run(
        [linter, "--no-cache"], cwd=REPO, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_file_imports_litellm() -> None:
    importers = [
        _name(file)
        for file in [*SOURCES, *TESTS]
        if any(name.split(".")[0] == "litellm" for name in _imported(file))
    ]
    assert importers == ["tasks/engine/litellm_adapter.py"]


@pytest.mark.parametrize("file", [*SOURCES, *TESTS], ids=_name)
def test_imports_are_absolute_and_annotations_are_there_at_run_time(file: Path) -> None:
    imported = set(_imported(file))
    assert not any(name.startswith(".") for name in imported)
    assert not any(name.split(".")[0] == "tests" for name in imported)
    # Prefect, pandera and pydantic read annotations
    assert "__future__" not in imported


def test_there_is_no_package_of_tests() -> None:
    assert list((REPO / "tests").rglob("__init__.py")) == []


@pytest.mark.parametrize("file", FLOW_FILES, ids=_name)
def test_a_flow_file_shadows_no_module(file: Path) -> None:
    # Prefect puts flows/ first on sys.path
    elsewhere = [place for place in sys.path if Path(place).resolve() != REPO / "flows"]
    assert file.stem == "__init__" or PathFinder.find_spec(file.stem, elsewhere) is None
    assert file.stem not in sys.stdlib_module_names
    assert file.stem not in sys.builtin_module_names


@pytest.mark.parametrize(
    "file", [f for f in FLOW_FILES if f.stem not in {"__init__", "cli", "serve"}], ids=_name
)
def test_a_flow_file_defines_flows_only(file: Path) -> None:
    for node in _tree(file).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(d).split("(")[0] for d in node.decorator_list}
            assert decorators == {"flow"}, f"{node.name} is no flow"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assert all(ast.unparse(target).isupper() for target in targets)
        else:
            # the docstring, and imports
            assert isinstance(node, ast.Import | ast.ImportFrom | ast.Expr), ast.unparse(node)


def test_no_secret_is_a_flow_parameter() -> None:
    secret = re.compile(r"key|secret|token|password|credential", re.IGNORECASE)
    parameters = [
        argument.arg
        for file in FLOW_FILES
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(ast.unparse(d).startswith("flow") for d in node.decorator_list)
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    ]
    assert parameters
    fields = [*Study.model_fields, *Calibration.model_fields]
    assert [name for name in [*parameters, *fields] if secret.search(name)] == []


@pytest.mark.parametrize(("folder", "name"), ENTRIES)
def test_every_entry_has_its_test(folder: str, name: str) -> None:
    test = REPO / "tests" / folder / f"test_{name}.py"
    assert test.is_file(), f"write {_name(test)}"


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_is_named_in_a_test(name: str) -> None:
    quoted = re.compile(rf"[\"'](?:audit/)?{re.escape(name)}[\"']")
    others = [file for file in TESTS if file != Path(__file__)]
    assert any(quoted.search(file.read_text(encoding="utf-8")) for file in others)


@pytest.mark.parametrize("name", sorted({*STUDIES, *(name for _, name in ENTRIES)}))
def test_every_entry_has_its_line_in_the_readme(name: str) -> None:
    readme = (REPO / "README.md").read_text(encoding="utf-8")
    assert f"`{name}`" in readme, f"name `{name}` in README.md"


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_names_only_what_there_is(name: str) -> None:
    study = STUDIES[name].study
    study.check()
    assert set(study.judges) <= set(JUDGES)


@pytest.mark.parametrize("file", SOURCES, ids=_name)
def test_no_file_is_too_long_to_read(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("file", SOURCES, ids=_name)
def test_rates_are_never_written_as_percent(file: Path) -> None:
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.FormattedValue) and node.format_spec:
            assert not ast.unparse(node.format_spec).rstrip("'\"").endswith("%")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not re.search(r"\{[^{}]*:[^{}]*%\}", node.value)


@pytest.mark.parametrize("name", PROMPTS)
def test_simulated_judges_can_read_a_pair_prompt(name: str) -> None:
    assert PROMPTS[name].kind == "pair"
    user = PROMPTS[name].messages("Why?", "one", "two")[-1]["content"]
    assert read_prompt(user) == ("Why?", "one", "two")


def test_no_file_names_a_machine_or_a_registry() -> None:
    # put together here, lest this file be the one that names them
    homes = "|".join(("work", "root", "home", "Users", "tmp/w", "mnt", "opt"))
    machine = re.compile(rf"(?<![\w.~)\]}}])/(?:{homes})/\w")
    registry = re.compile(
        r"https?://[^\s\"'<>)]*(?:/simple\b|registry|artifactory|nexus|mirror)"
        r"|^\s*--(?:(?:extra-)?index-url|trusted-host|find-links)",
        re.MULTILINE,
    )
    named = []
    for file in _tracked():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        named += [
            (_name(file), hit[0]) for rule in (machine, registry) for hit in rule.finditer(text)
        ]
    assert named == []


def test_every_row_of_a_statistic_has_its_operating_characteristics() -> None:
    """Each stands in a table with figures, or in the list of those that have none, with why."""
    text = (REPO / "docs" / "operating_characteristics.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| `(\w+)` \|(?=.*(?:\.\d{3}|no p-value))", text, re.MULTILINE)
    listed = re.findall(r"^- ((?:`\w+`(?:, )?)+): \S", text, re.MULTILINE)
    without = {name for names in listed for name in re.findall(r"\w+", names)}
    given = {row for name in STATISTICS for row in STATISTICS[name].gives}
    assert without.isdisjoint(tables)
    assert {*tables, *without} == given
