"""Labels as spreadsheets and other tools write them: white space, decimal commas."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main

PEOPLE = ["通过", "不通过"] * 10
JUDGE = ["通过 ", "不通过\u3000", "\u00a0通过", "不通过"] * 5


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def rows(*columns: list[str], separator: str = ",") -> str:
    lines = [separator.join((str(at), *row)) for at, row in enumerate(zip(*columns, strict=True))]
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("source", ["table", "files", "mapped"])
def test_white_space_around_a_label_is_no_part_of_it(tmp_path: Path, source: str) -> None:
    if source == "files":
        words = []
        for who, labels in (("humans", PEOPLE), ("judges", JUDGE)):
            file = tmp_path / f"{who}.json"
            said = {who: {str(at): label for at, label in enumerate(labels)}}
            file.write_text(json.dumps(said), encoding="utf-8")
            words += [f"--{who}", str(file)]
    else:
        file = tmp_path / "labels.csv"
        head = "id,human,judge\n" if source == "table" else "nr,mensch,modell\n"
        file.write_text(head + rows(PEOPLE, JUDGE), encoding="utf-8")
        named = ("item=nr", "label=modell", "human_label=mensch")
        mapped = [word for name in named for word in ("--map", name)]
        words = [str(file), *(mapped if source == "mapped" else [])]
    done = run("calibrate", *words, "--no-save", "--format", "json")
    assert done.exit_code == 0, done.output
    [judge] = json.loads(done.stdout)
    [agreement] = [
        row for row in judge["with_people"]["measures"] if row["statistic"] == "agreement"
    ]
    assert (agreement["hits"], agreement["n"]) == (20, 20)
    assert len(judge["with_people"]["confusion_matrix"]) == 2
