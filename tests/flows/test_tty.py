"""What a terminal is told: no control characters, whoever chose the names in the data."""

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from schemas.judging import VoteLog
from warehouse.store import Saving, Warehouse

ROOT = Path(__file__).parents[2]
EVIL = "ada\x1b]0;title\x07\x9b31m\x1b[2J"
SHOWN = "ada\N{REPLACEMENT CHARACTER}]0;title"


@pytest.fixture
def folder(tmp_path: Path, make_vote_log: Any) -> Path:
    """Votes, labels and a judge whose names or words could command a terminal."""
    rows = [
        {"judge": EVIL, "sample": f"s{n:02}", "shown_first": side}
        for n in range(12)
        for side in ("anchor", "target")
    ]
    log = make_vote_log(rows)
    columns = ["judge", "sample", "cluster", "shown_first", "repeat", "choice"]
    log.select(columns).write_parquet(tmp_path / "votes.parquet")
    labels = {f"item-{n}": "ab"[n % 3 == 0] for n in range(30)}
    for name, annotators in (("people", ("Ann", "Bob", "Cid")), ("judges", (EVIL,))):
        (tmp_path / f"{name}.json").write_text(json.dumps(dict.fromkeys(annotators, labels)))
    Warehouse(tmp_path / "w.duckdb").save([Saving(VoteLog, log)], run="r", study="mine")
    (tmp_path / "providers").mkdir()
    (tmp_path / "providers" / "desk.toml").write_text(
        '[provider]\napi_base = "http://127.0.0.1:9/v1"\n[judges.one]\nmodel = "hosted_vllm/one"\n'
        f"about = {json.dumps(EVIL)}\n"
    )
    return tmp_path


def on_a_terminal(folder: Path, *words: str) -> str:
    """Run a command whose output is a terminal, and return what that was sent."""
    own, its = pty.openpty()
    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
    places = {
        "VOIRDIRE_WAREHOUSE": str(folder / "w.duckdb"),
        "VOIRDIRE_PROVIDERS": str(folder / "providers"),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *words],
        cwd=folder,
        env={**os.environ, **plain, **places},
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
    ) as process:
        os.close(its)
        sent = b""
        while select.select([own], [], [], 60)[0]:
            try:
                sent += os.read(own, 65536)
            except OSError:
                # The last who wrote to it has ended.
                break
        assert process.wait(60) == 0, sent.decode(errors="replace")
    os.close(own)
    return sent.decode()


CALIBRATE = ("calibrate", "--humans", "people.json", "--judges", "judges.json", "--no-save")


@pytest.mark.parametrize(
    "words",
    [
        *[
            ("sql", "select distinct judge from vote_log", "--format", form)
            for form in ("csv", "table", "json")
        ],
        *[
            ("measure", "votes.parquet", "--only", "validity", "--format", form)
            for form in ("csv", "table", "json")
        ],
        *[(*CALIBRATE, "--format", form) for form in ("csv", "table", "json")],
        ("list", "judges"),
        ("list", "desk/one"),
    ],
    ids=" ".join,
)
def test_no_command_commands_a_terminal(folder: Path, words: tuple[str, ...]) -> None:
    sent = on_a_terminal(folder, *words)
    control = {c for c in sent if not c.isprintable()} - set("\r\n\N{NO-BREAK SPACE}")
    assert control == set()
    # JSON writes them as escapes.
    assert SHOWN in sent or "ada\\u001b]0;title" in sent


@pytest.mark.parametrize("words", [("measure", "votes.parquet", "--only", "validity"), CALIBRATE])
def test_a_file_gets_the_data_as_they_are(folder: Path, words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *words, "--format", "csv"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    assert EVIL in done.stdout.decode()
