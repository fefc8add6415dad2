"""What is imported before the server starts, before the first call, and while judges are asked."""

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
LOADED = "import sys; print(*(m for m in {modules!r} if m in sys.modules))"


def _loaded(code: str, *modules: str) -> set[str]:
    """Return which modules a new process has imported after ``code``."""
    program = f"{code}\n{LOADED.format(modules=modules)}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPO, capture_output=True, text=True, check=True
    )
    return {*done.stdout.split()}


def test_help_needs_no_library_but_click() -> None:
    heavy = ("pydantic", "polars", "duckdb", "prefect", "httpx")
    assert _loaded("import flows.cli.main", "click", *heavy) == {"click"}


def test_server_and_worker_start_before_frames_and_prefect_are_imported() -> None:
    heavy = ("polars", "pandera", "duckdb", "prefect", "httpx", "litellm")
    assert _loaded("import flows.cli.audit", *heavy) == {"duckdb"}


@pytest.mark.slow
def test_results_are_imported_while_judges_are_asked() -> None:
    of_results = (
        "flows.results.audit_results",
        "flows.results.result_stages",
        "tasks.report",
        "tasks.statistics.asr",
        "tasks.charts.forest",
        "scipy",
    )
    assert _loaded("import flows.audit", *of_results) == set()
    prepared = "from flows.results.preparation import prepare_results; prepare_results()"
    assert _loaded(f"import flows.audit; {prepared}", *of_results) == {*of_results}


@pytest.mark.slow
def test_preparation_leaves_no_template_no_code_and_no_schema() -> None:
    code = (
        "import flows.audit\n"
        "from flows.results.preparation import prepare_results; prepare_results()\n"
        "from tasks.kit.code_digest import reachable_digest\n"
        "from tasks.report import TEMPLATE\n"
        "from tasks.reporting.page import environment\n"
        "from flows.results import result_stages\n"
        "read = reachable_digest.cache_info().misses\n"
        "for name in ('log_votes', 'count_votes', 'measure', 'conclude_findings'):\n"
        "    reachable_digest(getattr(result_stages, name).fn.__module__)\n"
        "assert reachable_digest.cache_info().misses == read\n"
        "compiled = set(environment().cache.keys())\n"
        "assert TEMPLATE in {name for _, name in compiled}\n"
        "import pandera.polars as pa\n"
        "from schemas.judging import Shifts, Tallies\n"
        "from schemas.results import Drifts, Estimates, Findings, Gates\n"
        "pa.DataFrameModel.build_schema_ = None\n"
        "for frame in (Tallies, Shifts, Estimates, Findings, Drifts, Gates):\n"
        "    frame.to_schema()"
    )
    assert _loaded(code, "tasks.report") == {"tasks.report"}


def test_threads_that_use_frames_find_numpy_loaded_by_polars() -> None:
    """Polars replaces its lazy module at first use; two threads at once crash (polars 2.1)."""
    code = (
        "import polars, numpy, schemas.frame\n"
        "from polars import _dependencies\n"
        "load, loaded = _dependencies.import_module, []\n"
        "_dependencies.import_module = lambda name: loaded.append(name) or load(name)\n"
        "assert polars.Series([1, 2])[numpy.array([1])].to_list() == [2]\n"
        "assert 'numpy' not in loaded\n"
    )
    assert _loaded(code, "polars") == {"polars"}
