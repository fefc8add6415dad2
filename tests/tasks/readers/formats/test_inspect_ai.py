"""Logs of Inspect AI: archives, JSON, hostile archives."""

import json
import random
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from flows.cli.main import main
from tasks.logs.log_reader import read_log
from tasks.logs.ratings import annotations_of

HEADER = {
    "version": 2,
    "status": "success",
    "eval": {
        "task": "sums",
        "model": "openai/gpt-5",
        "scorers": [
            {"name": "model_graded_qa", "options": {"model": "openai/o5"}},
            {"name": "includes", "options": {}},
        ],
    },
}


def sample(name: object, epoch: int, score: dict[str, Any] | None) -> dict[str, Any]:
    scores = {} if score is None else {"model_graded_qa": score}
    about = {"input": f"1 + {name}?", "output": {"completion": f"[{name}]"}}
    return {"id": name, "epoch": epoch, **about, "scores": scores, "error": None}


def edited(value: object, by: str | None) -> dict[str, Any]:
    return {"value": value, "provenance": by and {"author": by, "timestamp": "..."}}


NAN = {"value": float("nan"), "metadata": {"unscored_reason": "grade_parse_failure"}}
SAMPLES = [
    sample("a", 1, {"value": "C"}),
    sample("a", 2, NAN),
    sample("b", 1, {"value": "I", "history": [edited("C", None), edited("I", "ann")]}),
    sample(3, 1, {"value": "P"}),
    sample("failed", 1, None),
]
RATED = [
    ("3", "model_graded_qa by openai/o5", False, "P", 0.5, None),
    ("a", "model_graded_qa by openai/o5", False, "C", 1.0, None),
    ("a", "model_graded_qa by openai/o5", False, None, None, "grade_parse_failure"),
    ("b", "ann", True, "I", 0.0, None),
    ("b", "model_graded_qa by openai/o5", False, "C", 1.0, None),
]
FIELDS = ("item", "judge", "human", "label", "value", "invalid")


def test_a_log_without_samples_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text(json.dumps({**HEADER, "results": {}, "stats": {}, "samples": []}))
    with pytest.raises(
        ValueError, match=r"^empty.json is a log \(Inspect AI log\) without samples"
    ):
        read_log(path)


def letters(path: Path, values: list[str]) -> Path:
    """Write a log in which a scorer and a person give letters; the person only C."""
    samples = [
        sample(f"s{at}", 1, {"value": v, "history": [edited(v, None), edited("C", "ann")]})
        | {"metadata": {"category": "sums" if at < 8 else "words"}}
        for at, v in enumerate(values)
    ]
    path.write_text(json.dumps({**HEADER, "results": {}, "stats": {}, "samples": samples}))
    return path


def test_c_and_i_are_pass_and_fail_and_have_categories(tmp_path: Path) -> None:
    path = letters(tmp_path / "log.json", ["C", "I"] * 6)
    words = ["calibrate", str(path), "--slice", "category", "--no-save"]
    said = " ".join(CliRunner().invoke(main, words).output.split())
    assert "12 items compared" in said
    assert "of 12 items that people pass" in said
    for part in ("sums 8", "words 4"):
        assert part in said


def test_metadata_split_the_items_of_each_task(tmp_path: Path) -> None:
    """The tasks share ids, so that the items of the folder are named after their task too."""
    for task, level in (("sums", "easy"), ("words", "hard")):
        path = letters(tmp_path / f"{task}.json", ["C", "I"] * 6)
        log = json.loads(path.read_text())
        log["eval"]["task"] = task
        for each in log["samples"]:
            each["metadata"] |= {"level": level, "long": "x" * 201}
        path.write_text(json.dumps(log))
    log = read_log(tmp_path)
    assert log is not None
    assert set(log.metadata["field"]) == {"task", "model", "category", "level"}
    assert set(log.metadata["item"]) == set(log.ratings["item"])
    words = ["calibrate", str(tmp_path), "--slice", "level", "--no-save"]
    said = " ".join(CliRunner().invoke(main, words).output.split())
    for part in ("easy 12", "hard 12"):
        assert part in said


