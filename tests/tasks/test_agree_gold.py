"""Agreement of people against the published table of the alternative annotator test's data.

Its columns are annotators, items, labels, items per annotator, annotators per item, agreement (of
names; of numbers mean absolute error) and Fleiss' kappa (of numbers Pearson's correlation). Error
and correlation are not among our measures, nor is Fleiss' kappa of items with unequal numbers of
labels (ours is of complete cases): these are computed here, from the labels as we read them.
"""

import json
from pathlib import Path

import polars as pl
import pytest

from tasks.calibration.agreement import agree
from tasks.calibration.calibrate import annotations_of, labelled_by_files
from tasks.calibration.similarity import find_metric
from tasks.inference.bootstrap import formulas_only
from tasks.readers.labels import read_labels

NEAR = 1e-9
DATASETS = ("wax", "mtbench", "cebab_aspects", "cebab_stars", "10k_prompts")
SIZES = {"m": 0, "n": 1, "cats": 2, "ipa": 3, "api": 4}
"""Names of what is computed, and their places among what is published."""


def errors(people: pl.DataFrame) -> dict[str, float]:
    """Compute mean absolute errors of pairs of labels, and correlations of pairs of people."""
    each = people.select("annotator", "item", value=pl.col("label").cast(pl.Float64))
    both = each.join(each, on="item", suffix="_2").filter(
        pl.col("annotator") < pl.col("annotator_2")
    )
    error = (pl.col("value") - pl.col("value_2")).abs()
    pairs = both.group_by("annotator", "annotator_2").agg(
        error=error.mean(), common=pl.len(), r=pl.corr("value", "value_2")
    )
    reported = pairs.filter(pl.col("common") > 2, pl.col("r").is_finite())
    return {
        "mae_pooled": both.select(error).to_series().mean(),
        "mae_item": both.group_by("item").agg(error=error.mean())["error"].mean(),
        "mae_annpair": pairs["error"].mean(),
        "pear_annpair": reported["r"].mean(),
        "pear_annpair30": reported.filter(pl.col("common") >= 30)["r"].mean(),
    }  # type: ignore[return-value]


def unequal_fleiss(people: pl.DataFrame) -> float:
    """Compute Fleiss' kappa of items with two labels or more, however many."""
    several = people.filter(pl.len().over("item") > 1)
    counts = several.group_by("item", "label").len("n").with_columns(pl.col("n").cast(pl.Float64))
    alike = (pl.col("n") * (pl.col("n") - 1)).sum() / (pl.col("n").sum() * (pl.col("n").sum() - 1))
    observed = counts.group_by("item").agg(p=alike)["p"].mean()
    chance = several["label"].value_counts(normalize=True)["proportion"].pow(2).sum()
    return (observed - chance) / (1 - chance)  # type: ignore[operator]


@pytest.mark.parametrize("name", DATASETS)
def test_the_published_agreement(reference_data: Path, name: str) -> None:
    root = reference_data / "alttest"
    table = json.loads((root / "paper_tables_check.json").read_text())["T1"][name]
    gold = json.loads((root / name / "gold.json").read_text())[name]
    humans, judges = (
        read_labels(root / name / f"{who}_annotations.json") for who in ("human", "llm")
    )
    metric = gold["scoring_function"]
    annotations = annotations_of(labelled_by_files(name, humans, judges), metric)
    people = annotations.filter("human")
    who, items = (people[column].n_unique() for column in ("annotator", "item"))
    found = {
        "m": who,
        "n": items,
        "cats": people["label"].n_unique(),
        "ipa": people.height / who,
        "api": people.height / items,
    }
    for size, place in SIZES.items():
        assert found[size] == pytest.approx(table["computed"][size], abs=NEAR)
        published = table["paper"][place]
        # items per annotator are whole numbers there, all else has two digits; numbers are "1-5"
        near = 1 if size == "ipa" else 0.00501
        assert published == "1-5" or found[size] == pytest.approx(published, abs=near)
    if metric != "accuracy":
        assert errors(people) == pytest.approx(
            {key: table["computed"][key] for key in errors(people)}, abs=NEAR
        )
        return
    assert unequal_fleiss(people) == pytest.approx(table["computed"]["fleiss"], abs=NEAR)
    with formulas_only():
        estimates = agree(annotations, find_metric(metric).labels)
    ceiling = estimates.filter(statistic="noise_ceiling")
    pairs = estimates.filter(
        pl.col("statistic") == "agreement", ~pl.col("judge").is_in(ceiling["judge"].implode())
    )
    wanted = table["computed"]
    assert pairs.height > 2
    assert pairs["hits"].sum() / pairs["n"].sum() == pytest.approx(wanted["agree_pooled"], abs=NEAR)
    assert pairs["estimate"].mean() == pytest.approx(wanted["agree_annpair"], abs=NEAR)
    # every judge labelled every item, so that the ceiling is the same for all
    assert ceiling["estimate"].to_list() == pytest.approx(
        [wanted["agree_item"]] * ceiling.height, abs=NEAR
    )
    assert wanted["agree_pooled"] == pytest.approx(table["paper"][5], abs=0.00501)
