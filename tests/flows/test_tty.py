"""What a terminal is told: no control characters, whoever chose the names in the data."""

import json
import os
import pty
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from flows.cli.main import main
from schemas.judging import VoteLog
from warehouse.store import Saving, Warehouse

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


@pytest.fixture
def on_a_terminal(here: Callable[..., Any], folder: Path) -> Callable[..., str]:
    """Return what runs a command whose output is a terminal, and returns what that was sent."""
    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}
    places = {
        "VOIRDIRE_WAREHOUSE": str(folder / "w.duckdb"),
        "VOIRDIRE_PROVIDERS": str(folder / "providers"),
    }

    def run(*words: str) -> str:
        own, its = pty.openpty()
        sent: list[bytes] = []
        reader = Thread(target=lambda: sent.extend(_read(own)))
        reader.start()
        with (
            here(folder, {**os.environ, **plain, **places}),
            os.fdopen(its, "w", encoding="utf-8") as screen,
            redirect_stdout(screen),
            redirect_stderr(screen),
        ):
            assert screen.isatty()
            with pytest.raises(SystemExit) as ended:
                main(words, prog_name="voirdire")
        reader.join()
        os.close(own)
        text = b"".join(sent).decode()
        assert not ended.value.code, text
        return text

    return run


def _read(terminal: int) -> Iterator[bytes]:
    """Yield what is written to a terminal until the last who wrote to it has ended."""
    with suppress(OSError):
        while True:
            yield os.read(terminal, 65536)


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
def test_no_command_commands_a_terminal(
    on_a_terminal: Callable[..., str], words: tuple[str, ...]
) -> None:
    sent = on_a_terminal(*words)
    control = {c for c in sent if not c.isprintable()} - set("\r\n\N{NO-BREAK SPACE}")
    assert control == set()
    # JSON writes them as escapes.
    assert SHOWN in sent or "ada\\u001b]0;title" in sent


@pytest.mark.parametrize("words", [("measure", "votes.parquet", "--only", "validity"), CALIBRATE])
def test_a_file_gets_the_data_as_they_are(
    folder: Path, voirdire_in: Callable[..., Any], words: tuple[str, ...]
) -> None:
    done = voirdire_in(folder, dict(os.environ))(*words, "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert EVIL in done.stdout
