"""Each row of a log is a rating, invalid, or left out and counted; nothing ends in a traceback."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main

Doctor = Callable[..., str]


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    """Return what writes a log and says what ``voirdire doctor`` prints of it."""

    def run(log: Any, command: str = "doctor", *words: str) -> str:
        lines = log if command == "calibrate" else [log]
        file = tmp_path / ("log.jsonl" if command == "calibrate" else "log.json")
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        done = CliRunner().invoke(main, [command, str(file), *words])
        assert done.exit_code == 0, done.output
        return " ".join(done.output.split())

    return run


def inspect(*scores: Any, scorers: Any = None) -> dict[str, Any]:
    samples = [
        {"id": n, "epoch": 1, "input": "q", "output": {}, "scores": score}
        for n, score in enumerate(scores)
    ]
    run = {"task": "t", "scorers": scorers or [{"name": "judge"}], "model": "m"}
    return {"version": 2, "status": "success", "eval": run, "samples": samples}


@pytest.mark.parametrize("value", [None, {"value": None}, {"value": {}}, 3, {"history": 5}])
def test_a_score_of_inspect_without_a_value_is_invalid(doctor: Doctor, value: Any) -> None:
    said = doctor(inspect({"judge": {"value": "C"}}, {"judge": value}))
    assert "2 rows, " in said
    assert "no score (1)" in said


def test_scores_of_inspect_that_are_no_object_are_counted(doctor: Doctor) -> None:
    said = doctor(inspect({"judge": {"value": "C"}}, 5, [1]))
    assert "3 rows, 1 rating" in said
    assert "left out: samples that failed before they were scored (2)" in said
    assert "judge judge" in doctor(inspect({"judge": {"value": "C"}}, scorers=5))


def test_an_empty_set_is_a_verdict(doctor: Doctor) -> None:
    said = doctor(inspect({"judge": {"value": ["a"]}}, {"judge": {"value": []}}))
    assert "2 labels" in said
    assert "invalid, which" not in said


def promptfoo(*components: Any) -> dict[str, Any]:
    results = [
        {"testIdx": n, "promptIdx": 0, "gradingResult": {"componentResults": component}}
        for n, component in enumerate(components)
    ]
    summary = {"version": 3, "results": results, "stats": {}, "prompts": []}
    return {"evalId": "e", "results": summary, "config": {}}


def test_components_of_promptfoo_that_are_no_objects_are_counted(doctor: Doctor) -> None:
    graded = {"pass": True, "assertion": {"type": "llm-rubric"}}
    said = doctor(promptfoo([graded, None, 7], 5))
    assert "entries of componentResults that are no objects (2)" in said
    assert "results without a graded assertion (1)" in said


def langsmith(source: Any) -> dict[str, Any]:
    return {"id": "i", "run_id": "r", "key": "k", "score": 1, "feedback_source": source}


def test_feedback_of_langsmith_without_a_source_is_counted(doctor: Doctor) -> None:
    sources = [{"type": "model"}, None, {"type": None}]
    rows = [langsmith(source) | {"id": str(n)} for n, source in enumerate(sources)]
    said = doctor(rows)
    assert "3 rows, 1 rating" in said
    assert "whose it is, is not recorded (2)" in said


def test_a_number_of_langfuse_without_a_type_is_a_grade(doctor: Doctor) -> None:
    score = {"name": "n", "source": "EVAL", "traceId": "t", "dataType": None, "stringValue": None}
    rows = [score | {"id": "1", "value": 2}, score | {"id": "2", "stringValue": "good"}]
    said = doctor(rows)
    assert "2 rows, " in said
    assert "1 label and 1 grade" in said


def sets(*judges: Any) -> list[dict[str, Any]]:
    people = [["a"], ["b"], ["a", "b"], []] * 10
    return [
        {"id": f"i{n}", "judge": judges[n % len(judges)], "human": human}
        for n, human in enumerate(people)
    ]


MAPPED = ("--map", "item=id", "--map", "label=judge", "--map", "human_label=human")


def test_sets_are_measured_label_by_label(doctor: Doctor) -> None:
    log = sets(["a"], ["b"], ["a", "b"], ["a"])
    said = doctor(log, "measure", *MAPPED, "--only", "rating_kappa", "--format", "json")
    rows = json.loads(said[said.index("[ {") :])
    # Label a: 30 of 40 equal, the judge gives it 30 times, people 20:
    # (.75 - .5) / .5; b: all equal.
    found = {row["subgroup"]: row["estimate"] for row in rows}
    assert found == {"a": pytest.approx(0.5), "b": pytest.approx(1.0)}


def test_an_error_among_sets_is_invalid_and_no_label(doctor: Doctor) -> None:
    said = doctor(sets(["a"], ["b"], "ERROR: timeout", "b"), "calibrate", "--no-save")
    assert "10 with an invalid label of the judge" in said
    assert "judge, ERROR" not in said
    # A single name that people give too is a set of one.
    assert "30 items compared" in said


def test_pictures_and_databases_in_a_folder_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "log.json").write_text(json.dumps(inspect({"judge": {"value": "C"}})))
    (folder / "chart.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    (folder / "voirdire.duckdb").write_bytes(b"\xd7\x9a" + bytes(200))
    done = CliRunner().invoke(main, ["doctor", str(folder)])
    assert done.exit_code == 0, done.output
    assert "files not recognised: chart.png, voirdire.duckdb" in " ".join(done.output.split())
