import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result
from waiting import PATIENCE_SECONDS

from booth.cli import booth as command
from flows.cli.main import main
from tasks.kit import command_line
from warehouse.store import Warehouse

Audited = Callable[..., Warehouse]
Serve = Callable[..., Any]
# Ctrl-C at the n-th call of a function while the booth waits for it, for each n there is.
ANY_MOMENT = """
import signal, sys, threading
from booth.web.server import catch_signals, wait_for_signal

serving = threading.Thread(target=threading.Event().wait, daemon=True)
serving.start()
for number in range(1, 12):
    received, seen = catch_signals(), 0

    def strike(frame, event, _):
        global seen
        seen += event in ("call", "c_call")
        if seen == number:
            seen += 1
            signal.raise_signal(signal.SIGINT)

    # Where so many calls are not made.
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    sys.setprofile(strike)
    wait_for_signal(received, serving)
    sys.setprofile(None)
    print(number, flush=True)
"""


def run(warehouse: Path, *words: str) -> Result:
    return CliRunner().invoke(command, ["quick", "--warehouse", str(warehouse), *words])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the booth has no voters yet"),
        (("--voter", "a b"), "Use 1 to 64 letters"),
        (("--voter", "ann", "--limit", "2"), "The smallest is --limit 3; with --once, which"),
        (
            ("--voter", "ann", "--perturbation", "x"),
            "no perturbation 'x' in the study. Known: padding.",
        ),
        (("--renew", "ann"), "'ann' is not a voter of quick. Voters: nobody."),
        (("--export", "b.csv"), "need exactly one voter"),
        (("--export", "b.csv", "--import", "b.csv"), "cannot be used together"),
        (("--voter", "zed", "--import", __file__), "'zed' has no ballots in the booth of quick"),
        (("--voter", "ann", "--host", "192.0.2.1"), "cannot listen on 192.0.2.1, port 8750"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    audited: Audited, words: tuple[str, ...], said: str
) -> None:
    result = run(audited().path, *words)
    assert result.exit_code == 2
    assert said in result.output
    assert result.output.count("\n") == 1


def test_the_last_lines_are_broken_at_spaces_on_a_terminal(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = audited().path
    monkeypatch.setattr(command_line, "terminal_width", lambda _: 12)
    assert run(path, "--voter", "ann", "--hand-in").output.splitlines() == [
        "ann: 0 of 12",
        "Nobody has",
        "voted yet.",
    ]


def test_without_an_audit_there_is_nothing_to_vote_on(tmp_path: Path) -> None:
    result = run(tmp_path / "none.duckdb", "--voter", "ann")
    assert "Run `voirdire audit quick` first." in result.output
    assert not (tmp_path / "none.duckdb.booth").exists()


def test_single_answers_are_not_shown_beside_an_empty_one(audited: Audited) -> None:
    path = audited().path
    with duckdb.connect(str(path)) as connection:
        connection.execute("update pairs set anchor = '' where perturbation is not null")
        shown = connection.execute("select count(*) from pairs where anchor <> ''").fetchone()
    assert shown
    # Votes on the others: each pair in one of its orders.
    assert run(path, "--voter", "ann", "--hand-in").output.startswith(f"ann: 0 of {shown[0]}\n")
    with duckdb.connect(str(path)) as connection:
        connection.execute("update pairs set anchor = ''")
    result = run(path, "--voter", "ben")
    assert result.exit_code == 2
    assert "study 'quick' is about single answers, and people vote on pairs" in result.output
    assert "`voirdire calibrate quick --humans FILE`" in result.output
    assert Warehouse(path).query("from judges where judge = 'people/ben'").is_empty()


def test_what_is_no_warehouse_is_named(tmp_path: Path) -> None:
    file = tmp_path / "votes.csv"
    file.write_text("a,b\n1,2\n")
    said = run(file, "--voter", "ann").output
    assert f"{file} is not a DuckDB file that this version can read" in said
    assert f"{tmp_path} is a folder" in run(tmp_path, "--voter", "ann").output
    assert [each.name for each in tmp_path.iterdir()] == ["votes.csv"]


def test_a_port_that_is_taken_is_named(audited: Audited) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run(audited().path, "--voter", "ann", "--port", str(port))
    assert f"cannot listen on 127.0.0.1, port {port}" in result.output


def test_a_booth_ends_in_order(audited: Audited, served: Serve) -> None:
    warehouse = audited()
    booth = served(warehouse, "--voter", "ann", "--url", "https://vote.example.org/")
    assert booth.links["ann"].startswith("https://vote.example.org/v/")
    other = run(warehouse.path, "--voter", "ben")
    assert "a booth of study 'quick' is already open in another process" in other.output
    # By Ctrl-C it ends while browsers have it open, see test_browser.py.
    code, said = booth.stop(signal.SIGTERM)
    assert (code, said.splitlines()[0]) == (0, "ann: 0 of 12")


def test_ctrl_c_ends_it_at_whatever_moment_it_comes() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ANY_MOMENT],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert ended.stdout.split() == [str(number) for number in range(1, 12)]


def test_what_voters_are_shown_is_kept(audited: Audited) -> None:
    path = audited().path
    for words, total in (
        (("--voter", "ann", "--limit", "6"), 6),
        ((), 6),
        (("--once",), 4),
        (("--limit", "1"), 1),
        (("--limit", "4", "--all-arms"), 3),
        (("--limit", "0", "--all-arms"), 12),
        (("--arms", "control"), 4),
    ):
        result = run(path, "--hand-in", *words)
        assert f"ann: 0 of {total}\n" in result.output, result.output


def test_ballots_go_out_and_come_back(audited: Audited, tmp_path: Path) -> None:
    warehouse = audited()
    file = tmp_path / "ann.csv"
    assert (
        "12 ballots of ann" in run(warehouse.path, "--voter", "ann", "--export", str(file)).output
    )
    text = file.read_text(encoding="utf-8-sig")
    file.write_text(text.replace(",\n", ",tie\n"), encoding="utf-8")
    reported = run(warehouse.path, "--voter", "ann", "--import", str(file)).output
    assert reported.startswith(
        "Saved 12 votes of ann. The file also has 0 votes saved before and 0 rows without a choice."
    )
    assert "ann: 12 of 12" in run(warehouse.path, "--hand-in").output


def test_the_command_is_listed_with_the_others() -> None:
    listed = CliRunner().invoke(main, ["--help"]).output
    assert "booth" in listed
    assert "Let people vote on the pairs of STUDY" in listed
