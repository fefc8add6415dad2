"""Results of promptfoo: verdicts of model-graded assertions, and ratings of people."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from tasks.readers.duckdb_reader import Source
from tasks.readers.formats import (
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

VERSION = 3
GRADED = {
    "agent-rubric",
    "answer-relevance",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "conversation-relevance",
    "factuality",
    "g-eval",
    "llm-rubric",
    "model-graded-closedqa",
    "model-graded-factuality",
    "pi",
    "search-rubric",
    "select-best",
    "trajectory:goal-success",
    "video-rubric",
}
"""Kinds of assertions that a model grades."""
HUMAN, PERSON = "human", "promptfoo user"
OVERALL = "overall"
TOGETHER = "all model-graded assertions"
NO_COMPONENT = "entries of componentResults that are no objects"
OTHERS = "assertions that neither a model nor a person graded"
FAILED = "results without an output, because the provider failed"
UNGRADED = "results without a graded assertion"
NO_OBJECT = "results that are no objects"
ERROR = 2
"""``failureReason`` of a result whose provider failed."""


@log_format(
    title="promptfoo results",
    needs=(
        ("results", "config"),
        ("evalId", "results"),
        ("version", "results", "stats", "prompts"),
    ),
    source="https://www.promptfoo.dev/docs/configuration/outputs/",
)
def promptfoo(source: Source) -> Parts:
    """Pass or fail of each model-graded assertion; assertions of type ``human`` are of people.

    An assertion whose grader failed (``metadata.graderError``) is invalid, not a fail. The item is
    the output of a test case, prompt and provider, the cluster is the test case (equal ``vars``,
    as promptfoo numbers each repeat anew); in a folder with results of several configurations, the
    ``description`` of each is part of both; where the outputs of several runs differ, the run is
    part of the item. An item has the metadata of the test and, where these lack a field,
    its variables and the ``provider``; ``category`` is one of them. With several criteria (metrics,
    or kinds of assertions) a person's rating is compared with all of them together.
    """
    log = source.object()
    summary = log if "stats" in log and isinstance(log.get("results"), list) else log.get("results")
    summary = summary if isinstance(summary, dict) else {}
    if summary.get("version") != VERSION or not isinstance(summary.get("results"), list):
        what = (
            f"holds promptfoo results of version {summary.get('version')!r:.20}; "
            f"version {VERSION} is readable"
        )
        todo = f"Export them with a promptfoo whose `promptfoo export` writes version {VERSION}."
        source.problems.refuse("", what, todo)
    # The grader that the configuration sets for all tests.
    options = object_in(object_in(object_in(log.get("config")).get("defaultTest")).get("options"))
    default = _name(options.get("provider"))
    counted: Counter[str] = Counter()
    objects = [result for result in summary["results"] if isinstance(result, dict)]
    results, copies = distinct_objects(source, objects, ("id",), "id")
    counted.update(copies)
    counted[NO_OBJECT] += len(summary["results"]) - len(objects)
    rows = [
        row
        for result, cluster in zip(results, _clusters(results), strict=True)
        for row in _ratings(result, cluster, default, counted)
    ]
    rated = {row["item"] for row in rows if row["human"]}
    seen = (
        (item, {"output": _output(result)} | object_in(result.get("vars")))
        for result in results
        if (item := _item(result)) in rated
    )
    ratings = _with_overall(pl.DataFrame(rows, schema=RATED))
    described = object_in(log.get("config")).get("description")
    return Parts(
        ratings=ratings,
        texts=texts_of(seen),
        metadata=metadata_of((_item(result), _metadata(result)) for result in results),
        outputs=outputs_of((_item(result), _output(result)) for result in results),
        left_out=counted,
        rows=len(summary["results"]),
        task=described if isinstance(described, str) else None,
    )


def _ratings(
    result: Mapping[str, Any], cluster: str | None, default: str | None, counted: Counter[str]
) -> Iterator[dict[str, Any]]:
    """Yield the ratings of one output; count what is left out."""
    grading = object_in(result.get("gradingResult"))
    found = list_in(grading.get("componentResults"))
    components = [each for each in found if isinstance(each, dict)]
    if lost := len(found) - len(components):
        counted[NO_COMPONENT] += lost
    if not components:
        failed = result.get("failureReason") == ERROR or result.get("error")
        counted[FAILED if failed else UNGRADED] += 1
        return
    item = _item(result)
    category = text_of(_metadata(result).get("category"))
    seen: Counter[str] = Counter()
    for component in components:
        assertion = object_in(component.get("assertion"))
        kind = str(assertion.get("type"))
        human = kind == HUMAN
        if not human and kind.removeprefix("not-") not in GRADED:
            counted[OTHERS] += 1
            continue
        name = str(assertion.get("metric") or kind)
        seen[name] += not human
        grader = _name(assertion.get("provider")) or default
        judge = f"{kind} by {grader}" if grader else kind
        passed: Any = component.get("pass")
        failed = object_in(component.get("metadata")).get("graderError")
        valid = isinstance(passed, bool) and not failed
        yield {
            "item": item,
            "cluster": cluster,
            "category": category,
            "criterion": OVERALL if human else name if seen[name] == 1 else f"{name} #{seen[name]}",
            "judge": PERSON if human else judge,
            "human": human,
            "kind": "label",
            "label": ("pass" if passed else "fail") if valid else None,
            "value": float(passed) if valid else None,
            "invalid": None if valid else "grader error" if failed else "neither pass nor fail",
        }


def _metadata(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a test case: of its metadata and, where these lack one, of its vars."""
    given = object_in(object_in(result.get("testCase")).get("metadata"))
    known = {name: value for name, value in given.items() if value not in (None, "")}
    provider = {"provider": object_in(result.get("provider")).get("id")}
    return provider | object_in(result.get("vars")) | known


