"""Agreement of judges with people in logs of other tools: by category, and with one person."""

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main
from tasks.logs.log_reader import read_log

SETS = ("koala", "self", "vicuna")


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def annotations(tmp_path: Path) -> Path:
    """Return AlpacaEval annotations of 30 pairs; the judge is wrong on all of koala, else right."""
    rows = []
    for at in range(30):
        human = 1 + at % 2
        wrong = SETS[at % 3] == "koala"
        for who, preference in (("human", human), ("gpt4", 3 - human if wrong else human)):
            rows.append(
                {
                    "instruction": f"Question {at}?",
                    "output_1": "One.",
                    "output_2": "Two.",
                    "generator_1": "a",
                    "generator_2": "b",
                    "dataset": SETS[at % 3],
                    "annotator": who,
                    "preference": preference,
                }
            )
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def agreements(done: Result) -> dict[str | None, tuple[int, int]]:
    """Return agreeing and compared items of each slice that a calibration prints as JSON."""
    assert done.exit_code == 0, done.output
    rows: list[dict[str, Any]] = json.loads(done.stdout)[0]["with_people"]["measures"]
    return {
        row["slice"]: (row["hits"], row["n"]) for row in rows if row["statistic"] == "agreement"
    }


def test_calibrate_splits_a_log_by_its_category(annotations: Path) -> None:
    done = run("calibrate", annotations, "--slice", "category", "--no-save", "--format", "json")
    assert agreements(done) == {
        None: (20, 30),
        "koala": (0, 10),
        "self": (10, 10),
        "vicuna": (10, 10),
    }


def test_measure_shows_the_same_slices(annotations: Path) -> None:
    done = run("measure", annotations, "--slice", "category")
    assert done.exit_code == 0, done.output
    table = [line.split()[:3] for line in done.stdout.splitlines()]
    for row in (["koala", "10", ".00"], ["self", "10", "1.00"], ["vicuna", "10", "1.00"]):
        assert row in table
    assert "koala" not in run("measure", annotations).stdout


@pytest.mark.parametrize("name", ["category", "topic"])
def test_a_mapped_column_is_a_slice(tmp_path: Path, name: str) -> None:
    path = tmp_path / "tickets.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["nr", "model", "person", "topic"])
        for at in range(20):
            topic = "bills" if at < 10 else "fares"
            table.writerow([at, "yes", "yes" if at < 15 else "no", topic])
    fields = {"item": "nr", "label": "model", "human_label": "person", "category": "topic"}
    given = [word for column, path in fields.items() for word in ("--map", f"{column}={path}")]
    done = run("calibrate", path, *given, "--slice", name, "--no-save", "--format", "json")
    assert agreements(done) == {None: (15, 20), "bills": (10, 10), "fares": (5, 10)}
    assert "bills" in run("measure", path, *given, "--slice", name).stdout
    # A field that is no category splits the results too.
    done = run("calibrate", path, *given[:-2], "--slice", "topic", "--no-save", "--format", "json")
    assert agreements(done) == {None: (15, 20), "bills": (10, 10), "fares": (5, 10)}
    wrong = run("calibrate", path, *given, "--slice", "subject", "--no-save")
    assert "tickets.csv has no field 'subject' to split by; it has model, nr" in " ".join(
        wrong.output.split()
    )
    # Both names mean one column, which would count twice.
    both = run("measure", path, *given, "--slice", "category", "--slice", "topic")
    assert both.exit_code == 2
    assert "--slice category and --slice 'topic' are one column here" in both.output


@pytest.mark.parametrize("command", ["calibrate", "measure"])
def test_a_log_has_no_other_slices(annotations: Path, command: str) -> None:
    done = run(command, annotations, "--slice", "topic")
    assert done.exit_code == 2
    reported = " ".join(done.stderr.split())
    assert (
        "no item of annotations.json has such a field. They can be split by category." in reported
    )
    assert "voirdire calibrate FILE --items ITEMS --slice topic" in reported


