"""Agreement of people against the published table of the alternative annotator test's data.

Its columns are annotators, items, labels, items per annotator, annotators per item, agreement (of
names; of numbers mean absolute error) and Fleiss' kappa (of numbers Pearson's correlation). Error
and correlation are not among our measures, nor is Fleiss' kappa of items with unequal numbers of
labels: ours is of complete cases.
"""

import json
from pathlib import Path

import polars as pl
import pytest

from tasks.agree import agree
from tasks.calibrate import annotations_of, label_kind, labelled_by_files
from tasks.read_labels import read_labels
from tasks.statistics._bootstrap import formulas_only

NEAR = 1e-9
DATASETS = ("wax", "mtbench", "cebab_aspects", "cebab_stars", "10k_prompts")
SIZES = {"m": 0, "n": 1, "cats": 2, "ipa": 3, "api": 4}
"""Names of what is computed, and their places among what is published."""


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
        "m": who, "n": items, "cats": people["label"].n_unique(), "ipa": people.height / who,
        "api": people.height / items,
    }  # fmt: skip
    for size, place in SIZES.items():
        assert found[size] == pytest.approx(table["computed"][size], abs=NEAR)
        published = table["paper"][place]
        # items per annotator are whole numbers there, all else has two digits; numbers are "1-5"
        near = 1 if size == "ipa" else 0.00501
        assert published == "1-5" or found[size] == pytest.approx(published, abs=near)
    if metric != "accuracy":
        return
    with formulas_only():
        estimates = agree(annotations, label_kind(metric))
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