def _item(result: Mapping[str, Any]) -> str | None:
    """Name the output of a test case, prompt and provider; null without a test case."""
    if (test := result.get("testIdx")) is None:
        return None
    return f"{test}/{result.get('promptIdx')}/{object_in(result.get('provider')).get('id')}"


def _clusters(results: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Name the test case of each result: the number of the first one with the same variables.

    Each repeat of a test case has a number of its own.
    """
    first: dict[str, str] = {}
    found = []
    for result in results:
        number = None if (test := result.get("testIdx")) is None else str(test)
        given = object_in(result.get("vars"))
        if given and number is not None:
            number = first.setdefault(json.dumps(given, sort_keys=True), number)
        found.append(number)
    return found


def _output(result: Mapping[str, Any]) -> Any:
    return object_in(result.get("response")).get("output")


def _with_overall(ratings: pl.DataFrame) -> pl.DataFrame:
    """Let people's ratings be compared: with the only criterion, or with all together."""
    judged = ratings.filter(~pl.col("human"))
    people = ratings.filter("human")
    names = judged["criterion"].unique().to_list()
    if people.is_empty() or not names:
        return ratings
    if len(names) == 1:
        return pl.concat([judged, people.with_columns(criterion=pl.lit(names[0]))])
    lost = pl.col("invalid").drop_nulls().first()
    together = (
        judged.group_by("item", maintain_order=True)
        .agg(
            pl.col("cluster", "category").first(),
            invalid=lost,
            value=pl.when(lost.is_null()).then(pl.col("value").min()),
        )
        .with_columns(
            criterion=pl.lit(OVERALL),
            judge=pl.lit(TOGETHER),
            human=pl.lit(value=False),
            kind=pl.lit("label"),
            label=pl.when(pl.col("value") == 1)
            .then(pl.lit("pass"))
            .when(pl.col("value") == 0)
            .then(pl.lit("fail")),
        )
        .select(*RATED)
    )
    return pl.concat([judged, together, people])


def _name(provider: object) -> str | None:
    named = provider.get("id") if isinstance(provider, dict) else provider
    return named if isinstance(named, str) and named else None