def rubric(at: int, language: str, tier: int) -> dict[str, Any]:
    """Return a result of promptfoo: the judge passes all, a person only those of tier 1."""
    graded = [
        {"pass": True, "assertion": {"type": "llm-rubric", "provider": "openai:o5"}},
        {"pass": tier == 1, "assertion": {"type": "human"}},
    ]
    return {
        "id": f"r{at}",
        "testIdx": at,
        "promptIdx": 0,
        "provider": {"id": "openai:gpt-5"},
        "vars": {"question": f"Question {at}?", "language": language, "tier": "of the variables"},
        "testCase": {
            "metadata": {
                "tier": float(tier),
                "language": None if at else "",
                "is": {"first": tier == 1},
                "of": ["a"],
            }
        },
        "gradingResult": {"componentResults": graded},
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    rows = [rubric(at, ("en", "de")[at % 2], 1 + at // 12) for at in range(20)]
    summary = {"version": 3, "results": rows, "stats": {}, "prompts": []}
    path = tmp_path / "results.json"
    content = {"evalId": "e", "results": summary, "config": {}}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_log_is_split_by_its_metadata(results: Path) -> None:
    words = ("--slice", "tier", "--slice", "language")
    done = run("calibrate", results, *words, "--no-save", "--format", "json")
    assert agreements(done) == {None: (12, 20), "1": (12, 12), "2": (0, 8)} | {
        # Among the first twelve are six of each language.
        "en": (6, 10),
        "de": (6, 10),
    }
    table = " ".join(run("measure", results, *words).stdout.split())
    assert "tier: 1 12 1.00" in table
    one = " ".join(run("measure", results, "--slice", "tier").stdout.split())
    assert "tier items agreement 95 %" in one
    assert table.count("language: 10 .60") == 2  # en and de, in the next line


def test_doctor_names_the_columns_that_split(results: Path) -> None:
    """Not the question, of which each item has one of its own, and not the list of tags."""
    reported = " ".join(run("doctor", results).stdout.split())
    assert "`--slice` can split the agreement with people by language, tier, is.first -" in reported


def test_doctor_names_the_fields_of_a_mapped_table(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    rows = [f"{at},yes,{'yes' if at % 2 else 'no'},{'ab'[at % 2]},x" for at in range(20)]
    path.write_text("\n".join(["nr,model,person,category,topic", *rows]), encoding="utf-8")
    fields = ("--map", "item=nr", "--map", "label=model", "--map", "human_label=person")
    reported = " ".join(run("doctor", path, *fields).stdout.split())
    assert (
        "can split the agreement with people by fields of the table: category, topic -" in reported
    )
    # A field of this name needs no --map, and may have one.
    for more in ((), ("--map", "category=category")):
        words = (*fields, *more, "--slice", "category", "--no-save", "--format", "json")
        done = run("calibrate", path, *words)
        assert agreements(done) == {None: (10, 20), "a": (0, 10), "b": (10, 10)}
    quoted = run("calibrate", path, *fields, "--slice", 'topic."x"', "--no-save")
    assert "has no field 'topic.\"x\"' to split by" in " ".join(quoted.output.split())


def test_an_item_with_several_values_of_a_slice_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    rows = [
        f"{at},{who},{label},{language}"
        for at in range(10)
        for who, label, language in (("judge", "yes", "de"), ("ann", "no", "en" if at else ""))
    ]
    path.write_text("\n".join(["nr,who,label,language", *rows]), encoding="utf-8")
    humans = tmp_path / "mapped.jsonl"
    table = pl.read_csv(path).with_columns(person=pl.col("who") == "ann")
    table.write_ndjson(humans)
    fields = {"item": "nr", "judge": "who", "label": "label", "human": "person"}
    words = [word for column, field in fields.items() for word in ("--map", f"{column}={field}")]
    for more in (["--slice", "language"], ["--map", "category=language", "--slice", "category"]):
        done = run("calibrate", humans, *words, *more, "--no-save")
        assert done.exit_code == 2, done.output
        reported = " ".join(done.output.split())
        # Item 0 has one value, as the other is empty.
        assert "item '1' of mapped.jsonl has several values: '" in reported
        assert "'. Give each item one." in reported


def test_outputs_of_several_evaluations_are_several_items(results: Path) -> None:
    """A person rated the outputs of the first; the judge fails those of the second."""
    first = json.loads(results.read_text(encoding="utf-8"))
    second = json.loads(results.read_text(encoding="utf-8"))
    for log, text in ((first, "one"), (second, "two")):
        for result in log["results"]["results"]:
            result["response"] = {"output": text}
    for result in second["results"]["results"]:
        result["gradingResult"]["componentResults"][:] = [
            {"pass": False, "assertion": {"type": "llm-rubric", "provider": "openai:o5"}}
        ]
    folder = results.parent / "both"
    folder.mkdir()
    for name, log in (("1", first), ("2", second), ("3", first | {"evalId": "again"})):
        (folder / f"{name}.json").write_text(json.dumps(log), encoding="utf-8")
    log = read_log(folder)
    assert log is not None
    items = log.ratings.filter(~pl.col("human"))["item"]
    assert set(items) == {f"run {n}/{at}/0/openai:gpt-5" for n in (1, 2) for at in range(20)}
    assert log.ratings["cluster"].n_unique() == 20
    done = run("calibrate", folder, "--slice", "tier", "--no-save", "--format", "json")
    assert agreements(done) == {None: (12, 20), "1": (12, 12), "2": (0, 8)}


def test_a_file_of_items_splits_a_log(results: Path, tmp_path: Path) -> None:
    items = [f"{at}/0/openai:gpt-5" for at in range(20)]
    table = pl.DataFrame({"item": items, "topic": ["bills"] * 15 + ["fares"] * 5})
    table.write_csv(tmp_path / "items.csv")
    words = ("--items", tmp_path / "items.csv", "--slice", "topic", "--no-save")
    done = run("calibrate", results, *words, "--format", "json")
    assert agreements(done) == {None: (12, 20), "bills": (12, 15), "fares": (0, 5)}


def test_a_file_of_items_leaves_a_log_its_own_fields_and_texts(
    results: Path, tmp_path: Path
) -> None:
    items = [f"{at}/0/openai:gpt-5" for at in range(20)]
    table = pl.DataFrame({"item": items, "topic": ["bills"] * 15 + ["fares"] * 5})
    table.write_csv(tmp_path / "items.csv")
    words = ("--items", tmp_path / "items.csv", "--slice", "topic", "--slice", "tier", "--no-save")
    done = run("calibrate", results, *words, "--format", "json")
    both = {None: (12, 20), "bills": (12, 15), "fares": (0, 5), "1": (12, 12), "2": (0, 8)}
    assert agreements(done) == both
    shown = run("calibrate", results, *words).stdout
    assert "question: Question 12?" in shown


def test_columns_of_a_table_are_none_of_a_log(annotations: Path) -> None:
    done = run("calibrate", annotations, "--item", "instruction")
    assert done.exit_code == 2
    assert "annotations.json is read as a log" in " ".join(done.stderr.split())


def without(rows: list[dict[str, Any]], field: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != field} for row in rows]


@pytest.mark.parametrize(
    ("change", "words", "said"),
    [
        (lambda rows: without(rows, "dataset"), (), "no item of annotations.json has a value"),
        (
            lambda rows: (
                [row | {"dataset": row["instruction"]} for row in rows * 2]
                + [rows[0] | {"instruction": str(at), "dataset": str(at)} for at in range(50)]
            ),
            (),
            "has 80 different values; at most 50",
        ),
        (lambda rows: rows[1::2], (), "does not have rows of both"),
        (lambda rows: rows, ("--format", "json"), "Leave out --only and --format"),
        (lambda rows: rows, ("--only", "validity"), "Leave out --only and --format"),
    ],
)
def test_slices_that_cannot_be_shown_are_errors(
    annotations: Path, change: Any, words: tuple[str, ...], said: str
) -> None:
    rows = change(json.loads(annotations.read_text(encoding="utf-8")))
    annotations.write_text(json.dumps(rows), encoding="utf-8")
    done = run("measure", annotations, "--slice", "category", *words)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize("people", [0, 1])
def test_the_gate_of_agreement_needs_two_people(annotations: Path, people: int) -> None:
    if not people:
        rows = json.loads(annotations.read_text(encoding="utf-8"))
        annotations.write_text(json.dumps(rows[1::2]), encoding="utf-8")
    reported = " ".join(run("measure", annotations, "--only", "scorecard").stdout.split())
    needs = (
        "Agreement as a gate needs labels of people; for pairs, the column label or two people's"
    )
    one = f"{needs}; agreement with the one person of this file is shown separately."
    assert (one if people else f"{needs}.") in reported
    assert "human_label" not in reported
    shown = " ".join(run("measure", annotations).stdout.split())
    assert ("gpt4 against" in shown) == bool(people)
    # A log has no more gates, whatever is added to it.
    assert needs not in shown


def test_calibrate_counts_only_the_people_that_are_named(tmp_path: Path) -> None:
    rows = [
        {"question_id": at, "model_a": "a", "model_b": "b", "judge": who, "winner": winner}
        for at in range(12)
        for who, winner in (
            (["gpt-4", "pair-v2"], "model_a"),
            ("expert_1", "model_a"),
            ("author_1", "model_b"),
        )
    ]
    path = tmp_path / "votes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    words = ("calibrate", path, "--no-save", "--format", "json")
    assert agreements(run(*words, "--people", "expert_*")) == {None: (12, 12)}
    assert agreements(run(*words, "--people", "author_*")) == {None: (0, 12)}
    nobody = run(*words, "--people", "nurse_*")
    assert nobody.exit_code == 2
    assert "no person matches 'nurse_*'. People: author_1, expert_1." in nobody.stderr
    for given in (("study",), ("--humans", path, "--judges", path)):
        refused = run("calibrate", *given, "--people", "expert_*", "--no-save")
        assert refused.exit_code == 2
        assert "--people 'expert_*' chooses among the people of a log" in refused.stderr


def _tasks(folder: Path, *tasks: str) -> Path:
    """Write a log of Inspect AI per task, each with samples 1 to 4 that a judge and Ann rated."""
    folder.mkdir()
    for at, task in enumerate(tasks):
        header = {"version": 2, "status": "success", "results": {}, "stats": {}}
        samples = []
        for number in range(1, 5):
            grade = "CI"[(number + (task == "shop")) % 2]
            edits = [{"value": "C"}, {"value": grade, "provenance": {"author": "ann"}}]
            score = {"value": grade, "history": edits}
            samples.append(
                {"id": number, "epoch": at + 1, "input": task, "scores": {"graded": score}}
            )
        text = json.dumps(header | {"eval": {"task": task}, "samples": samples})
        (folder / f"{at}.json").write_text(text, encoding="utf-8")
    return folder


def test_tasks_of_inspect_that_number_samples_alike_have_items_of_their_own(tmp_path: Path) -> None:
    words = ("--no-save", "--format", "json")
    folder = _tasks(tmp_path / "two", "helpdesk", "shop")
    # A log without a task leaves those of others as they are.
    scores = "id,name,source,dataType,traceId,value\ns,tone,EVAL,NUMERIC,t,1\n"
    (folder / "scores.csv").write_text(scores, encoding="utf-8")
    two = run("calibrate", folder, *words)
    assert agreements(two) == {None: (4, 8)}
    [judge] = json.loads(two.stdout)
    items = {row["item"] for row in judge["with_people"]["disagreements"]}
    assert items == {"helpdesk/1", "helpdesk/3", "shop/2", "shop/4"}
    # Two logs of one task are repeats of its samples.
    again = run("calibrate", _tasks(tmp_path / "again", "helpdesk", "helpdesk"), *words)
    assert agreements(again) == {None: (2, 4)}


def test_outputs_of_two_models_are_two_items_of_a_cluster(tmp_path: Path) -> None:
    folder = _tasks(tmp_path / "two", "helpdesk", "helpdesk")
    for at, model in enumerate(("a", "b")):
        path = folder / f"{at}.json"
        log = json.loads(path.read_text(encoding="utf-8"))
        log["eval"]["model"] = f"lab/{model}"
        for sample in log["samples"]:
            # Ann rated the outputs of model a alone; the judge says the contrary of those of b.
            [first, edit] = sample["scores"]["graded"]["history"]
            if model == "b":
                said = "I" if edit["value"] == "C" else "C"
                sample["scores"]["graded"] = {"value": said}
            else:
                first["value"] = edit["value"]
        path.write_text(json.dumps(log), encoding="utf-8")
    assert agreements(run("calibrate", folder, "--no-save", "--format", "json")) == {None: (4, 4)}
    log = read_log(folder)
    assert log is not None
    rows = log.ratings.filter(~pl.col("human")).select("item", "cluster").sort("item").rows()
    assert rows[0] == ("lab/a/1", "1")
    assert rows[4] == ("lab/b/1", "1")


def test_results_of_two_configurations_of_promptfoo_have_items_of_their_own(tmp_path: Path) -> None:
    for name in ("helpdesk", "shop"):
        parts = [
            {"pass": name == "shop", "assertion": {"type": "llm-rubric"}},
            {"pass": True, "assertion": {"type": "human"}},
        ]
        results = [
            {"id": f"{name}{at}", "testIdx": at, "promptIdx": 0, "provider": {"id": "m"}}
            | {"gradingResult": {"componentResults": parts}}
            for at in range(4)
        ]
        summary = {"version": 3, "stats": {}, "prompts": [], "results": results}
        log = {"evalId": name, "config": {"description": name}, "results": summary}
        (tmp_path / f"{name}.json").write_text(json.dumps(log), encoding="utf-8")
    done = run("calibrate", tmp_path, "--no-save", "--format", "json")
    assert agreements(done) == {None: (4, 8)}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Return Langfuse scores of 40 traces by a judge and three people, who agree but on trace 0."""
    rows = [
        {
            "id": f"{trace}-{who}",
            "name": "correct",
            "value": int((trace % 2 == 0) != (trace == 0 and who is None)),
            "dataType": "BOOLEAN",
            "source": "ANNOTATION" if who else "EVAL",
            "traceId": f"t{trace}",
            "authorUserId": who,
        }
        for trace in range(40)
        for who in (None, "ann", "bob", "cid")
    ]
    path = tmp_path / "scores.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_measure_runs_the_alternative_annotator_test(export: Path) -> None:
    done = run("measure", export)
    assert done.exit_code == 0, done.output
    assert " 40 fails" in done.stdout
    assert "1 disagreement" in done.stdout
    # By hand: the judge agrees with each person on 39 of 40 traces, people on all.
    assert "agreement       .98" in done.stdout
    # The same numbers as `calibrate` prints of the same file.
    compared = run("calibrate", export, "--no-save").stdout.replace("--format json", "")
    rows = [line for line in compared.splitlines() if line.startswith("langfuse evaluator")]
    assert rows
    assert {*rows} <= {*done.stdout.splitlines()}
    # Its gate agreement is measured, and says which judge to use.
    assert "Which judge to use" in done.stdout


def test_a_criterion_with_one_person_counts_in_the_gate_beside_one_with_two(export: Path) -> None:
    rows = [json.loads(line) for line in export.read_text(encoding="utf-8").splitlines()]
    kept = [row for row in rows if row["authorUserId"] in {None, "ann", "bob"}]
    # Ann alone grades the tone, and the judge mostly gives 5 where she gives 1.
    kept += [
        {
            "id": f"tone-{at}-{who}",
            "name": "tone",
            "dataType": "NUMERIC",
            "value": 1 + (at % 5 if who or at % 7 == 0 else 4 - at % 5),
            "traceId": f"t{at}",
            "authorUserId": who,
            "source": "ANNOTATION" if who else "EVAL",
        }
        for at in range(40)
        for who in (None, "ann")
    ]
    export.write_text("\n".join(map(json.dumps, kept)), encoding="utf-8")
    done = run("measure", export)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "langfuse evaluator: do not use" in said
    assert "on tone" in said[said.index("do not use") :][:120]
    assert "None of the gates" not in said


def test_measure_says_that_no_label_can_be_compared(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"{source}{at}",
            "name": "ok",
            "stringValue": word,
            "dataType": "CATEGORICAL",
            "source": source,
            "traceId": f"{source}{at}",
            "authorUserId": None,
        }
        for at in range(5)
        for source, word in (("EVAL", "pass"), ("ANNOTATION", "fail"))
    ]
    path = tmp_path / "apart.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    done = run("measure", path)
    assert done.exit_code == 0, done.output
    assert "judges and people share no item and criterion" in done.output
    assert "judges and people cannot be compared" in done.output
    assert "valid" in done.stdout


def test_the_passes_of_inspect_are_those_of_its_format(tmp_path: Path) -> None:
    samples = [
        {
            "id": at,
            "epoch": 1,
            "input": f"Question {at}?",
            "target": "x",
            "output": {"choices": [{"message": {"role": "assistant", "content": f"Answer {at}."}}]},
            "scores": {
                "judge": {
                    "value": "C" if at % 2 else "I",
                    "history": [
                        {"value": "C" if at % 2 or at == 0 else "I"},
                        {"value": "C" if at % 2 else "I", "provenance": {"author": "ann"}},
                    ],
                }
            },
        }
        for at in range(10)
    ]
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "t", "model": "m"},
        "samples": samples,
    }
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    done = run("measure", path)
    assert done.exit_code == 0, done.output
    # Ann passes 5 of 10 answers, and the judge these and answer 0.
    assert "of 5 items that people pass" in done.stdout
    assert "pass rate .60 and .50" in done.stdout


def test_one_person_gives_the_gate_agreement(tmp_path: Path) -> None:
    """Ten of each: both pass 8, both fail 6, judge alone 4, person alone 2: kappa .4 by hand."""
    given = [(1, 1)] * 8 + [(0, 0)] * 6 + [(1, 0)] * 4 + [(0, 1)] * 2
    path = tmp_path / "own.csv"
    rows = [f"{at},{judge},{person}" for at, (judge, person) in enumerate(given)]
    path.write_text("\n".join(["id,said,checked", *rows]), encoding="utf-8")
    mapped = ("--map", "item=id", "--map", "label=said", "--map", "human_label=checked")
    done = run("measure", path, *mapped, "--only", "scorecard", "--format", "json")
    assert done.exit_code == 0, done.output
    (gate,) = (row for row in json.loads(done.stdout) if row["gate"] == "agreement")
    assert gate["measure"] == "agreement beyond chance, kappa"
    # p_o = 14 / 20; p_e = .6 * .5 + .4 * .5 = .5
    assert gate["value"] == pytest.approx(0.4)
    assert gate["reason"].startswith("one label per item does not tell")
    shown = run("measure", path, *mapped)
    # One answer about the judge, with the number of the gate.
    assert "? said: not enough data. Kappa .40 [" in shown.stdout
    assert "kappa           .40 " in shown.stdout
    assert "Which judge to use" not in shown.stdout
    assert shown.stdout.index("Which judges agree") < shown.stdout.index("Also measured")


def test_labels_that_are_not_listed_are_counted(tmp_path: Path) -> None:
    for number, reported in ((5, "e 1"), (7, "e 1 and 2 more")):
        path = tmp_path / f"{number}.csv"
        rows = [f"{at},{'abcdefg'[at]}" for at in range(number)]
        path.write_text("\n".join(["id,said", *rows]), encoding="utf-8")
        done = run("doctor", path, "--map", "item=id", "--map", "label=said")
        lines = " ".join(done.stdout.split())
        assert reported in lines
        assert ("more" in lines) == (number == 7)
