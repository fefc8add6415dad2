"""A warehouse with an audited study of few questions, and booths of it, here or as a process.

What a browser shows needs no process (``hosted``); signals, kills and error output do (``served``).
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from child_processes import PYTHONPATH
from click import Command
from hosted_pages import LINK, Hosted
from playwright.sync_api import Browser, BrowserContext, Page
from waiting import PATIENCE_SECONDS

from booth._booth import Booth, open_booth
from booth.cli import booth as booth_command
from flows.running.run_row import first_row
from flows.studies import Study
from schemas.curation import Answers, PerturbedAnswers, Questions
from schemas.judging import (
    Ballots,
    Judges,
    Pairs,
    Prompts,
    Shifts,
    StudyPairs,
    Verdicts,
    VoteLog,
    Votes,
)
from tasks.aggregate import count_votes, log_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.judge import Design, draw_ballots, judge_table, prompt_table
from tasks.judging.sequential_stopping import Schedule, mark_stops
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]
ROOT = Path(__file__).parents[2]
STUDY = Study(name="quick", perturbations=["padding"], judges=["offline/honest", "offline/random"])


@pytest.fixture(scope="module", autouse=True)
def _copied(copied_warehouses: None) -> None:
    """Copy new warehouses."""


@pytest.fixture(autouse=True)
def _light(kept_reader: None, no_charts: None) -> None:
    """Keep files open that are only read, and draw no charts, as these tests look at none."""


@pytest.fixture(scope="session")
def build(
    make_questions: Make, make_answers: Make, make_perturbed_answers: Make, make_pairs: Make
) -> Make:
    """Return what makes a warehouse as an audit leaves it."""

    def make(count: int, texts: dict[int, str], path: Path) -> None:
        numbers = range(count)
        target = {n: f"Target {n}." for n in numbers} | texts
        questions = [{"question_id": f"demo/{n}", "question": f"Question {n}?"} for n in numbers]
        answers = [
            {"question_id": f"demo/{n}", "slot": slot, "answer": text}
            for n in numbers
            for slot, text in ((1, f"Anchor {n}."), (2, target[n]))
        ]
        perturbed = [
            {
                "answer_id": f"demo/{n}/a2",
                "question_id": f"demo/{n}",
                "perturbation": "padding",
                "seed": 0,
                "perturbed": f"Padded {n}. {target[n]}",
                "sham": f"Sham {n}.",
            }
            for n in numbers
        ]
        reported = {"experimental": "perturbed", "sham": "sham"}
        pairs = make_pairs(
            [
                {
                    "pair_id": f"{arm}-{n}",
                    "sample": f"demo/{n}/a2",
                    "cluster": f"demo/{n}",
                    "arm": arm,
                    "question": f"Question {n}?",
                    "anchor": f"Anchor {n}.",
                    "target": perturbed[n][reported[arm]] if arm in reported else target[n],
                    "perturbation": "padding" if arm in reported else None,
                    "kind": "promote" if arm in reported else None,
                }
                for n in numbers
                for arm in ("control", "experimental", "sham")
            ]
        )
        judges = judge_table(STUDY.judges)
        ballots = draw_ballots(pairs, judges, STUDY.prompts[0], Design(2, "balanced", "", 0))
        votes = _votes(ballots)
        stops = mark_stops(ballots, votes, Schedule(2))
        log = log_votes(pairs, ballots, judges, votes, waiting=ballots["ballot_id"], stops=stops)
        verdicts = tally_votes(count_votes(log), "balanced")
        warehouse = Warehouse(path)
        now = datetime.now(UTC)
        row = first_row("audit", "audit", STUDY, now)
        warehouse.start_run({**row, "state": "completed", "ended_at": now, "planned": 1})
        warehouse.save(
            [
                Saving(Questions, make_questions(questions)),
                Saving(Answers, make_answers(answers)),
                Saving(PerturbedAnswers, make_perturbed_answers(perturbed)),
                Saving(Pairs, pairs),
                Saving(Judges, judges),
                Saving(Prompts, prompt_table(STUDY.prompts)),
                Saving(Ballots, ballots),
                Saving(Votes, votes),
                Saving(StudyPairs, pairs),
                Saving(VoteLog, log),
                Saving(Verdicts, verdicts),
                Saving(Shifts, match_groups(verdicts)),
            ],
            run="audit",
            study=STUDY.name,
        )

    return make


@pytest.fixture(scope="session")
def built() -> dict[Any, bytes]:
    """Keep warehouses that were made: to copy one is quicker."""
    return {}


@pytest.fixture
def audited(
    tmp_path: Path,
    build: Make,
    built: dict[Any, bytes],
    copy_warehouse: Callable[[Path, bytes], None],
) -> Callable[..., Warehouse]:
    """Return what gives a test its own audited study; ``texts`` are those of the targets."""

    def give(count: int = 4, texts: dict[int, str] | None = None) -> Warehouse:
        path, key = tmp_path / "v.duckdb", (count, *sorted((texts or {}).items()))
        if key not in built:
            build(count, texts or {}, path)
            built[key] = path.read_bytes()
        copy_warehouse(path, built[key])
        return Warehouse(path)

    return give


def _votes(ballots: pl.DataFrame) -> pl.DataFrame:
    """Let every ballot be a tie for the second answer, in turns."""
    rows = [
        {
            "ballot_id": ballot,
            "choice": ("tie", "first", "second")[n % 3],
            "raw": "r",
            "seconds": 1.0,
            "attempts": 1,
            "cast_at": datetime(2026, 1, 1, tzinfo=UTC),
        }
        for n, ballot in enumerate(ballots["ballot_id"].unique().sort())
    ]
    return Votes.of(pl.DataFrame(rows))


@pytest.fixture
def opened() -> Iterator[Callable[..., Booth]]:
    """Return what opens a booth in this process; all are left at the end."""
    with ExitStack() as stack:
        yield lambda warehouse, **changes: stack.enter_context(
            open_booth(warehouse, STUDY.name, changes)
        )


class Served:
    """Pages served by a process of its own, those of the booth or of another command."""

    def __init__(self, warehouse: Warehouse, *words: str, command: str = "booth") -> None:
        self.errors = warehouse.path.with_name(f"stderr-{time.monotonic_ns()}")
        environment = {**os.environ, "PYTHONPATH": PYTHONPATH, "PYTHONUNBUFFERED": "1"}
        environment["PYTHONFAULTHANDLER"] = "1"
        started = [sys.executable, "-m", "flows.cli", command, "quick", "--port", "0"]
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*started, "--warehouse", str(warehouse.path), *words],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        said = ""
        assert self.process.stdout
        while "Ctrl-C" not in said:
            line = self.process.stdout.readline()
            assert line, self.errors.read_text()
            said += line
        self.links = {voter: link for voter, _, link in LINK.findall(said)}
        self.said = said

    def kill(self) -> None:
        """End it without a chance to do anything."""
        self.process.kill()
        self.process.wait(30)

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """End it in order; return its exit code and last words."""
        self.process.send_signal(number)
        try:
            said, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            # It says where its threads are.
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(30)
            pytest.fail(self.errors.read_text())
        return self.process.returncode, said


@pytest.fixture(scope="module")
def shared(build: Make, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    """Serve one booth to tests that do not end it; each is a voter of its own."""
    path = tmp_path_factory.mktemp("shared") / "v.duckdb"
    build(4, {}, path)
    voters = [f"--voter={voter}" for voter in ("reload", "closed", "wrong", "http", "desk")]
    booth = Hosted(booth_command, Warehouse(path), "quick", *voters, "--limit", "6")
    yield booth
    booth.stop()


@pytest.fixture
def hosted() -> Iterator[Callable[..., Hosted]]:
    """Return what starts booths in this process; all end with the test."""
    running: list[Hosted] = []

    def start(warehouse: Warehouse, *words: str, command: Command = booth_command) -> Hosted:
        running.append(Hosted(command, warehouse, *words))
        return running[-1]

    yield start
    for each in running:
        if each.serves:
            each.stop()


@pytest.fixture
def served() -> Iterator[Callable[..., Served]]:
    """Return what starts booths in processes; all end with the test."""
    running: list[Served] = []

    def start(warehouse: Warehouse, *words: str, command: str = "booth") -> Served:
        running.append(Served(warehouse, *words, command=command))
        return running[-1]

    yield start
    for each in running:
        if each.process.poll() is None:
            each.kill()
        if each.process.stdout:
            each.process.stdout.close()


@pytest.fixture
def person(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Return what makes a person's browser, with cookies of its own."""
    contexts: list[BrowserContext] = []

    def make(**options: Any) -> BrowserContext:
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(PATIENCE_SECONDS * 1000)
        return contexts[-1]

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def enter(person: Callable[..., BrowserContext]) -> Callable[..., Page]:
    """Open a link and begin."""

    def go(link: str, **options: Any) -> Page:
        page = person(**options).new_page()
        page.goto(link)
        page.get_by_role("button", name="Begin").click()
        page.wait_for_url("**/b/*")
        return page

    return go
