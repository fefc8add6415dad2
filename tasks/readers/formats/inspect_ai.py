"""Logs of Inspect AI: ``.eval`` archives and the same as JSON."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from tasks.readers.duckdb_reader import Source
from tasks.readers.formats import (
    COPIES,
    RATED,
    Parts,
    distinct_objects,
    list_in,
    log_format,
    metadata_of,
    object_in,
    outputs_of,
    text_of,
    texts_of,
)
from tasks.readers.formats._archive import members, read_members

VERSION = 2
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Values of Inspect's letters: correct, partial, incorrect, no answer (of the model that is
graded: a grader that fails gives NaN)."""
FIELDS = ("id", "epoch", "uuid", "scores", "error", "status", "input", "output", "metadata")
FAILED = "samples that failed before they were scored"
ENDED = "sample ended with an error"
"""Why a score is invalid; Inspect gives such samples scores under its option score_on_error."""
UNFINISHED = ("error", "cancelled", "started")
STOPPED = "the run did not finish: samples may be missing"
PERSON = "unnamed reviewer"
EXPORT = "Export it with `inspect log convert --to eval`."


@log_format(
    title="Inspect AI log",
    needs=(("version", "status", "eval"), ("version", "status", "eval", "results", "stats")),
    source="https://inspect.aisi.org.uk/eval-logs.html",
)
def inspect_ai(source: Source) -> Parts:
    """One rating per sample, epoch and scorer; the cluster is the sample.

    If some sample has different outputs in its epochs, each epoch is an item of its own
    (``ID/EPOCH``), as a person rates one output. Else epochs are repeats of an item.

    In a folder with logs of several tasks that number their samples alike, the name of the task is
    part of the item and of the cluster; with logs of several models, the model is part of the item,
    and so is the run where the outputs of runs differ. An item has the metadata of its
    sample, the ``task`` and the ``model``.

    A sample that repeats an earlier one of the same id and epoch is a copy and left out.

    The first entry of a score's history is the scorer's, later edits are people's. A value
    that is null or NaN, as where a grader's reply gave none, is invalid, and so is each rating of
    a scorer in a sample that ended with an error. Letters are labels with the values C 1, P .5, I
    and N 0, where there are only C and I a pass and a fail; an object has a criterion for each key.
    The category comes from the sample's ``metadata``.
    """
    if source.kind == "archive":
        header, samples = _archive(source)
    else:
        header = source.object()
        samples = [each for each in list_in(header.get("samples")) if isinstance(each, dict)]
    if header.get("version") != VERSION:
        what = f"is a log of version {header.get('version')!r:.20}; version {VERSION} is readable"
        source.problems.refuse("", what, EXPORT)
    judges, run = _judges(header), object_in(header.get("eval"))
    samples, copies = distinct_objects(source, samples, ("id", "epoch"), "uuid")
    samples.sort(key=lambda sample: n if isinstance(n := sample.get("epoch"), int) else 0)
    items = _items(samples)
    known = list(zip(items, samples, strict=True))
    rows = [row for item, sample in known for row in _ratings(sample, item, judges)]
    failed = sum(not object_in(sample.get("scores")) for sample in samples)
    ratings = pl.DataFrame(rows, schema=RATED)
    rated = {row["item"] for row in rows if row["human"]}
    seen = (
        (item, {"input": sample.get("input"), "output": _output(sample)})
        for item, sample in known
        if item in rated
    )
    named = {name: run.get(name) for name in ("task", "model")}
    notes = (STOPPED,) if header.get("status") in UNFINISHED else ()
    return Parts(
        ratings=ratings,
        texts=texts_of(seen),
        metadata=metadata_of(
            (item, named | object_in(sample.get("metadata"))) for item, sample in known
        ),
        outputs=outputs_of((item, _output(sample)) for item, sample in known),
        left_out={FAILED: failed, **copies},
        notes=notes,
        rows=len(samples) + copies[COPIES],
        verdicts=("C", "I"),
        task=text_of(run.get("task")),
        model=text_of(run.get("model")),
    )


