"""`voirdire calibrate LOG --humans FILE`: judges in a log, people in a file, and the reverse."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main

Run = Callable[..., Result]
LABELS = {f"{at}/0/p": "pass" if at % 4 else "fail" for at in range(40)}

TABLE = ("table.csv", "--map", "item=nr")


def result(at: int) -> dict[str, Any]:
    """Return a result of promptfoo whose judge says the opposite of ``LABELS`` for 10 of 40."""
    component = {
        "pass": (at % 4 > 0) != (at < 10),
        "assertion": {"type": "llm-rubric", "provider": "gpt"},
    }
    return {
        "id": f"r{at}",
        "testIdx": at,
        "promptIdx": 0,
        "provider": {"id": "p"},
        "gradingResult": {"componentResults": [component]},
    }


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return what runs `voirdire calibrate` in a folder with a log, a table and files of labels."""
    monkeypatch.chdir(tmp_path)
    files: dict[str, Any] = {
        "log.json": {
            "evalId": "e",
            "config": {},
            "results": {"version": 3, "stats": {}, "results": [result(at) for at in range(40)]},
        },
        "people.json": {"anna": LABELS},
        "strange.json": {"anna": {"x1": "pass"}},
        "judges.json": {"ada": LABELS},
    }
    for name, content in files.items():
        Path(name).write_text(json.dumps(content), encoding="utf-8")
    table = "".join(f"{item},{label}\n" for item, label in LABELS.items())
    Path("table.csv").write_text(f"nr,said\n{table}", encoding="utf-8")
    return lambda *words: CliRunner().invoke(
        main, ["calibrate", *words, "--warehouse", str(tmp_path / "w.duckdb")]
    )


def agreement(done: Result) -> tuple[int, int]:
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)[0]["with_people"]["measures"]
    return next((row["hits"], row["n"]) for row in rows if row["statistic"] == "agreement")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("log.json", "--humans", "people.json"), (30, 40)),
        (
            (*TABLE, "--map", "label=said", "--humans", "people.json"),
            (40, 40),
        ),
        (
            (*TABLE, "--map", "human_label=said", "--judges", "judges.json"),
            (40, 40),
        ),
    ],
)
def test_a_file_completes_a_log(
    run: Run, words: tuple[str, ...], expected: tuple[int, int]
) -> None:
    done = run(*words, "--format", "json")
    assert agreement(done) == expected
    assert "cannot be computed" not in done.stderr


def test_labels_about_items_that_are_not_in_the_log_are_counted(run: Run, tmp_path: Path) -> None:
    # Ten of forty names are misspelt.
    labels = {
        (f"P{item}" if at < 10 else item): label for at, (item, label) in enumerate(LABELS.items())
    }
    (tmp_path / "people.json").write_text(json.dumps({"anna": labels}), encoding="utf-8")
    done = run("log.json", "--humans", "people.json", "--format", "json")
    assert agreement(done)[1] == 30
    said = " ".join(done.stderr.split())
    assert "10 of 40 labels of people.json are about items that are not in log.json, such" in said


def test_a_file_of_items_describes_a_log_and_a_file(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"{item},{'ab'[at < 20]},Text {at}\n" for at, item in enumerate(LABELS))
    (tmp_path / "items.csv").write_text(f"id,topic,text\n{rows}", encoding="utf-8")
    words = ("log.json", "--humans", "people.json", "--items", "items.csv", "--slice", "topic")
    done = run(*words)
    assert done.exit_code == 0, done.output
    # The judge is wrong on the first ten items.
    assert re.search(r"^b +20 +\.50 ", done.stdout, re.MULTILINE)
    assert re.search(r"^a +20 +1\.00 ", done.stdout, re.MULTILINE)
    assert "text: Text 0" in done.stdout


def test_the_calibration_is_named_after_the_log(run: Run) -> None:
    done = run("log.json", "--humans", "people.json")
    assert done.exit_code == 0, done.output
    assert "under the name 'log'" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("log.json",), "Give the others with --humans FILE, or export both to one table"),
        (
            ("log.json", "--humans", "strange.json"),
            "items such as 'x1'; the log has '0/0/p', '1/0/p', '10/0/p'",
        ),
        (
            ("log.json", "--judges", "judges.json"),
            "labels of judges are given twice: log.json has labels of llm-rubric by gpt",
        ),
        (
            ("table.csv", "--humans", "people.json"),
            "table.csv is read as a table with columns of judges and of people",
        ),
        (("none.csv", "--map", "item=nr"), "there is no file 'none.csv'"),
        (("--map", "item=nr"), "no FILE is given"),
        (
            ("log.json", "--humans", "people.json", "--judges", "judges.json", "--map", "item=nr"),
            "--humans and --judges name the labels of both sides already",
        ),
    ],
)
def test_errors_name_the_conflict(run: Run, words: tuple[str, ...], message: str) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
