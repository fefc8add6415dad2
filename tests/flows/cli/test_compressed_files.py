"""Files of votes, labels and questions that are compressed with gzip are read like the others."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli.main import main
from tasks.datasets import Imported
from tasks.readers.questions import load_own

VOTES = "judge,sample,cluster,shown_first,repeat,choice\n" + "".join(
    f"j,s{n},s{n},{'anchor' if n % 2 else 'target'},0,{'first' if n % 3 else 'second'}\n"
    for n in range(12)
)
LABELS = "id,judge,human\n" + "".join(
    f"t{n},{'pass' if n % 4 else 'fail'},{'pass' if n % 3 else 'fail'}\n" for n in range(12)
)
QUESTION = {"question": "What is 2 + 2?", "anchor": "It is 4.", "target": "It is four."}


@pytest.fixture
def compressed(tmp_path: Path) -> Callable[[str, str], tuple[Path, Path]]:
    """Return a file of this name and text, and the same file compressed, in another folder."""

    def write(name: str, text: str) -> tuple[Path, Path]:
        plain, packed = tmp_path / name, tmp_path / "packed" / f"{name}.gz"
        packed.parent.mkdir()
        plain.write_text(text, encoding="utf-8")
        packed.write_bytes(gzip.compress(text.encode()))
        return plain, packed

    return write


@pytest.mark.parametrize(
    ("command", "name", "text"),
    [("measure", "votes.csv", VOTES), ("calibrate", "labels.csv", LABELS)],
)
def test_results_are_those_of_the_plain_file(
    compressed: Callable[[str, str], tuple[Path, Path]],
    tmp_path: Path,
    command: str,
    name: str,
    text: str,
) -> None:
    found = []
    for path in compressed(name, text):
        words = [command, str(path), "--format", "json"]
        if command == "calibrate":
            words += ["--warehouse", str(tmp_path / f"{path.name}.duckdb")]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        found.append(json.loads(done.stdout))
    plain, packed = found
    assert plain
    assert plain == packed


def test_questions_are_those_of_the_plain_file(
    compressed: Callable[[str, str], tuple[Path, Path]],
) -> None:
    plain, packed = (load_own(path) for path in compressed("own.jsonl", json.dumps(QUESTION)))
    assert isinstance(plain, Imported)
    assert plain.questions.height == 1
    assert plain.questions.equals(packed.questions)
    assert plain.answers.equals(packed.answers)


def test_a_table_of_other_columns_names_them(
    compressed: Callable[[str, str], tuple[Path, Path]],
) -> None:
    _, packed = compressed("votes.jsonl", json.dumps({"judge": "j", "item": "1", "choice": "A"}))
    done = CliRunner().invoke(main, ["doctor", str(packed)])
    assert done.exit_code == 2
    reported = " ".join(done.stderr.split())
    assert "votes.jsonl.gz: neither a log in a known format" in reported
    assert "unknown column 'item'" in reported or "unknown columns 'item'" in reported
    # It may be no log at all.
    assert "`voirdire calibrate FILE --judge COLUMN --human COLUMN`" in reported
    assert "`voirdire audit --dataset FILE`" in reported
