"""Bad input through the command line: one clear error, nothing saved."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from subprocess import PIPE
from typing import Any

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner, Result

from flows.cli import audit
from flows.cli.main import main
from flows.running.counts import RunCounts
from flows.running.run_row import RunRow
from flows.serving.access import Access
from flows.studies import Study
from tasks.kit.printable import thousands
from tasks.readers.questions import load_own
from warehouse.store import Warehouse

GOOD = {"question_id": "q1", "question": "Why?", "anchor": "Because.", "target": "Therefore."}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No server, no worker process: an error must come before either is used."""
    monkeypatch.chdir(tmp_path)
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("VOIRDIRE_WAREHOUSE", str(tmp_path / "voirdire.duckdb"))
    monkeypatch.setattr(audit, "find_server", lambda _: Access("http://127.0.0.1:9/api"))
    monkeypatch.setattr(audit, "shared_worker", lambda: None)


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("sql", "--ask"), "Allowed: "),
        (("sql", "--format"), "Allowed: table, json, csv, parquet."),
        (("export", "--output"), "Write the files to this new folder."),
    ],
)
def test_an_option_without_its_value_says_which_there_are(
    words: tuple[str, ...], allowed: str
) -> None:
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 2
    said = f"Option '{words[1]}' requires an argument. {allowed}"
    assert said in " ".join(done.stderr.split())
    assert "which_judge" in done.stderr or "--ask" not in words


