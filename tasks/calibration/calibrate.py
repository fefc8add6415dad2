"""Calibration: align labels of judges and people and run the alternative annotator test."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Advantages, AltTests
from schemas.keys import EpsilonKind, Test
from schemas.results import Annotations
from tasks.calibration.alt_test import CURVE, LEAST, alt_test
from tasks.calibration.label_values import (
    OWN_CLUSTER,
    Labelled,
    as_json,
    as_whole,
    as_word,
    items_of,
    readings,
    require_two_names,
)
from tasks.calibration.non_inferiority import why_untested
from tasks.calibration.similarity import find_metric
from tasks.counting.annotations import PERSON
from tasks.inference.intervals import LEVEL, cluster_adjusted

WHO = ("judge", "prompt", "wave", "simulated")


class Terms(NamedTuple):
    """Parameters of the test, see :func:`tasks.calibration.alt_test.alt_test`."""

    metric: str = "accuracy"
    epsilon: float = 0.1
    kind: EpsilonKind = "additive"
    test: Test = "auto"
    least: int = LEAST
    digest: str = ""
    """Digest of a user's own metric, which is part of the cache key."""


class Trial(NamedTuple):
    """Results per judge, and per judge and annotator."""

    judges: DataFrame[AltTests]
    annotators: DataFrame[Advantages]


def labelled_by_files(
    name: str, humans: pl.DataFrame, judges: pl.DataFrame, items: pl.DataFrame | None = None
) -> Labelled:
    """Return labels from two files, or a table of ``items``; ``name`` serves as their dataset."""
    names = judges["annotator"].unique().sort()
    who = pl.DataFrame({"name": names}).with_columns(
        judge="name",
        prompt=pl.lit(PERSON),
        wave=pl.lit(""),
        simulated=pl.lit(None, dtype=pl.Boolean),
    )
    known = items_of((humans, judges)) if items is None else items
    return require_two_names(Labelled(name, humans, judges, who, known))


def labelled_by_votes(annotations: pl.DataFrame, metric: str) -> list[Labelled]:
    """Return labels from annotations, one entry per dataset.

    A column ``unreadable`` has labels (JSON) that are none.
    """
    as_number = find_metric(metric).labels == "number"
    label = (
        pl.col("value").cast(pl.String)
        if as_number
        else pl.col("label").map_elements(as_json, return_dtype=pl.String)
    )
    rows = annotations.filter(pl.col("aspect").is_null()).with_columns(
        label=pl.coalesce(label, "unreadable") if "unreadable" in annotations.columns else label,
        prompt=pl.col("prompt").fill_null(PERSON),
    )
    return [
        _labelled(str(dataset), part)
        for (dataset,), part in sorted(rows.partition_by("dataset", as_dict=True).items())
    ]


def try_judges(labelled: Labelled, terms: Terms) -> Trial:
    """Run the alternative annotator test at the chosen epsilon and at those of the curve."""
    comparable = _comparable(labelled, terms.metric)
    found = alt_test(
        comparable.humans,
        comparable.judges,
        find_metric(terms.metric),
        epsilons=sorted({terms.epsilon, *CURVE}),
        kind=terms.kind,
        test=terms.test,
        least=terms.least,
        clusters=labelled.items,
    )
    who = labelled.who.rename({"judge": "judge_"})
    columns = [
        frame.rename({"judge": "name"})
        .join(who, on="name", how="left", maintain_order="left")
        .with_columns(
            dataset=pl.lit(labelled.dataset),
            judge="judge_",
            asked=pl.col("epsilon") == terms.epsilon,
            level=pl.when(pl.col("low").is_not_null()).then(pl.lit(LEVEL)),
            method=pl.when(pl.col("low").is_not_null())
            .then(pl.lit(cluster_adjusted()))
            .otherwise(pl.lit("none")),
        )
        for frame in found
    ]
    return Trial(AltTests.of(columns[0]), Advantages.of(columns[1]))


def _comparable(labelled: Labelled, metric: str) -> Labelled:
    """Return labels whose means of repeats are grades of the scale, unless numbers are compared."""
    if find_metric(metric).labels == "number":
        return labelled
    humans, judges = (as_whole(each, labelled.whole) for each in (labelled.humans, labelled.judges))
    return labelled._replace(humans=humans, judges=judges)


def why_none_is_tested(labelled: Sequence[Labelled], trials: Sequence[Trial], terms: Terms) -> str:
    """Say why no judge could be tested against any annotator, with the next step.

    The reason is that of the first dataset; empty if a judge was tested, or if there are no labels.
    """
    if not labelled or any(trial.judges["winning_rate"].count() for trial in trials):
        return ""
    first, trial = labelled[0], trials[0]
    rows = trial.judges.filter(pl.col("asked")).select("judge", "prompt", "wave", "unreadable")
    unreadable = {" / ".join(key): lost for *key, lost in rows.rows()}
    return why_untested(
        first.humans,
        first.judges,
        trial.annotators,
        unreadable,
        metric=terms.metric,
        kind=find_metric(terms.metric).labels,
        least=terms.least,
    )


def annotations_of(labelled: Labelled, metric: str) -> DataFrame[Annotations]:
    """Return the labels that ``metric`` can read as annotations."""
    kind = find_metric(metric).labels
    labelled = _comparable(labelled, metric)
    people = labelled.humans.with_columns(
        judge="annotator",
        prompt=pl.lit(None, dtype=pl.String),
        wave=pl.lit(""),
        simulated=pl.lit(None, dtype=pl.Boolean),
        human=pl.lit(value=True),
    )
    judges = labelled.judges.join(
        labelled.who, left_on="annotator", right_on="name", how="left"
    ).with_columns(human=pl.lit(value=False))
    rows = pl.concat([people, judges], how="diagonal").drop_nulls(["item", "label"])
    read = readings(kind, rows["label"])
    words = {label: as_word(each) for label, each in read.items()}
    values = read if kind == "number" else {}
    readable = rows.with_columns(
        word=pl.col("label").replace_strict(words, default=None, return_dtype=pl.String),
        value=pl.col("label").replace_strict(values, default=None, return_dtype=pl.Float64),
    ).drop_nulls("word")
    grouped = readable.join(
        labelled.items.select("item", "cluster"), on="item", how="left"
    ).with_columns(pl.coalesce("cluster", OWN_CLUSTER))
    return Annotations.of(
        grouped.select(
            "item",
            "cluster",
            "prompt",
            "wave",
            "value",
            "human",
            "simulated",
            dataset=pl.lit(labelled.dataset),
            aspect=pl.lit(None, dtype=pl.String),
            annotator="judge",
            label="word",
            inconsistent=pl.lit(value=False),
            votes=pl.lit(1),
        )
    )


def _labelled(dataset: str, rows: pl.DataFrame) -> Labelled:
    models = rows.filter(~pl.col("human"))
    differing = [c for c in ("prompt", "wave") if models[c].n_unique() > 1]
    named = models.with_columns(name=pl.concat_str("annotator", *differing, separator=" / "))
    who = (
        named.select("name", "prompt", "wave", "simulated", judge="annotator")
        .unique("name")
        .sort("name")
    )
    humans = rows.filter("human").select("annotator", "item", "label")
    judges = named.select("item", "label", annotator="name").select("annotator", "item", "label")
    items = items_of((humans, judges), rows.select("item", "cluster").unique("item"))
    return require_two_names(Labelled(dataset, humans, judges, who, items))