def _archive(source: Source) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    known = members(source.path, source.problems)
    name = next((n for n in ("header.json", "_journal/start.json") if n in known), None)
    if name is None:
        what = "is a ZIP archive without header.json, so not a log of Inspect AI"
        source.problems.refuse("", what, "Give an .eval file.")
    head = read_members(source.path, [known[name]], ("version", "status", "eval"), source.problems)
    samples = [each for n, each in known.items() if n.startswith("samples/")]
    rows = read_members(source.path, samples, FIELDS, source.problems)
    return _parsed(head.to_dicts()[0]), [_parsed(row) for row in rows.iter_rows(named=True)]


def _parsed(row: Mapping[str, str | None]) -> dict[str, Any]:
    return {name: None if text is None else json.loads(text) for name, text in row.items()}


def _judges(header: Mapping[str, Any]) -> dict[str, str]:
    """Map each scorer to a name that says which model graded, where that is recorded."""
    run = object_in(header.get("eval"))
    grader = object_in(object_in(run.get("model_roles")).get("grader")).get("model")
    judges = {}
    for scorer in list_in(run.get("scorers")):
        name = object_in(scorer).get("name")
        if not isinstance(name, str):
            continue
        model = object_in(object_in(scorer).get("options")).get("model")
        model = model.get("model") if isinstance(model, dict) else model
        if model is None and "model_graded" in name:
            model = grader or run.get("model")
        judges[name] = f"{name} by {model}" if isinstance(model, str) else name
    return judges


def _items(samples: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Return the item of each sample: its id, with the epoch if epochs have different outputs.

    It is the same for all samples of a log, so that a mean gives each epoch the same weight.
    """
    outputs: dict[str, set[str]] = defaultdict(set)
    for sample in samples:
        if (name := _id(sample)) is not None and object_in(sample.get("scores")):
            outputs[name].add(json.dumps(_output(sample)))
    differ = any(len(found) > 1 for found in outputs.values())
    names = [(_id(sample), sample.get("epoch")) for sample in samples]
    return [f"{name}/{epoch}" if differ and name is not None else name for name, epoch in names]


def _id(sample: Mapping[str, Any]) -> str | None:
    given = sample.get("id")
    return None if given is None else str(given)


def _output(sample: Mapping[str, Any]) -> Any:
    return object_in(sample.get("output")).get("completion")


def _ratings(
    sample: Mapping[str, Any], item: str | None, judges: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the ratings of a sample, of scorers and of people."""
    category = text_of(object_in(sample.get("metadata")).get("category"))
    lost = bool(sample.get("error")) or sample.get("status") == "error"
    for scorer, score in object_in(sample.get("scores")).items():
        found = list_in(object_in(score).get("history"))
        history = [each for each in found if isinstance(each, dict)]
        edits = [each for each in history if each.get("provenance")]
        # A score that a person added has edits only.
        first = next((e for e in history if not e.get("provenance")), None if history else score)
        why = object_in(object_in(object_in(first).get("metadata"))).get("unscored_reason")
        who = judges.get(scorer, scorer)
        by_people = bool(history) and first is None
        rows = [] if by_people else [(who, False, object_in(first).get("value"), why)]
        by_person = {
            str(object_in(each["provenance"]).get("author") or PERSON): each.get("value")
            for each in edits
            if each.get("value") != "UNCHANGED"
        }
        rows += [(who, True, value, None) for who, value in by_person.items()]
        for who, human, value, reason in rows:
            parts = value.items() if isinstance(value, dict) and value else [("", value)]
            for key, part in parts:
                yield {
                    "item": item,
                    "cluster": _id(sample),
                    "category": category,
                    "criterion": f"{scorer}/{key}" if key else scorer,
                    "judge": who,
                    "human": human,
                    **(_read(None, ENDED) if lost and not human else _read(part, reason)),
                }


def _read(value: object, why: object) -> dict[str, Any]:
    """Return kind, label, value and reason of a score's value."""
    if isinstance(value, bool):
        return {"kind": "label", "label": json.dumps(value), "value": float(value)}
    if isinstance(value, int | float) and math.isfinite(value):
        return {"kind": "number", "value": float(value)}
    if isinstance(value, str) and value:
        return {"kind": "label", "label": value, "value": GRADES.get(value)}
    if isinstance(value, list):
        return {"kind": "label", "label": json.dumps(value)}
    return {"kind": "label", "invalid": str(why or "no score")}