@pytest.mark.parametrize(
    "words",
    [
        ("gate", "quick", "--junit"),
        ("gate", "quick", "--markdown"),
        ("sql", "select 1", "--output"),
        ("snapshot", "--output"),
        ("report", "quick", "--output"),
    ],
)
def test_a_file_is_not_written_to_a_folder_that_is_missing(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    Warehouse(tmp_path / "voirdire.duckdb").save([], run="r1", study="quick")
    folder = tmp_path / "mis\x1bspelt"
    done = CliRunner().invoke(main, [*words, str(folder / "file.csv")])
    assert (done.exit_code, done.stdout) == (2, "")
    said = " ".join(done.stderr.split())
    where = str(tmp_path / "mis\N{REPLACEMENT CHARACTER}spelt")
    assert f"there is no folder {where} for the file file.csv. Make it first" in said
    assert not folder.exists()


def test_a_file_without_a_folder_is_written_where_the_command_runs(tmp_path: Path) -> None:
    Warehouse(tmp_path / "voirdire.duckdb").save([], run="r1", study="quick")
    done = CliRunner().invoke(main, ["sql", "select 1 as one", "--output", "rows.csv"])
    assert done.exit_code == 0
    assert (tmp_path / "rows.csv").read_text() == "one\n1\n"


def test_no_command_shows_the_help_once() -> None:
    bare = CliRunner().invoke(main, [])
    asked = CliRunner().invoke(main, ["--help"])
    # As click ends: a command is missing, so not 0.
    assert (bare.exit_code, bare.stdout, bare.stderr) == (2, "", asked.stdout)


def refused(*words: str) -> str:
    result: Result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    said = result.stderr.strip()
    assert said.startswith("voirdire: ")
    return said


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("quik",), ("no study 'quik'", "Did you mean 'quick'?")),
        (("--judge", "offline/honst"), ("no judge 'offline/honst'", "'offline/honest'?")),
        (("--perturbation", "fake_referense"), ("'fake_referense'", "'fake_reference'?")),
        (("--prompt", "pair_v9"), ("no judge prompt 'pair_v9'", "'pair_v2'?")),
        (("--votes", "3"), ("--votes (3)", "even", "'paper'")),
        (("--votes", "0"), ("--votes is 0", "at least 1", "leave --votes out")),
        (("--name", "../../etc"), ("name", "../../etc")),
        (("--judge", "offline/honest", "--judge", "offline/honest"), ("]): offline/honest given",)),
        (
            ("--prompt", "pair_v1", "--perturbation", "padding", "--perturbation", "padding"),
            ("padding given more than once. Give each name once.",),
        ),
    ],
)
def test_unknown_names_and_odd_designs(
    words: tuple[str, ...], parts: tuple[str, ...], tmp_path: Path
) -> None:
    said = refused("audit", *words)
    assert all(part in said for part in parts), said
    assert ".." not in said.replace("../", "").replace("...", "")
    assert not (tmp_path / "voirdire.duckdb").exists()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (
            ("--judge", "openai/gpt-5.5", "--judge", "anthropic/opus-5.5"),
            ("no judge can be asked", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "Nothing"),
        ),
        (("--dataset", "blom"), ("'blom'", "'bloom'?")),
        (("--dataset", "humans_or_llms"), ("VOIRDIRE_HUMANS_OR_LLMS", "folder")),
        (("--dataset", "missing.jsonl"), ("missing.jsonl",)),
        (("--server", "http://127.0.0.1:9"), ("http://127.0.0.1:9/api cannot be used", "refused")),
    ],
)
def test_a_first_run_that_cannot_begin_leaves_a_row(
    words: tuple[str, ...], parts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.serving.server.ANSWER_SECONDS", 0.5)
    said = refused("audit", *words)
    assert all(part in said for part in parts), said
    assert _failure(tmp_path) in said


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (
            ("--judge", "offline/fair"),
            "saves it as quick. Give --name NAME to save it under another",
        ),
        (("--limit", "5", "--name", "mini"), "saves it as mini."),
        (("--name", "canary"), "saves it as canary. `voirdire audit canary` runs the settings of"),
        ((), ""),
        (("quick", "--judge", "offline/fair"), ""),
    ],
)
def test_an_audit_without_a_study_says_under_which_name_it_is_saved(
    words: tuple[str, ...], more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> str:
        raise ValueError("the end")

    # Once the data is read: an error in it is said alone.
    monkeypatch.setattr("flows.running.ballots.limit_line", stop)
    *first, end = refused("audit", *words).splitlines()
    assert end == "voirdire: the end"
    if more:
        [line] = first
        said = "voirdire: This runs study quick, as no study is named, and "
        assert line.startswith(f"{said}{more}")
    else:
        assert not first


BAD_FILES: list[tuple[str, bytes, tuple[str, ...]]] = [
    ("malformed", b'{"question_id": "q1", \n', ("line 1", "JSON")),
    ("missing", json.dumps({**GOOD, "target": None}).encode(), ("line 1", "target")),
    ("twice", (json.dumps(GOOD) + "\n").encode() * 2, ("line 2", "question_id", "q1")),
    ("blank", json.dumps({**GOOD, "anchor": " "}).encode(), ("line 1", "anchor")),
    (
        "same",
        json.dumps({**GOOD, "target": "Because."}).encode(),
        ("line 1", "the two must differ"),
    ),
    ("latin", json.dumps(GOOD).encode() + b'{"question": "caf\xe9"}', ("line 1", "UTF-8")),
    ("none", b"", ("empty",)),
    (
        "nan",
        json.dumps({**GOOD, "target": float("nan")}).encode(),
        ("line 1", "NaN is not a number"),
    ),
    # Made where it is tried, as every process of the tests reads this table.
    ("huge", b"", ("line 1",)),
]


@pytest.mark.parametrize(("name", "data", "parts"), BAD_FILES, ids=[name for name, *_ in BAD_FILES])
def test_bad_files_of_ones_own(
    name: str, data: bytes, parts: tuple[str, ...], tmp_path: Path
) -> None:
    if name == "huge":
        data = json.dumps({**GOOD, "target": "x" * 10**8}).encode()
    (tmp_path / f"{name}.jsonl").write_bytes(data)
    said = refused("audit", "--dataset", f"{name}.jsonl")
    assert f"{name}.jsonl" in said
    assert all(part in said for part in parts), said
    assert len(said) < 2000
    assert _failure(tmp_path) in said


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_rows_with_two_equal_answers_are_one_error_with_a_command_that_removes_them(
    suffix: str, tmp_path: Path
) -> None:
    rows = [
        {"question_id": f"q{at}", "question": f"Why {at}?", "anchor": f"So {at}.", "target": text}
        for at in range(300)
        for text in [f" So {at}. " if at % 2 else f"Thus {at}."]
    ]
    path, kept = tmp_path / f"mine.{suffix}", tmp_path / f"kept.{suffix}"
    frame = pl.DataFrame(rows)
    getattr(frame, {"jsonl": "write_ndjson"}.get(suffix, f"write_{suffix}"))(path)
    said = refused("audit", "--dataset", path.name)
    place, first = {"csv": ("line", 3), "parquet": ("row", 2)}.get(suffix, ("line", 2))
    listed = ", ".join(f"{place} {first + 2 * at} ('q{1 + 2 * at}')" for at in range(10))
    assert said.startswith(
        f"voirdire: mine.{suffix}: 'target' is the same as 'anchor' in 150 rows, which leaves "
        f"nothing to compare: {listed} and 140 more. Write other answers, or delete these rows"
    )
    assert "\n" not in said
    command = re.search("`(sed .*) FILE > NEW_FILE` writes the others", said)
    # Parquet has no lines.
    assert (command is None) == (suffix == "parquet")
    if command:
        done = subprocess.run([*shlex.split(command[1]), path], stdout=PIPE, check=True)
        kept.write_bytes(done.stdout)
        named = load_own(kept).questions["question_id"]
        assert {*named} == {f"kept/q{at}" for at in range(0, 300, 2)}


def test_no_command_removes_half_a_row(tmp_path: Path) -> None:
    long = '"So,\nindeed."'
    rows = [f"Why {at}?,{long},{long if at in (1, 2) else 'No.'}\n" for at in range(4)]
    (tmp_path / "mine.csv").write_text("".join(["question,anchor,target\n", *rows]))
    said = refused("audit", "--dataset", "mine.csv")
    # Rows without ids are named by their lines. Those to be deleted have three lines each.
    assert "in 2 rows, which leaves nothing to compare: line 4, line 7. Write other" in said
    assert said.endswith("Write other answers, or delete these rows.")
    # The last row is deleted up to the end of the file.
    (tmp_path / "last.csv").write_text(
        f"question,anchor,target\nWhy?,Yes.,Yes.\nWho?,Me.,You.\nWhen?,{long},{long}\n"
    )
    assert "`sed '2d;4,$d' FILE > NEW_FILE`" in refused("audit", "--dataset", "last.csv")


def _failure(folder: Path) -> str:
    """Return the error in the only row of ``runs``."""
    from warehouse.store import Warehouse

    query = "select state, ended_at is not null, error from runs"
    [(state, ended, error)] = Warehouse(folder / "voirdire.duckdb").query(query).rows()
    assert (state, ended) == ("failed", True)
    return str(error)


def newer(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table meta (schema_version integer, marts varchar)")
        connection.execute("insert into meta values (99, '')")


def foreign(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table customers (id integer)")


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda path: path.write_bytes(b"not a database" * 999), ("not a DuckDB file",)),
        (newer, ("newer voirdire", "99")),
        (foreign, ("customers", "not a warehouse")),
        (lambda path: path.mkdir(), ("is a folder",)),
    ],
)
def test_files_that_are_no_warehouse(make: Any, parts: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    said = refused("audit", "--warehouse", str(path))
    assert all(part in said for part in parts), said
    assert str(path) in said
    assert (path.read_bytes() if path.is_file() else None) == before


COMMANDS = (
    ("remeasure", "x"),
    ("report", "x"),
    ("sql", "select 1"),
    ("calibrate", "x"),
    ("audit",),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("content", ["a,b\n1,2\n", "", None])
def test_every_command_says_alike_what_is_no_warehouse(
    command: tuple[str, ...], content: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "votes.csv"
    path.mkdir() if content is None else path.write_text(content)
    said = refused(*command, "--warehouse", str(path))
    assert said == (
        f"voirdire: {path} is a folder. Name a file, such as voirdire.duckdb."
        if content is None
        else f"voirdire: {path} is not a DuckDB file that this version can read. "
        "Choose another file with --warehouse or VOIRDIRE_WAREHOUSE."
    )


def test_the_name_of_a_calibration_is_refused(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb")
    with RunRow("calibrate", "hers", warehouse, RunCounts(Study(name="quick"))):
        pass
    said = refused("audit", "quick", "--limit", "1", "--warehouse", str(warehouse.path))
    assert "holds a calibration named 'quick'" in said
    runs = warehouse.query("select run, state from runs order by started_at").rows()
    assert runs[0] == ("hers", "completed")
    assert [state for _, state in runs[1:]] == ["failed"]


def test_place_that_cannot_be_written() -> None:
    # Below /proc nobody may make a file, not even root.
    said = refused("audit", "--warehouse", "/proc/voirdire.duckdb")
    assert "/proc/voirdire.duckdb" in said
    assert "--warehouse" in said


def test_queries_need_a_warehouse() -> None:
    assert "voirdire audit" in refused("sql", "select 1")
    assert "voirdire audit" in refused("report")


def test_broken_queries_are_reported_in_one_line(tmp_path: Path) -> None:
    plan = CliRunner().invoke(main, ["plan", "--limit", "1"])
    assert plan.exit_code == 0, plan.output
    assert not (tmp_path / "voirdire.duckdb").exists()
    from warehouse.store import Warehouse

    Warehouse(tmp_path / "voirdire.duckdb").query("select 1")
    assert "votez" in refused("sql", "select * from votez")
    assert "read-only" in refused("sql", "drop table votes").lower()


def test_plan_tells_what_an_effect_takes() -> None:
    words = ["plan", "--judge", "offline/random", "--limit", "6", "--effect"]
    planned = CliRunner().invoke(main, [*words, ".05"], env={"COLUMNS": "100"})
    assert planned.exit_code == 0, planned.output
    # 478 of a typical judge at two votes, see tests/flows/test_sight.py; three arms of two votes
    assert re.search(r"offline/random +478 +2\s868 ", planned.stdout)
    for effect, why in (
        ("0", "must be between"),
        ("nan", "not a finite number"),
        ("1.5", "must be between"),
        ("1,5", "not a valid number"),
    ):
        refused = CliRunner().invoke(main, [*words, effect])
        assert refused.exit_code == 2
        assert why in refused.output


def test_plan_counts_before_anything_is_spent() -> None:
    words = ["plan", "--judge", "openai/gpt-5.5", "--judge", "offline/random", "--votes", "4"]
    planned = CliRunner().invoke(main, words, env={"COLUMNS": "120"})
    assert planned.exit_code == 0, planned.output
    # 60 questions: control, and an experimental and a sham arm of 4 perturbations; 4 votes
    assert thousands(60 * 9 * 4) in planned.stdout
    # z sigma / sqrt(60) with sigma of 4 votes, see _design: 2.8016 * .2819 / 7.746
    assert " .102" in planned.stdout
    assert "unknown" not in planned.stdout


FILE = """
[provider]
api_base = "http://127.0.0.1:9/v1"
[judges.priceless]
model = "hosted_vllm/one"
[judges.plain]
model = "hosted_vllm/one"
params = { max_tokens = 1000 }
usd_per_million = { prompt = 1, completion = 10 }
"""


@pytest.mark.served
def test_a_budget_that_cannot_hold_is_refused_and_planned(
    voirdire: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "desk.toml").write_text(FILE)
    environment |= {"VOIRDIRE_PROVIDERS": str(tmp_path / "desk")}
    words = ("--budget", "0.05", "--judge", "desk/plain", "--limit", "4")
    alone = ("--budget", "0.05", "--judge", "desk/priceless", "--limit", "4")
    done = voirdire("audit", *alone, "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no known price" in done.stderr
    assert "max_tokens" in done.stderr
    planned = voirdire("plan", *words, "--judge", "desk/priceless", "--judge", "openai/gpt-5.5")
    reported = " ".join(planned.stdout.split())
    assert planned.returncode == 0, planned.stderr
    assert "cannot ask desk/priceless: the budget of 0.05 USD cannot hold" in reported
    assert "openai/gpt-5.5: no API key in OPENAI_API_KEY" in reported
    enough = " ".join(voirdire("plan", *words).stdout.split())
    assert "The budget of 0.05 USD " in enough
    assert "would leave gaps" not in enough


@pytest.mark.parametrize("command", ["plan", "audit"])
def test_a_variable_without_an_address_hinders_its_judges_only(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, voirdire_in: Any
) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "desk.toml").write_text(
        '[provider]\napi_base_variable = "DESK_API_BASE"\n[judges.one]\nmodel = "hosted_vllm/one"\n'
    )
    asked: list[list[str]] = []
    # An audit would go on to a server.
    monkeypatch.setattr(audit, "_audit", lambda study, *_, **__: asked.append(study.judges) or 0)
    variables = {
        "DESK_API_BASE": "file:///private",
        "VOIRDIRE_PROVIDERS": str(tmp_path / "desk"),
        "COLUMNS": "200",
    }
    words = [command, "--judge", "desk/one", "--judge", "offline/random", "--limit", "2"]
    done = voirdire_in(tmp_path, {**os.environ, **variables})(*words)
    assert done.returncode == 0, done.stderr
    reported = " ".join([*done.stdout.split(), *done.stderr.split()])
    assert (
        "desk/one: DESK_API_BASE must be an address that begins with http:// or https" in reported
    )
    assert "private" not in done.stdout + done.stderr
    assert asked == ([["desk/one", "offline/random"]] if command == "audit" else [])