def test_no_answer_is_worth_nothing(tmp_path: Path) -> None:
    log = read_log(letters(tmp_path / "log.json", ["C", "P", "I", "N"]))
    assert log is not None
    values = log.ratings.filter(human=False).sort("item")
    assert values["value"].to_list() == [1.0, 0.5, 0.0, 0.0]
    assert values["invalid"].null_count() == 4


def archive(path: Path, method: int = zipfile.ZIP_DEFLATED, **members: Any) -> Path:
    given = {
        "header.json": HEADER,
        **{f"samples/{s['id']}_epoch_{s['epoch']}.json": s for s in SAMPLES},
        **members,
    }
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in given.items():
            text = content if isinstance(content, str) else json.dumps(content, indent=2)
            file.writestr(name, text)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_epochs_edits_and_failures(tmp_path: Path, rated: Any, method: int) -> None:
    log = read_log(archive(tmp_path / "sums.eval", method))
    assert log is not None
    assert rated(log, *FIELDS) == RATED
    assert dict(log.left_out) == {"samples that failed before they were scored": 1}
    # epochs are repeats of one item
    assert log.ratings.filter(item="a")["repeat"].to_list() == [0, 1]
    labels = annotations_of(log.ratings).filter(item="a")
    assert labels.select("label", "votes").rows() == [("C", 1)]


def test_a_score_that_a_person_added_is_not_the_judges(read: Any, rated: Any) -> None:
    score = {"value": "I", "history": [edited("I", "ann")]}
    log = read({**HEADER, "samples": [sample("a", 1, score)]}, "sums.json")
    assert rated(log, "judge", "human", "label") == [("ann", True, "I")]


def test_json_holds_the_same(read: Any, rated: Any) -> None:
    # `results` and `stats` are fields of promptfoo too
    log = read({**HEADER, "results": {}, "stats": {}, "samples": SAMPLES}, "sums.json")
    assert rated(log, *FIELDS) == RATED
    # Texts of what a person rated.
    texts = {"input": "1 + b?", "output": "[b]"}
    assert [
        (item, json.loads(text)) for item, text in log.texts.select("item", "texts").rows()
    ] == [("b", texts)]


def test_objects_lists_and_numbers(read: Any, rated: Any) -> None:
    value = {"tone": 4, "facts": ["x", "y"], "safe": True, "odd": None}
    log = read({**HEADER, "samples": [sample("a", 1, {"value": value})]}, "sums.json")
    assert rated(log, "criterion", "kind", "label", "value", "invalid") == [
        ("model_graded_qa/facts", "label", '["x", "y"]', None, None),
        ("model_graded_qa/odd", "label", None, None, "no score"),
        ("model_graded_qa/safe", "label", "true", 1.0, None),
        ("model_graded_qa/tone", "number", "4", 4.0, None),
    ]


def test_zstd_members_are_read(tmp_path: Path, rated: Any) -> None:
    zstd = packer()
    path = tmp_path / "sums.eval"
    plain = {
        "header.json": HEADER,
        **{f"samples/{s['id']}_epoch_{s['epoch']}.json": s for s in SAMPLES},
    }
    packed = {name: zstd(json.dumps(content).encode()) for name, content in plain.items()}
    sizes = {name: len(json.dumps(content)) for name, content in plain.items()}
    path.write_bytes(as_zstd(packed, sizes, tmp_path))
    log = read_log(path)
    assert log is not None
    assert rated(log, *FIELDS) == RATED


def packer() -> Any:
    """Return a function that packs bytes by zstd: the command of the system."""
    try:
        subprocess.run(["zstd", "--version"], capture_output=True, check=True)
    except OSError:
        pytest.skip("the command zstd, which packs the members, is not installed")
    return lambda text: (
        subprocess.run(["zstd", "-c"], input=text, capture_output=True, check=True).stdout
    )


