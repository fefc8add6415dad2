"""Hostile values of every option of every command: one clear error, never a traceback.

Commands run in this process, as `main` runs them. What would take long, or stay, is not run: an
audit ends where its server and flow would start (`plan` reads the same options and data), `measure`
and `calibrate` where they would compute, a report is not rendered, an export writes no files,
`serve` and `schedules` talk to no server, and `browse` serves no page. `voirdire booth`, a program
of its own, has its own test.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchmarks.simulated_votes import PRESETS, simulate
from flows import serve
from flows.cli import audit, calibrate, measure, sql_and_report
from flows.cli.main import main
from flows.cli.printing import gate_table
from flows.publishing.gate import GateCheck, Gated
from flows.publishing.pages import Stored
from flows.results import remeasure
from flows.running.run_row import first_row
from flows.serving import serve_loop
from flows.serving.access import Access
from flows.studies import make_study
from schemas.judging import Verdicts, VoteLog
from schemas.keys import LARGEST_INTEGER
from tasks.aggregate import count_votes
from tasks.counting.verdicts import tally_votes
from warehouse.store import Saving, Warehouse

SMALL = ["--judge", "offline/random", "--perturbation", "padding", "--limit", "2"]
PASSED = GateCheck("ada", "validity", "pass", "")
WORDS = {
    "audit": ["quick", *SMALL, "--warehouse", "new.duckdb"],
    "plan": ["quick", *SMALL, "--warehouse", "new.duckdb"],
    "measure": ["votes.parquet"],
    "doctor": ["votes.parquet"],
    "calibrate": ["mine", "--humans", "people.json", "--judges", "judges.json"],
    "remeasure": ["mine"],
    "sql": ["select 1 as a"],
    "show": ["mine"],
    "browse": ["mine"],
    "gate": ["mine"],
    "completion": ["bash"],
    "export": ["mine", "--output", "out"],
    "snapshot": [],
    "report": ["mine"],
    "list": ["asr"],
    "init": [],
    "serve": [],
    "schedules": [],
}


@pytest.fixture(scope="module")
def bytes_of_warehouse(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, VoteLog]:
    traits, kind, beta = next(iter(PRESETS.values()))
    votes = simulate(traits, kind=kind, beta=beta, items=12, votes=2, seed=0)
    log = VoteLog.of(votes)
    place = Warehouse(tmp_path_factory.mktemp("hostile") / "w.duckdb")
    now = datetime.now(UTC)
    row = first_row("audit", "old", make_study("quick", {"name": "mine"}), now)
    place.start_run({**row, "state": "completed", "ended_at": now, "planned": 9, "asked": 9})
    verdicts = tally_votes(count_votes(log), "balanced")
    place.save([Saving(VoteLog, log), Saving(Verdicts, verdicts)], run="old", study="mine")
    return place.path.read_bytes(), log


@pytest.fixture(autouse=True)
def nothing_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bytes_of_warehouse: tuple[bytes, Any]
) -> None:
    """Let commands end where they would ask, compute, serve or draw."""

    def end(*_: object, **__: object) -> Any:
        raise click.exceptions.Exit(0)

    async def end_later(*_: object, **__: object) -> None:
        raise click.exceptions.Exit(0)

    for variable in ("PREFECT_API_URL", "VOIRDIRE_HOME", "VOIRDIRE_PROVIDERS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    monkeypatch.setenv("VOIRDIRE_WAREHOUSE", str(tmp_path / "w.duckdb"))
    (tmp_path / "w.duckdb").write_bytes(bytes_of_warehouse[0])
    bytes_of_warehouse[1].write_parquet(tmp_path / "votes.parquet")
    labels = {f"item-{n}": "ab"[n % 3 == 0] for n in range(30)}
    for name, annotators in (("people", ("Ann", "Bob", "Cid")), ("judges", ("j",))):
        text = json.dumps(dict.fromkeys(annotators, labels))
        (tmp_path / f"{name}.json").write_text(text)
    server = type(
        "NoServer",
        (),
        {
            "access": Access("http://127.0.0.1:9/api"),
            "process": 1,
            "__init__": lambda *_, **__: None,
            "wait": lambda *_, **__: None,
            "stop": lambda *_: None,
        },
    )
    for module, name, stub in (
        (audit, "_audit", end),
        (measure, "results_in_log", end),
        (calibrate, "calibrate_sources", end),
        (remeasure, "results_of_study", end),
        (os, "execv", end),
        (sql_and_report, "stored_page", lambda *_: Stored("<p>", {})),
        (gate_table, "gate_of", lambda *_: Gated("mine", "", [PASSED], [])),
        (Warehouse, "copy", lambda *_: {}),
        (serve, "Server", server),
        (serve, "require_answer", lambda _: None),
        (serve, "asks_for_authentication", lambda _: True),
        (serve_loop, "serve", end_later),
        (serve_loop, "show_schedules", end_later),
    ):
        monkeypatch.setattr(module, name, stub)


def test_every_command_is_tried() -> None:
    assert {*WORDS, "booth"} == {*main.commands}


@pytest.mark.parametrize("name", WORDS)
def test_hostile_values_get_one_clear_error(name: str, hostile: Any) -> None:
    command = main.commands[name]
    assert hostile.faults(command, WORDS[name]) == []


OPTIONS = [
    (name, parameter)
    for name in WORDS
    for parameter in main.commands[name].params
    if not (isinstance(parameter, click.Option) and parameter.is_flag)
]
# What argv can hold: no NUL, and bytes that are not UTF-8 as lone surrogates. No slash: a command
# may write where it is told to, and is to stay in the test's folder.
CHARACTERS = st.characters(exclude_characters="\0/", exclude_categories=["Cs"]) | st.characters(
    min_codepoint=0xDC80, max_codepoint=0xDCFF, categories=["Cs"]
)
VALUES = st.one_of(
    st.text(CHARACTERS, max_size=40),
    st.integers().map(str),
    st.floats().map(str),
    st.from_regex(r"[-+]?[0-9_.,eE]{1,30}", fullmatch=True),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    option=next(o for o in OPTIONS if o[0] == "audit" and o[1].name == "votes_per_pair"), value="00"
)
@example(option=next(o for o in OPTIONS if o[1].name == "query"), value="\r0")
@example(option=next(o for o in OPTIONS if o[0] == "plan" and o[1].name == "columns"), value="0=0")
@example(option=next(o for o in OPTIONS if o[1].name == "ask"), value="-00")
@given(option=st.sampled_from(OPTIONS), value=VALUES)
def test_any_value_of_any_option(
    hostile: Any, option: tuple[str, click.Parameter], value: str
) -> None:
    name, parameter = option
    words = hostile.words(parameter, value, WORDS[name])
    assert hostile.fault(main.commands[name], words, parameter.name) == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--\x1b[31m"], "No such option '--"),
        (["plan", "--seeed", "1"], "--seeed"),
        (["plan", "quick", "a\x1bb"], "unexpected extra argument"),
        (["x" * 10_000], "No such command 'xxx"),
        (["plan", "--" + "x" * 10_000], "No such option '--xxx"),
        (["report", "--out"], "--out"),
    ],
)
def test_words_that_are_no_options(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "\x1b" not in done.stderr
    assert len(done.stderr) < 4300


def test_the_largest_seed_is_planned_and_a_larger_one_refused() -> None:
    reported = CliRunner().invoke(main, ["plan", *WORDS["plan"], "--seed", str(LARGEST_INTEGER)])
    assert reported.exit_code == 0, reported.stderr
    refused = CliRunner().invoke(main, ["plan", *WORDS["plan"], "--seed", str(LARGEST_INTEGER + 1)])
    assert refused.exit_code == 2
    assert refused.stderr == (
        f"voirdire: --seed is {LARGEST_INTEGER + 1}, but must be a whole number, at least 0 and at "
        f"most {LARGEST_INTEGER}. Give such a value, or leave --seed out.\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--name", "a/b"], "--name is 'a/b', but must have 1 to 64 letters A to Z, digits, '_', "),
        (["--votes", "0"], "--votes is 0, but must be a whole number, at least 1 and at most 100."),
        (["--limit", "-3"], "--limit is -3, but must be a whole number, at least 1. Give such a "),
        (["--budget", "-1"], "--budget is -1.0, but must be a finite number, above 0."),
        (["--detects-at", "1"], "--detects-at is 1.0, but must be a finite number, above 0 and "),
        (["--wave", "w" * 65], "but must have at most 64 characters. Give such a value, or leave "),
        (["--dataset", ""], "--dataset is '', but must not be empty."),
        (["--votes", "3"], "--votes (3) must be even in mode 'balanced'."),
        (["--mode", "paper", "--stop", "pair"], "--stop (pair) needs each pair in both orders, "),
        (["--mode", "paper", "--probe"], "--probe needs each pair in both orders, but mode "),
        (
            ["--mode", "paper", "--probe", "--stop", "pair"],
            "--stop (pair) and --probe need each pair in both orders, but mode 'paper' draws ",
        ),
        (["--judge", "a", "--judge", "a"], "--judge (['a', 'a']): a given more than once."),
    ],
)
def test_a_value_out_of_range_names_its_option(words: list[str], said: str) -> None:
    for command in ("audit", "plan"):
        done = CliRunner().invoke(main, [command, "quick", *words])
        assert done.exit_code == 2
        [line] = done.stderr.splitlines()
        assert said in line


def test_an_answer_that_breaks_off_stops_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def confirm(*_: object, **__: object) -> None:
        raise click.Abort

    stopped: list[int] = []
    monkeypatch.setattr(audit, "_audit", confirm)
    monkeypatch.setattr("flows.running.processes.exit_now", stopped.append)
    done = CliRunner().invoke(main, ["audit", *WORDS["audit"]])
    assert stopped == [130]
    kept = "voirdire: stopped. All saved votes are kept. Run the command again to continue.\n"
    assert done.stderr == kept
