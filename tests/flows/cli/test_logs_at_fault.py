"""What `doctor` and `calibrate` say of logs with a wrong encoding, path or result."""

import gzip
import json
from pathlib import Path
from shlex import quote

import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize(
    ("header", "label", "place"),
    [
        ("nr,said,checked", "schön", "line 3: byte 0xf6 at position 6"),
        ("nr,größe,checked", "gut", "line 1: byte 0xf6 at position 6"),
    ],
)
@pytest.mark.parametrize("more", [1, 400])
def test_a_mapped_table_in_another_encoding(
    tmp_path: Path, header: str, label: str, place: str, more: int
) -> None:
    path = tmp_path / "own.csv"
    rows = [header, "1,gut,gut", f"2,{label},gut", *["3,gut,gut"] * more]
    path.write_bytes("\r\n".join(rows).encode("cp1252"))
    fields = {"item": "nr", "label": header.split(",")[1], "human_label": "checked"}
    maps = [word for column, field in fields.items() for word in ("--map", f"{column}={field}")]
    done = run("calibrate", path, *maps, "--no-save")
    assert done.exit_code == 2
    assert f"own.csv, {place} is not UTF-8. Save it as UTF-8" in done.stderr


def test_a_binary_file_is_no_text_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_bytes(bytes(range(256)) * 20)
    said = "own.csv is not text, and no file in a known format (`voirdire list formats`)"
    for words in (("doctor", path), ("measure", path), ("plan", "--dataset", path)):
        done = run(*words)
        assert done.exit_code == 2
        assert said in done.stderr
        assert "UTF-8" not in done.stderr
    # The folder is named in place of the name that stands before, and no other file is meant.
    gone = run("doctor", tmp_path / "nosuch.json").stderr
    assert "nosuch.json: there is no such file at" in gone
    assert gone.rstrip().endswith("Check the path.")


@pytest.mark.parametrize(
    ("maps", "said"),
    [
        ({"item": "meta.idd", "label": "said"}, "'meta.idd' to map; 'meta' has id, batch."),
        ({"item": "meta.id", "label": "in.said"}, "'in.said' to map; 'in' has other."),
        ({"item": "meta.id", "label": "said", "human_label": "in.other"}, None),
    ],
)
def test_a_mapped_path_that_no_row_has(
    tmp_path: Path, maps: dict[str, str], said: str | None
) -> None:
    path = tmp_path / "nested.json"
    meta = [{"id": f"t{at}", "batch": 1} for at in range(30)]
    rows = [{"meta": each, "said": "pass", "in": {"other": None}} for each in meta]
    path.write_text(json.dumps(rows), encoding="utf-8")
    given = [word for column, field in maps.items() for word in ("--map", f"{column}={field}")]
    done = run("doctor", path, *given)
    if said is None:
        assert done.exit_code == 0, done.output
    else:
        assert done.exit_code == 2
        assert f"no row has the field {said}" in done.stderr


def test_a_result_of_promptfoo_that_is_no_table_is_counted(tmp_path: Path) -> None:
    component = {"pass": True, "assertion": {"type": "llm-rubric", "provider": "gpt"}}
    graded = {"testIdx": 0, "gradingResult": {"componentResults": [component]}}
    results = [{**graded, "id": f"r{at}", "testIdx": at} for at in range(3)]
    log = {"version": 3, "stats": {}, "results": [*results, "lost", None]}
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"evalId": "e", "results": log}), encoding="utf-8")
    reported = " ".join(run("doctor", path).output.split())
    assert "promptfoo results, 5 rows, 3 ratings" in reported
    assert "left out: results that are no objects (2)" in reported


def test_a_table_of_labels_is_named_with_the_command_that_takes_it(tmp_path: Path) -> None:
    rows = "anna,1,pass\nben,1,fail\nanna,2,pass\n"
    (tmp_path / "people.csv").write_text(f"\ufeffannotator;item;label\n{rows}".replace(",", ";"))
    read = "people.csv: 3 labels of 2 annotators on 2 items"
    said = run("doctor", tmp_path / "people.csv")
    assert (said.exit_code, said.stdout.startswith(read)) == (0, True)
    assert "`voirdire calibrate --humans people.csv --judges FILE`" in said.stdout
    refused = run("measure", tmp_path / "people.csv")
    assert (refused.exit_code, read in refused.stderr) == (2, True)


@pytest.mark.parametrize("name", ["people.json", "our people.json.gz"])
def test_labels_in_json_are_named_with_the_command_that_takes_them(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    packed = gzip.compress if name.endswith(".gz") else bytes
    labels = {"anna": {"1": "pass", "2": "pass"}, "ben": {"1": "fail"}}
    path.write_bytes(packed(json.dumps(labels).encode()))
    said = run("doctor", path)
    assert said.exit_code == 0, said.stderr
    assert said.stdout.startswith(f"{name}: 3 labels of 2 annotators on 2 items")
    assert f"`voirdire calibrate --humans {quote(name)} --judges FILE`" in said.stdout
    path.write_bytes(packed(b'{"anna": {"1": {"label": 1}}}'))
    other = run("doctor", path)
    assert (other.exit_code, other.stdout) == (2, "")
    assert f"{name}: neither a log in a known format" in other.stderr


def test_ratings_of_people_that_are_all_invalid_are_why_nothing_compares(tmp_path: Path) -> None:
    rows = [
        {"id": f"{who}{n}", "run_id": f"r{n}", "session_id": "s", "key": "right"}
        | {"score": None if who == "app" else 1, "value": None, "comment": ""}
        | {"feedback_source": {"type": who, "user_id": None, "metadata": {}}}
        for n in range(12)
        for who in ("app", "model")
    ]
    path = tmp_path / "feedback.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    done = run("calibrate", path, "--no-save")
    assert done.exit_code == 2
    assert (
        "all 12 ratings of people in feedback.json are invalid (neither a score nor a value), so "
        "judges and people cannot be compared. `voirdire doctor feedback.json` shows what was read"
    ) in done.stderr
    path.write_text(json.dumps([row for row in rows if row["score"] is None]), encoding="utf-8")
    said = run("doctor", path).stdout
    assert "- no rating is valid: only how many are invalid can be computed" in said