def as_zstd(packed: dict[str, bytes], sizes: dict[str, int], folder: Path) -> bytes:
    """Return an archive whose members are declared as zstd (method 93)."""
    stored = folder / "stored.zip"
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as file:
        for name, content in packed.items():
            file.writestr(name, content)
    data = bytearray(stored.read_bytes())
    with zipfile.ZipFile(stored) as file:
        for each in file.infolist():
            data[each.header_offset + 8 : each.header_offset + 10] = (93).to_bytes(2, "little")
    start = 0
    while (start := data.find(b"PK\x01\x02", start)) >= 0:
        length = int.from_bytes(data[start + 28 : start + 30], "little")
        name = data[start + 46 : start + 46 + length].decode()
        data[start + 10 : start + 12] = (93).to_bytes(2, "little")
        data[start + 24 : start + 28] = sizes[name].to_bytes(4, "little")
        start += 4
    return bytes(data)


def test_a_damaged_archive_is_an_error_that_names_it(tmp_path: Path) -> None:
    draw = random.Random(1)
    texts = ["".join(draw.choices("abcdef ghij", k=2000)) for _ in range(4)]
    samples = [{**sample(str(at), 1, "C"), "input": text} for at, text in enumerate(texts)]
    path = tmp_path / "sums.eval"
    members = {f"samples/{each['id']}_epoch_1.json": each for each in samples}
    archive(path, **{"header.json": HEADER, **members})
    whole = path.read_bytes()
    reported = []
    for start in range(0, len(whole) - 40, len(whole) // 50):
        path.write_bytes(whole[:start] + b"\xff" * 40 + whole[start + 40 :])
        try:
            read_log(path)
        except ValueError as error:
            reported.append(str(error))
    assert len(reported) > 40
    assert all(each.startswith("sums.eval") for each in reported)


HOSTILE = {
    "no header": ({"other.txt": "x"}, "without header.json"),
    "version": (
        {"header.json": json.dumps({**HEADER, "version": 9})},
        "version 9; version 2 is readable",
    ),
    "bomb": (
        {"header.json": json.dumps(HEADER), "samples/a.json": " " * 70_000_000},
        "70000000 bytes unpacked; at most 64000000",
    ),
    "no JSON": (
        {"header.json": json.dumps(HEADER), "samples/a.json": "{"},
        "cannot be read",
    ),
    "two objects": (
        {"header.json": json.dumps(HEADER), "samples/a.json": "{}{}"},
        "another number of JSON objects",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives(tmp_path: Path, name: str) -> None:
    members, message = HOSTILE[name]
    path = tmp_path / "bad.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member, text in members.items():
            file.writestr(member, text)
    with pytest.raises(ValueError, match=message):
        read_log(path)


def test_a_truncated_archive(tmp_path: Path) -> None:
    path = archive(tmp_path / "sums.eval")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="not a complete ZIP archive"):
        read_log(path)


BLOCK = 128 << 10


def spaces(blocks: int) -> bytes:
    """Return a frame of zstd, by hand: runs of 128 KiB of spaces (RFC 8878, section 3.1.1)."""
    run = (BLOCK << 3 | 1 << 1).to_bytes(3, "little") + b" "
    last = (BLOCK << 3 | 1 << 1 | 1).to_bytes(3, "little") + b" "
    # Neither content size nor checksum; a window of 1 MiB.
    return (0xFD2FB528).to_bytes(4, "little") + b"\x00\x50" + run * (blocks - 1) + last


def test_members_that_unpack_to_more_than_they_declare(tmp_path: Path) -> None:
    names = ["header.json", *(f"samples/{at}.json" for at in range(300))]
    data = as_zstd({name: spaces(2000) for name in names}, dict.fromkeys(names, 100), tmp_path)
    path = tmp_path / "bomb.eval"
    path.write_bytes(data)
    what = "unpacks to up to 262144000 bytes, and declares 100"
    with pytest.raises(ValueError, match=what) as raised:
        read_log(path)
    assert "damaged" not in str(raised.value)


@pytest.mark.parametrize(
    ("size", "message"),
    [(60_000_000, "at most 8589934592 are allowed"), (2_000_000, "more than 500 times as many")],
)
def test_a_bomb_of_many_members_is_one_error(tmp_path: Path, size: int, message: str) -> None:
    names = ["header.json", *(f"samples/{at}.json" for at in range(300))]
    data = as_zstd({name: spaces(15) for name in names}, dict.fromkeys(names, size), tmp_path)
    path = tmp_path / "bomb.eval"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as raised:
        read_log(path)
    text = str(raised.value)
    assert text.count("\n") == 0
    assert "zip bomb" in text


def test_members_that_share_their_bytes_are_one_error(tmp_path: Path) -> None:
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for at in range(50):
            file.writestr(f"samples/{at:03}.json", " " * 1000)
    data = path.read_bytes()
    # Only the first member's bytes are kept; each entry of the directory points to them.
    start = data.index(b"PK\x01\x02")
    directory = bytearray(data[start:])
    for entry in range(50):
        at = entry * (46 + len("samples/000.json"))
        directory[at + 42 : at + 46] = (0).to_bytes(4, "little")
    first = data[: start // 50]
    end = directory.rindex(b"PK\x05\x06")
    directory[end + 16 : end + 20] = len(first).to_bytes(4, "little")
    path.write_bytes(first + bytes(directory))
    with pytest.raises(ValueError, match="its 50 members claim 50000: they overlap"):
        read_log(path)


@pytest.mark.parametrize("broken", [{"error": {"message": "timeout"}}, {"status": "error"}])
@pytest.mark.parametrize("form", ["json", "eval"])
def test_scores_of_samples_that_ended_with_an_error_are_invalid(
    tmp_path: Path, form: str, broken: dict[str, Any]
) -> None:
    """Of 4 samples 2 ended with an error: one was scored 0, of the other a person gave a score."""
    samples = [
        sample("a", 1, {"value": "C"}),
        sample("b", 1, {"value": "I"}),
        sample("c", 1, {"value": {"tone": 0, "facts": 1}}) | broken,
        sample("d", 1, {"value": "I", "history": [edited("I", None), edited("C", "ann")]}) | broken,
    ]
    head = {**HEADER, "status": "error"}
    path = tmp_path / f"log.{form}"
    if form == "eval":
        members = {f"samples/{each['id']}_epoch_1.json": each for each in samples}
        with zipfile.ZipFile(path, "w") as file:
            for name, content in {"header.json": head, **members}.items():
                file.writestr(name, json.dumps(content))
    else:
        path.write_text(json.dumps({**head, "results": {}, "stats": {}, "samples": samples}))
    done = CliRunner().invoke(main, ["doctor", str(path)])
    assert done.exit_code == 0, done.output
    assert "invalid, which is no verdict: sample ended with an error (3)" in done.output
    assert "the run did not finish: samples may be missing" in done.output
    log = read_log(path)
    assert log is not None
    assert sorted(log.ratings.select("item", "human", "label", "invalid").rows()) == [
        ("a", False, "C", None),
        ("b", False, "I", None),
        ("c", False, None, "sample ended with an error"),
        ("c", False, None, "sample ended with an error"),
        ("d", False, None, "sample ended with an error"),
        ("d", True, "C", None),
    ]


def test_a_person_rates_the_output_of_one_epoch(tmp_path: Path) -> None:
    # Ann confirms what the judge says of the first epoch; later epochs have other outputs.
    samples = []
    for at in range(12):
        for epoch in (1, 2, 3):
            value = "C" if (at + (epoch > 1)) % 2 else "I"
            score: dict[str, Any] = {"value": value}
            if epoch == 1:
                score["history"] = [edited(value, None), edited(value, "ann")]
            output = {"output": {"completion": f"{at} of epoch {min(epoch, 2)}"}}
            samples.append(sample(f"s{at}", epoch, score) | output)
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "results": {}, "stats": {}, "samples": samples}))
    log = read_log(path)
    assert log is not None
    mine = log.ratings.filter(pl.col("cluster") == "s1", ~pl.col("human"))
    # Each epoch counts, also those with equal outputs: else a mean would weigh outputs.
    assert mine.sort("item", "repeat").select("item", "repeat", "label").rows() == [
        ("s1/1", 0, "C"),
        ("s1/2", 0, "I"),
        ("s1/3", 0, "I"),
    ]
    # 12 samples: by hand 6 of the first epochs are C, and 6 of each of the others.
    measured = CliRunner().invoke(main, ["measure", str(path)]).output
    assert "36        0  .50" in measured
    said = " ".join(CliRunner().invoke(main, ["calibrate", str(path), "--no-save"]).output.split())
    assert "12 items compared" in said
    assert "agreement 1.00" in said
