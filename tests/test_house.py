"""The rules of the house: what no linter checks."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

import pytest

from flows.studies import STUDIES, Study
from flows.studies.calibration import Calibration
from tasks.datasets import DATASETS
from tasks.metrics import METRICS
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES
from tasks.readers.formats import FORMATS
from tasks.simulation.judge import read_prompt
from tasks.statistics import STATISTICS

REPO = Path(__file__).parents[1]
ROOMS = ("booth", "flows", "schemas", "tasks", "warehouse")
SOURCES = sorted(file for room in ROOMS for file in (REPO / room).rglob("*.py"))
TESTS = sorted((REPO / "tests").rglob("*.py"))
MARTS = sorted(file.stem for file in (REPO / "warehouse" / "marts").glob("*.sql"))
FLOW_FILES = sorted(file for file in (REPO / "flows").glob("*.py") if not file.stem.startswith("_"))
LONGEST = 450
MOST_LOOSE = 10
"""Modules that lie loose in a folder; catalogues hold one per entry."""

CATALOGUES = (
    "tasks/charts",
    "tasks/datasets",
    "tasks/metrics",
    "tasks/perturbations",
    "tasks/providers",
    "tasks/prompts",
    "tasks/readers/formats",
    "tasks/statistics",
)
BARRED = re.compile(r"\bfrom\s*\.|\b(?:from|import)\b.*\b(?:tests|__future__)\b")
"""What a file contains that imports relatively, from tests or from the future."""

CROWDED: dict[str, int] = {}
"""Folders with more, and how many: fewer are to come, never more."""

ENTRIES = [
    *(("tasks/datasets", name) for name in DATASETS),
    *(("tasks/perturbations", name) for name in PERTURBATIONS),
    *(("tasks/prompts", name) for name in PROMPTS),
    *(("tasks/metrics", name) for name in METRICS),
    *(("tasks/statistics", name) for name in STATISTICS),
    *(("tasks/readers/formats", name) for name in FORMATS),
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


def _dotted(file: Path) -> str:
    return ".".join(file.relative_to(REPO).with_suffix("").parts)


def _imported_names(file: Path) -> Iterator[tuple[str, ...]]:
    """Yield what each import could mean: the module, and each name as a module in it."""
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            yield tuple(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


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
        if "litellm" in file.read_text(encoding="utf-8")
        and any(name.split(".")[0] == "litellm" for name in _imported(file))
    ]
    assert importers == ["tasks/engine/litellm_adapter.py"]


def test_imports_are_absolute_and_annotations_are_there_at_run_time() -> None:
    # Prefect, pandera and pydantic read annotations
    barred = {"", "tests", "__future__"}
    assert [
        (_name(file), name)
        for file in [*SOURCES, *TESTS]
        if BARRED.search(file.read_text(encoding="utf-8"))
        for name in _imported(file)
        if name.split(".")[0] in barred
    ] == []


def test_an_underscore_means_private_to_its_folder() -> None:
    modules = {_dotted(file): file for file in SOURCES}
    private = {name for name in modules if name.rpartition(".")[2].startswith("_")}
    assert private
    # Tests mirror the folders, so each may import the modules that it tests.
    assert [
        (_name(file), name)
        for file in [
            *SOURCES,
            *(REPO / "benchmarks").glob("*.py"),
            *(REPO / "scripts").glob("*.py"),
        ]
        for name in private & {each for found in _imported_names(file) for each in found}
        if modules[name].parent != file.parent
    ] == []


def test_a_class_name_has_one_meaning() -> None:
    defined: dict[str, list[str]] = {}
    aliases: dict[str, list[str]] = {}
    for file in SOURCES:
        tree = _tree(file)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                defined.setdefault(node.name, []).append(_name(file))
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                aliases.setdefault(node.targets[0].id, []).append(_name(file))
    # A nested Config is how pandera is told what a schema allows.
    assert {
        name: files
        for name, files in defined.items()
        if not name.startswith("_")
        and name != "Config"
        and len(files) + len(aliases.get(name, ())) > 1
    } == {}


def test_no_folder_is_crowded() -> None:
    folders = {file.parent for file in SOURCES}
    loose = {
        _name(folder): len([f for f in folder.glob("*.py") if not f.stem.startswith("__")])
        for folder in folders
    }
    assert {
        name: number
        for name, number in loose.items()
        if number > MOST_LOOSE and name not in CATALOGUES
    } == CROWDED


def test_there_is_no_package_of_tests() -> None:
    assert list((REPO / "tests").rglob("__init__.py")) == []


def test_nothing_in_flows_shadows_a_module() -> None:
    # Prefect puts flows/ first on sys.path
    elsewhere = [place for place in sys.path if Path(place).resolve() != REPO / "flows"]
    rooms = [folder for folder in (REPO / "flows").iterdir() if (folder / "__init__.py").is_file()]
    names = {place.stem for place in (*FLOW_FILES, *rooms)} - {"__init__"}
    assert {name for name in names if PathFinder.find_spec(name, elsewhere)} == set()
    assert names.isdisjoint({*sys.stdlib_module_names, *sys.builtin_module_names})


def test_a_flow_file_defines_flows_only() -> None:
    files = [file for file in FLOW_FILES if file.stem not in {"__init__", "serve"}]
    assert files
    for node in (node for file in files for node in _tree(file).body):
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


def test_every_entry_has_its_test() -> None:
    tests = [REPO / "tests" / folder / f"test_{name}.py" for folder, name in ENTRIES]
    assert [_name(test) for test in tests if not test.is_file()] == []


def test_every_study_is_named_in_a_test() -> None:
    others = "".join(f.read_text(encoding="utf-8") for f in TESTS if f != Path(__file__))
    quoted = {name: rf"[\"'](?:audit/)?{re.escape(name)}[\"']" for name in STUDIES}
    assert [name for name, pattern in quoted.items() if not re.search(pattern, others)] == []


def test_every_entry_has_its_line_in_the_reference() -> None:
    pages = (REPO / "docs" / "reference").glob("*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    names = {*STUDIES, *(name for _, name in ENTRIES)}
    heads = {name for name in names if re.search(rf"^## {name}$", text, re.MULTILINE)}
    assert {name for name in names - heads if f"| `{name}` |" not in text} == set()


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_names_only_what_there_is(name: str) -> None:
    study = STUDIES[name].study
    study.check()
    assert set(study.judges) <= set(JUDGES)


def test_no_file_is_too_long_to_read() -> None:
    lines = {_name(file): len(file.read_text(encoding="utf-8").splitlines()) for file in SOURCES}
    assert {name: number for name, number in lines.items() if number > LONGEST} == {}


def test_rates_are_never_written_as_percent() -> None:
    for file in SOURCES:
        for node in ast.walk(_tree(file)):
            if isinstance(node, ast.FormattedValue) and node.format_spec:
                specification = ast.unparse(node.format_spec).rstrip("'\"")
                assert not specification.endswith("%"), _name(file)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.search(r"\{[^{}]*:[^{}]*%\}", node.value), _name(file)


@pytest.mark.parametrize("name", [name for name in PROMPTS if not PROMPTS[name].pointwise])
def test_simulated_judges_can_read_a_pair_prompt(name: str) -> None:
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


def test_operating_characteristics_are_of_rows_that_exist(generator: ModuleType) -> None:
    # Of a row that it does not name, the page of statistics says "not yet".
    simulated, exempt = generator.characterised()
    assert simulated.isdisjoint(exempt)
    given = {row for name in STATISTICS for row in STATISTICS[name].gives}
    assert {*simulated, *exempt} <= given


def test_the_formatter_is_obeyed() -> None:
    # put together here, lest this file count
    skip = "fmt: " + "skip"
    files = [*SOURCES, *TESTS, *(REPO / "benchmarks").glob("*.py")]
    assert sum(file.read_text(encoding="utf-8").count(skip) for file in files) <= 5
