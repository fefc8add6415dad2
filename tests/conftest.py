"""One factory per frame, ``make_NAME(rows, **defaults)``, a row naming what matters; a browser."""

import fcntl
import gc
import importlib.util
import json
import os
import pickle
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import duckdb
import polars as pl
import pytest
from click.testing import CliRunner, Result
from hypothesis import settings
from kept_reader import KeptReader
from playwright.sync_api import Browser, BrowserType, sync_playwright

from flows.serving.access import CERTIFICATES, one_certificate
from schemas.calibration import Advantages, AltTests, Ratings
from schemas.curation import Answers, Perturbations, PerturbedAnswers, Questions
from schemas.frame import Frame
from schemas.judging import Ballots, Contests, Judges, Pairs, Shifts, VoteLog, Votes
from schemas.results import Annotations, Estimates
from warehouse import _schema
from warehouse.store import Warehouse

# Frames are validated at every step: an example takes longer on a busy machine than on a free one.
# The counts in the tests are those of the profile "full"; "fast" is the usual one, "ci" that of CI.
MOST_EXAMPLES, FEWEST_EXAMPLES = 100, 3
settings.register_profile("full", deadline=None, max_examples=MOST_EXAMPLES)
settings.register_profile("ci", deadline=None, max_examples=MOST_EXAMPLES // 3)
settings.register_profile("fast", deadline=None, max_examples=MOST_EXAMPLES // 10)
settings.load_profile("fast")

# A test sees nothing of the user's: neither entries, settings and keys, nor a server.
# Prefect keeps results where its home is when it is imported.
OURS = ("HOME", "WAREHOUSE", "PROVIDERS", "RESULT_DAYS", "HUMANS_OR_LLMS")
OF_PROVIDERS = ("_API_KEY", "_API_BASE", "_BASE_URL", "_API_URL")
for name in [*os.environ]:
    if name in {f"VOIRDIRE_{each}" for each in OURS} or name.endswith(OF_PROVIDERS):
        del os.environ[name]
HOME = tempfile.mkdtemp(prefix="voirdire-tests-")
os.environ["PREFECT_HOME"] = HOME

# This process makes each context of Prefect's clients once.
os.environ[CERTIFICATES] = str(one_certificate(Path(HOME, "authority.pem")))
ssl.create_default_context = cache(ssl.create_default_context)

SERVED = {"served", "hosted", "shared"}
"""Fixtures of processes and threads that have a warehouse open."""

IN_ONE_PROCESS = {"voirdire", "audited"}
"""Fixtures of slow tests that run commands in the test process."""

OPEN_NO_WAREHOUSE = {"tasks.engine.worker", "tasks.drawing.svg_process"}
"""Modules whose processes leave warehouses alone."""

SLOW = {"chromium", "served", "voirdire_process"}
"""Fixtures that make a test slow, also by way of another fixture."""

LONGEST = (
    "flows/test_engine.py",
    "flows/test_serve_alone.py",
    "flows/test_batches.py",
    "flows/running/test_casting.py",
    "flows/test_server_dies.py",
    "benchmarks/test_characteristics.py",
    "flows/test_audit.py",
    "booth/test_browser.py",
    "flows/test_waves.py",
    "booth/test_browser_time.py",
    "booth/test_remeasure.py",
    "flows/test_serve.py",
    "flows/test_quick.py",
    "flows/test_nulls.py",
    "flows/results/test_calibration.py",
    "flows/running/test_gaps.py",
    "tasks/statistics/test_coverage.py",
    "flows/test_pointwise.py",
    "flows/test_own_judge.py",
    "booth/browsing/test_browser.py",
    "flows/cli/test_logs.py",
    "flows/cli/test_examples.py",
    "tasks/statistics/test_sizes.py",
    "flows/cli/test_measure_tables.py",
    "tasks/engine/test_responses.py",
    "warehouse/test_store_busy.py",
)
"""Modules that take half a minute or more, the longest first. They begin first: each runs in one
process, and the others would wait for one that began late."""

EXAMPLES = "_hypothesis_internal_use_settings"
"""Where Hypothesis keeps the settings of a test; an explicit count would override the profile."""

REQUIRED = "VOIRDIRE_REQUIRE_BROWSER"
"""If it is set, as CI does, the proof may not be skipped."""
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Browsers, the fastest first: the shell draws no window of its own."""
Row = dict[str, Any]
Make = Callable[..., Any]
SCORES = {"anchor": 0.0, "tie": 0.5, "target": 1.0, None: None}
PLACES = {"anchor": -1.0, "tie": 0.0, "target": 1.0}
CELL = {"dataset": "demo", "judge": "ada", "prompt": "plain", "wave": ""}
LATER = "2024-11-13T12:00:00"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage during collection, whose time it doubles: what is imported stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Remove what Prefect kept."""
    shutil.rmtree(HOME, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let long modules begin; mark what is slow; scale Hypothesis by its profile."""
    here = Path(__file__).parent
    places = {here / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    usual = settings().max_examples
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if SLOW & {*item.fixturenames}:
            item.add_marker(pytest.mark.slow)
        given = getattr(item.obj, EXAMPLES, None)
        # Cases of one test share its function: its settings are scaled once.
        if given and given.max_examples != usual and not hasattr(item.obj, "scaled_examples"):
            count = max(FEWEST_EXAMPLES, given.max_examples * usual // MOST_EXAMPLES)
            setattr(item.obj, EXAMPLES, settings(given, max_examples=count))
            item.obj.scaled_examples = count


@pytest.fixture(scope="session")
def built_warehouse(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a new warehouse as this version builds it."""
    path = tmp_path_factory.mktemp("built") / "voirdire.duckdb"
    Warehouse(path).query("select 1")
    return path.read_bytes()


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return a folder that all processes of this run share."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def fill_once(
    shared_folder: Path,
) -> Callable[[str, Callable[[Path], Any]], tuple[Path, Any]]:
    """Return a function that fills a folder in one of this run's processes, for all of them.

    It returns the folder, and what filling it returned.
    """

    def once(name: str, fill: Callable[[Path], Any]) -> tuple[Path, Any]:
        folder, result = shared_folder / name, shared_folder / f"{name}.pickle"
        with (shared_folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not result.exists():
                folder.mkdir()
                result.write_bytes(pickle.dumps(fill(folder)))
        return folder, pickle.loads(result.read_bytes())

    return once


@pytest.fixture(scope="session")
def copy_warehouse() -> Callable[[Path, bytes], None]:
    """Return a function that writes a copy of a warehouse of this session's, already examined."""

    def copy(path: Path, content: bytes) -> None:
        path.touch(mode=0o600)
        path.write_bytes(content)
        _schema._examined.add(_schema._identity(path))

    return copy


@pytest.fixture(scope="module")
def copied_warehouses(
    built_warehouse: bytes, copy_warehouse: Callable[[Path, bytes], None]
) -> Iterator[None]:
    """Copy each new warehouse from one that was built, which takes a hundredth of the time.

    A copy whose schema or marts a test has changed is migrated like any other file.
    """
    create = Warehouse._create

    def copied(self: Warehouse) -> None:
        try:
            copy_warehouse(self.path, built_warehouse)
        except OSError:
            # Where nothing can be written the error is that of the product.
            create(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Warehouse, "_create", copied)
        yield


@pytest.fixture
def kept_reader(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let visits that only read, one after another, share what takes longest: to open the file.

    Tests of several processes open it anew each time, as the product does.
    """
    names = {*request.fixturenames}
    slow = request.node.get_closest_marker("slow") and not IN_ONE_PROCESS & names
    if slow or SERVED & names:
        yield
        return
    reader, execute = KeptReader(), subprocess.Popen._execute_child  # type: ignore[attr-defined]

    def started(process: Any, words: Any, *more: Any) -> Any:
        if not (isinstance(words, list) and OPEN_NO_WAREHOUSE & {*words}):
            reader.keeps = False
            reader.release()
        return execute(process, words, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warehouse.store.connect", reader.connect)
        patch.setattr("warehouse.path_checks.connect", reader.connect)
        patch.setattr(duckdb, "connect", reader.connect_directly)
        patch.setattr(subprocess.Popen, "_execute_child", started)
        yield
        reader.release()


@pytest.fixture(autouse=True)
def drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let audits in this process draw in it, where what draws has started already."""
    aside = lambda: nullcontext(lambda _: None)  # noqa: E731
    monkeypatch.setattr("tasks.drawing.render.drawing_aside", aside)


@pytest.fixture(scope="module")
def drawn_once() -> Iterator[None]:
    """Draw equal pictures of a module's reports once."""
    import vl_convert

    draw = vl_convert.vegalite_to_svg
    drawn: dict[str, str] = {}

    def once(spec: Any, **options: Any) -> str:
        key = json.dumps([spec, options])
        if key not in drawn:
            drawn[key] = draw(spec, **options)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", once)
        yield


@pytest.fixture
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the charts out of reports, as drawing takes half the time of a small calibration."""
    for module in ("tasks.report", "tasks.reporting.calibration_report"):
        monkeypatch.setattr(f"{module}.drawings", lambda **_: [])


@pytest.fixture(scope="session")
def generator() -> ModuleType:
    """Return the script that writes the reference pages, as a module."""
    place = Path(__file__).parents[1] / "scripts" / "reference_pages.py"
    spec = importlib.util.spec_from_file_location("reference_pages", place)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference_pages"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """Return the folder of public reference data beside the repository, or skip."""
    folder = Path(__file__).parents[2] / "shared" / "reference-data"
    if not folder.is_dir():
        pytest.skip("no reference data: put them at ../shared/reference-data")
    return folder


@pytest.fixture(scope="session")
def make_vote_log() -> Make:
    def complete(row: Row) -> Row:
        planted = row.get("arm") in {"experimental", "sham"}
        variant = "brief" if row.get("arm") == "reworded" else None
        return {
            **CELL,
            "sample": "s1",
            "cluster": row.get("sample", "s1"),
            "arm": "control",
            "perturbation": "boast" if planted else variant,
            "kind": "promote" if planted else None,
            "shown_first": "anchor",
            "repeat": 0,
            "choice": "first",
            "simulated": False,
            "cached": False,
            **row,
        }

    return _factory(VoteLog, complete)


@pytest.fixture(scope="session")
def make_shifts() -> Make:
    """Rows give the verdicts ``control``, ``experimental`` and ``sham``; scores follow them."""

    def complete(row: Row) -> Row:
        arms = ("control", "experimental", "sham")
        return {
            **CELL,
            "cluster": row["sample"],
            "perturbation": "boast",
            "kind": "promote",
            "mode": "balanced",
            "votes": 6,
            **dict.fromkeys(arms),
            **dict.fromkeys(("control_votes", "sham_votes", "replicate_votes")),
            **{f"{arm}_score": SCORES[row.get(arm)] for arm in arms},
            "has_sham": "sham" in row or "sham_score" in row,
            "has_replicate": "replicate" in row,
            "simulated": False,
            **row,
        }

    return _factory(Shifts, complete, numbered="sample")


@pytest.fixture(scope="session")
def make_contests() -> Make:
    """Rows give the target's ``score``; "bee" is the target, "ant" the anchor."""

    def complete(row: Row) -> Row:
        return {
            **CELL,
            "cluster": row["sample"],
            "votes": 2,
            "score_12": row.get("score"),
            "score_21": row.get("score"),
            "score": None,
            "anchor_author": "ant",
            "target_author": "bee",
            "simulated": False,
            **row,
        }

    return _factory(Contests, complete, numbered="sample")


@pytest.fixture(scope="session")
def make_estimates() -> Make:
    """Rows give what matters of a mean preference shift."""

    def complete(row: Row) -> Row:
        return {
            "statistic": "mps",
            **CELL,
            "mode": "balanced",
            "perturbation": "boast",
            "subgroup": "",
            "kind": "promote",
            "estimate": None,
            "n": 0,
            "clusters": 0,
            "dropped": 0,
            "votes_per_pair": 6,
            "method": "none",
            "simulated": False,
            **row,
        }

    return _factory(Estimates, complete)


@pytest.fixture(scope="session")
def make_ratings() -> Make:
    """Rows give ``sample``, ``value`` (None is unreadable) and the arm; grades from 1 to 10."""

    def complete(row: Row) -> Row:
        planted = row.get("arm", "control") in {"experimental", "sham"}
        side = row.get("side", "target")
        passing = row.get("kind") == "label"
        value = row["value"]
        return {
            **CELL,
            "prompt": "grade",
            "item": row["sample"] + ("/anchor" if side == "anchor" else ""),
            "cluster": row["sample"],
            "side": side,
            "arm": "control",
            "perturbation": "boast" if planted else None,
            "perturbation_kind": "promote" if planted else None,
            "repeat": 0,
            "human": False,
            "kind": "number",
            "lowest": None if passing else 1.0,
            "highest": None if passing else 10.0,
            "inconsistent": False,
            "simulated": False,
            "label": (["fail", "pass"][int(value)] if passing else str(value))
            if value is not None
            else None,
            "invalid": None if value is not None else "no rating",
            **row,
        }

    return _factory(Ratings, complete)


@pytest.fixture(scope="session")
def make_annotations() -> Make:
    """Rows name ``annotator``, ``item`` and ``label``; people are those with a capital."""

    def complete(row: Row) -> Row:
        human = row["annotator"][0].isupper()
        return {
            "dataset": "demo",
            "cluster": row["item"],
            "aspect": None,
            "wave": "",
            "human": human,
            "prompt": None if human else "plain",
            "inconsistent": False,
            "votes": 1,
            "simulated": False,
            "value": PLACES.get(row["label"]),
            **row,
        }

    return _factory(Annotations, complete)


MARGIN = {
    "metric": "accuracy",
    "epsilon": 0.1,
    "epsilon_kind": "additive",
    "asked": True,
    "low": 0.8,
    "high": 0.95,
    "level": 0.95,
    "method": "cluster-adjusted Wilson",
    "advantage_probability": 0.9,
    "human_advantage_probability": 0.85,
    "tied": 0.75,
    "unreadable": 0,
    "simulated": None,
}


@pytest.fixture(scope="session")
def make_alt_tests() -> Make:
    """Rows give what matters of a judge at one epsilon."""

    def complete(row: Row) -> Row:
        return {
            **CELL,
            "prompt": "none",
            **MARGIN,
            "test": "auto",
            "winning_rate": 1.0,
            "passed": True,
            "annotators": 3,
            "n": 60,
            "dropped": 0,
            **row,
        }

    return _factory(AltTests, complete)


@pytest.fixture(scope="session")
def make_advantages() -> Make:
    """Rows give what matters of an annotator against a judge at one epsilon."""

    def complete(row: Row) -> Row:
        return {
            **CELL,
            "prompt": "none",
            **MARGIN,
            "annotator": "Ann",
            "n": 60,
            "better": 6,
            "worse": 9,
            "test": "score",
            "p_value": 0.001,
            "p_value_t": 0.0005,
            "p_value_score": 0.001,
            "p_adjusted": 0.004,
            "rejected": True,
            **row,
        }

    return _factory(Advantages, complete)


@pytest.fixture(scope="session")
def make_questions() -> Make:
    return _factory(
        Questions,
        lambda row: {"question_id": "demo/1", "dataset": "demo", "question": "Why?", **row},
    )


@pytest.fixture(scope="session")
def make_answers() -> Make:
    def complete(row: Row) -> Row:
        full = {"question_id": "demo/1", "slot": 1, **row}
        name = f"{full['question_id']}/a{full['slot']}"
        return {"answer_id": name, "answer": f"Text of {name}.", **full}

    return _factory(Answers, complete)


@pytest.fixture(scope="session")
def make_perturbations() -> Make:
    return _factory(
        Perturbations,
        lambda row: {
            "perturbation": "boast",
            "recipe": 1,
            "kind": "promote",
            "bias": "authority",
            "source": "made up",
            **row,
        },
    )


@pytest.fixture(scope="session")
def make_perturbed_answers() -> Make:
    def complete(row: Row) -> Row:
        return {
            "answer_id": "demo/1/a2",
            "question_id": "demo/1",
            "perturbation": "boast",
            "recipe": 1,
            "seed": 1,
            "made_by": "template",
            "perturbed": "Boasting.",
            "sham": "Neutral.",
            **row,
        }

    return _factory(PerturbedAnswers, complete)


@pytest.fixture(scope="session")
def make_pairs() -> Make:
    def complete(row: Row) -> Row:
        planted = row.get("arm") in {"experimental", "sham"}
        return {
            "pair_id": "p1",
            "dataset": "demo",
            "sample": "demo/1/a2",
            "cluster": "demo/1",
            "arm": "control",
            "perturbation": "boast" if planted else None,
            "kind": "promote" if planted else None,
            "question": "Why?",
            "anchor": "Because.",
            "target": "Therefore.",
            **row,
        }

    return _factory(Pairs, complete)


@pytest.fixture(scope="session")
def make_judges() -> Make:
    return _factory(
        Judges,
        lambda row: {
            "judge": "ada",
            "provider": "offline",
            "model": "offline/ada",
            "params": "{}",
            "system": "",
            "simulated": True,
            **row,
        },
    )


@pytest.fixture(scope="session")
def make_ballots() -> Make:
    return _factory(
        Ballots,
        lambda row: {
            "ballot_id": "b1",
            "pair_id": "p1",
            "judge": "ada",
            "prompt": "plain",
            "wave": "",
            "shown_first": "anchor",
            "repeat": 0,
            **row,
        },
    )


@pytest.fixture(scope="session")
def make_votes() -> Make:
    cast_at = pl.Series([LATER]).str.to_datetime(time_unit="us", time_zone="UTC")[0]
    return _factory(
        Votes,
        lambda row: {
            "ballot_id": "b1",
            "choice": "first",
            "raw": "[[A]]",
            "seconds": 1.0,
            "attempts": 1,
            "cast_at": cast_at,
            **row,
        },
    )


def _factory(
    model: type[Frame], complete: Callable[[Row], Row], numbered: str | None = None
) -> Make:
    def make(rows: Iterable[Mapping[str, Any]] = ({},), **defaults: object) -> pl.DataFrame:
        full = []
        for number, row in enumerate(rows):
            name = {numbered: f"s{number:03}"} if numbered else {}
            full.append(complete({**name, **defaults, **row}))
        if not full:
            return model.empty()
        return model.draft(pl.DataFrame(full, infer_schema_length=None))

    return make


@pytest.fixture(scope="module")
def chromium() -> Iterator[tuple[BrowserType, dict[str, Any]]]:
    """Return what starts browsers, and how."""
    place = next(filter(None, map(shutil.which, NAMES)), None)
    if place is None:
        reported = "no Chromium on this machine: install the package `chromium-headless-shell`"
        pytest.fail(reported) if os.environ.get(REQUIRED) else pytest.skip(reported)
    # In containers, where root runs tests, it has no sandbox of its own.
    bare = ["--no-sandbox"] if sys.platform == "linux" and os.geteuid() == 0 else []
    # A name of this machine, which browsers do not take for it.
    named = ["--host-resolver-rules=MAP vote.example 127.0.0.1", "--no-proxy-server"]
    with sync_playwright() as playwright:
        yield playwright.chromium, {"executable_path": place, "args": [*bare, *named]}


@pytest.fixture(scope="module")
def browser(chromium: tuple[BrowserType, dict[str, Any]]) -> Iterator[Browser]:
    kind, how = chromium
    browser = kind.launch(**how)
    yield browser
    browser.close()


NUMBERS = (
    "99999999999999999999",
    "-99999999999999999999",
    "9223372036854775807",
    "-1",
    "0",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e-320",
    "9" * 5000,
    "",
    " ",
    "1,5",
    "0x10",
    "\x1b[31m1",
    "--yes",
)
TEXTS = (
    "99999999999999999999",
    "-1",
    "",
    " ",
    "a\nb",
    "a\x07b",
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x9b31m",
    "a\u202eb",
    "a\udcffb",
    "x" * 100_000,
    "Ünï∂🙂",
    "../up",
    "a'b\"c",
    "'; drop table votes; --",
    "{date}{0}{x.__class__}",
    "[bold]x[/nope]",
    "%s%n",
    "--",
    "--yes",
    "-",
    "noise.csv:f",
)
PATHS = (
    "http://127.0.0.1:9/x.csv",
    "file:///etc/passwd",
    "~nobody/x",
    "folder",
    "folder.csv",
    "absent.csv",
    "absent/w.duckdb",
    "noise.csv",
    "noise.json",
    "noise.jsonl",
    "noise.parquet",
    "noise.duckdb",
    "empty.csv",
    "empty.duckdb",
    "latin.csv",
)
CODES = {0, 1, 2, 3}
"""What a command may end with (docs/reference/exit-codes.md); signals have codes of their own."""


class Hostile:
    """Commands with values that nobody means well, in a folder with files that are no good."""

    def __init__(self, folder: Path) -> None:
        for name in ("folder", "folder.csv"):
            (folder / name).mkdir()
        for ending in ("csv", "json", "jsonl", "parquet", "duckdb"):
            (folder / f"noise.{ending}").write_bytes(bytes(range(256)) * 8)
            (folder / f"empty.{ending}").touch()
        (folder / "latin.csv").write_bytes(b"question_id,question,anchor,target\n1,caf\xe9,b,c\n")

    def faults(self, command: click.Command, words: list[str], step: int = 1) -> list[str]:
        """Try each parameter of a command with each value; return what goes wrong.

        With a ``step`` each parameter gets some of the values, the next one others; the profile
        ``fast`` of Hypothesis takes larger steps.
        """
        step *= MOST_EXAMPLES // settings().max_examples
        found = [
            self.fault(command, self.words(parameter, value, words), str(parameter.name))
            for number, parameter in enumerate(command.params)
            for values in [self._values(parameter)]
            for value in values[number % min(step, len(values)) :: step]
        ]
        assert len(found) >= len(command.params)
        return [fault for fault in found if fault]

    def words(self, parameter: click.Parameter, value: str, words: list[str]) -> list[str]:
        """Put a value in place of what ``words`` say; an argument comes first in them."""
        if isinstance(parameter, click.Argument):
            return [*words[1:], "--", value]
        flag = max(parameter.opts, key=len)
        if parameter.nargs > 1:
            return [*words, flag, *[value] * parameter.nargs]
        at = words.index(flag) if flag in words else len(words)
        return [*words[:at], *words[at + 2 :], f"{flag}={value}"]

    def fault(self, command: click.Command, words: list[str], parameter: str) -> str:
        """Run a command; return what is wrong with how it answers, empty if nothing is."""
        before = dict(os.environ)
        done = CliRunner().invoke(command, words, prog_name="voirdire")
        # `serve` tells its runs by the environment where things are.
        os.environ.clear()
        os.environ.update(before)
        [asked] = [each for each in command.params if each.name == parameter]
        apart = asked.nargs > 1 or "--" in words[-2:-1]
        value = words[-1] if apart else words[-1].partition("=")[2]
        reported = self._fault(done, asked, value)
        return f"{command.name} {parameter} {value!r:.80}: {reported}" if reported else ""

    def _values(self, parameter: click.Parameter) -> tuple[str, ...]:
        if isinstance(parameter, click.Option) and parameter.is_flag:
            return ("9" * 5000, "\x1b[31m", "1", "")
        if isinstance(parameter.type, (*INTEGERS, *REAL)):
            return NUMBERS
        return (*TEXTS, *PATHS) if is_path(parameter) else TEXTS

    def _fault(self, done: Result, parameter: click.Parameter, value: str) -> str:
        said = done.stderr
        control = (unicodedata.category(c) in CONTROL and c not in "\n\u200c\u200d" for c in said)
        faults = {
            f"ended by {done.exception!r:.300}": done.exception
            and not isinstance(done.exception, SystemExit),
            "traceback": "Traceback" in done.output,
            f"exit code {done.exit_code}": done.exit_code not in CODES,
            "control characters": any(control),
            f"{len(said)} characters": len(said) > 4300,
            "no error, or several": done.exit_code and len(ERROR.findall(said)) != 1,
            "does not name option and value": done.exit_code
            and not (names(parameter, said) and repeats(parameter, value, said)),
        }
        found = [fault for fault, there in faults.items() if there]
        return f"{', '.join(found)}: {said!r:.300}" if found else ""


ERROR = re.compile(r"^(?:voirdire|Error): ", re.MULTILINE)
CONTROL = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
INTEGERS = (click.types.IntParamType, click.IntRange)
REAL = (click.types.FloatParamType, click.FloatRange)
ABOUT = {
    "on": "study",
    "off": "study",
    "only": "statistic",
    "query": "Parser Error",
    "voters": "voter",
    "least": "min_instances",
    "renew": "link",
}
"""What an error calls a thing whose option has another name."""

WIDTH = 8
FILES = {"dataset", "folder"}
"""Options that are a name or a path; a path is named by itself."""


def is_path(parameter: click.Parameter) -> bool:
    """Tell whether a parameter is a path, or may be one."""
    return isinstance(parameter.type, click.Path) or parameter.name in FILES


def names(parameter: click.Parameter, said: str) -> bool:
    """Tell whether an error names the option, or the thing; a path is named by itself."""
    if is_path(parameter):
        return True
    flags = [*parameter.opts, *(flag.lstrip("-") for flag in parameter.opts)]
    about = ABOUT.get(str(parameter.name), str(parameter.name))
    return any(name in said for name in (*flags, about, parameter.human_readable_name))


def repeats(parameter: click.Parameter, value: str, said: str) -> bool:
    """Tell whether an error repeats how a value begins; a flag has none."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return "does not take a value" in said
    if not value.strip():
        # Blanks cannot be distinguished from the rest of a sentence.
        return True
    try:
        if isinstance(parameter.type, INTEGERS) and f"{int(value)}"[:WIDTH] in said:
            return True
        if isinstance(parameter.type, REAL) and (
            f"{float(value)}" in said or f"{float(value):g}" in said
        ):
            return True
    except ValueError:
        pass
    lost = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in CONTROL else c for c in value
    )
    # Of a query DuckDB shows the line at fault.
    lines = [line for line in value.splitlines() if line.strip()]
    parts = [Path(value).name, Path(value).parent.name, str(Path(value)), *lines]
    shown = [lost, repr(value)[1:-1], *parts]
    return any(text and text[:WIDTH] in said for text in shown)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hostile:
    """Return what tries hostile values, in this test's folder."""
    monkeypatch.chdir(tmp_path)
    return Hostile(tmp_path)
