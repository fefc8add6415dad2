"""The alternative annotator test against published and independently computed results.

``multilabel_synthetic`` has two variants of each result, as scores that are equal by arithmetic
differ in their last bits by the order of summation. Ours is the tolerance (scores within 1e-9 tie):
only so do the names and the order of annotators change nothing. Its ``macro_jaccard`` is the mean
Jaccard of the bits 1 and 0 of multi-hot vectors, ours by the name of `bits_jaccard`.

Of the published tables the column of a traditional measure (``trad``: accuracy by a majority vote,
Pearson's correlation) is none of ours: it is computed here, from the labels as we read them, and
equals both forms of the check file. What is printed is the first form of numbers; of names it is
neither (MT-Bench, gpt-4o: .68 instead of .59 or .54; elsewhere up to .03 off), so not compared.
"""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.calibration.alt_test import CURVE, AltTest, alt_test
from tasks.metrics import METRICS
from tasks.readers.labels import read_labels

NEAR = 1e-9
DATASETS = ("wax", "mtbench", "cebab_aspects", "cebab_stars", "10k_prompts")
SCORES = {
    "accuracy": "accuracy",
    "set_jaccard": "jaccard",
    "macro_jaccard": "bits_jaccard",
    "hamming": "hamming",
}


def read_both(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    humans, judges = (f"{who}_annotations.json" for who in ("human", "llm"))
    return read_labels(folder / humans), read_labels(folder / judges)


def traditional(humans: pl.DataFrame, judge: pl.DataFrame, metric: str) -> tuple[Any, Any]:
    """Compute ``trad_A`` and ``trad_B`` of one judge from labels as they are read.

    Names: the share of items whose most common labels hold the judge's, divided by how many these
    are; the same of the one that was read first. Numbers: the mean correlation with each person of
    30 common items or more; the correlation with the mean of people.
    """
    both = humans.join(judge.select("item", own="label"), on="item", maintain_order="left")
    if metric == "neg_rmse":
        numbers = both.with_columns(pl.col("label", "own").cast(pl.Float64))
        each = numbers.group_by("annotator").agg(n=pl.len(), r=pl.corr("label", "own"))
        means = numbers.group_by("item").agg(pl.col("label").mean(), pl.col("own").first())
        return each.filter(pl.col("n") >= 30)["r"].mean(), means.select(
            pl.corr("label", "own")
        ).item()
    counts = both.group_by("item", "label", maintain_order=True).agg(
        n=pl.len(), hit=(pl.col("own") == pl.col("label")).any()
    )
    modes = counts.filter(pl.col("n") == pl.col("n").max().over("item"))
    found = modes.group_by("item", maintain_order=True).agg(
        shared=pl.col("hit").any() / pl.len(), first=pl.col("hit").first()
    )
    return found["shared"].mean(), found["first"].mean()


def check(found: AltTest, llms: dict[str, Any]) -> None:
    """Compare every judge, epsilon and annotator with ``llms``: judge -> epsilon -> result."""
    judges = {(row["judge"], row["epsilon"]): row for row in found.judges.to_dicts()}
    each = {(r["judge"], r["epsilon"], r["annotator"]): r for r in found.annotators.to_dicts()}
    compared = 0
    for judge, epsilons in llms.items():
        for epsilon, gold in epsilons.items():
            row = judges[judge, float(epsilon)]
            assert row["winning_rate"] == pytest.approx(gold["winning_rate"], abs=NEAR)
            assert row["advantage_probability"] == pytest.approx(
                gold["advantage_probability"], abs=NEAR
            )
            assert row["passed"] == gold["passed"]
            for annotator, wanted in gold["annotators"].items():
                one = each.pop((judge, float(epsilon), annotator))
                assert one["n"] == wanted["n"]
                for ours, theirs in (
                    ("advantage_probability", "llm_advantage_probability"),
                    ("human_advantage_probability", "human_advantage_probability"),
                ):
                    assert one[ours] == pytest.approx(wanted[theirs], abs=NEAR)
                # null where the t of the gold is 0/0
                assert one["p_value"] == pytest.approx(wanted["p_value"], abs=NEAR)
                assert one["rejected"] == wanted["rejected"]
                compared += 1
    assert compared > 0
    assert not each


@pytest.mark.parametrize("name", DATASETS)
def test_the_published_data(reference_data: Path, name: str) -> None:
    folder = reference_data / "alttest" / name
    gold = json.loads((folder / "gold.json").read_text())[name]
    found = alt_test(
        *read_both(folder),
        METRICS[gold["scoring_function"]],
        epsilons=CURVE,
        test="t",
    )
    check(found, gold["llms"])
    assert found.judges["n"].unique().to_list() == [gold["n_instances"]]
    assert found.judges["dropped"].unique().to_list() == [0]


@pytest.mark.parametrize("name", DATASETS)
def test_the_published_tables(reference_data: Path, name: str) -> None:
    tables = json.loads((reference_data / "alttest" / "paper_tables_check.json").read_text())
    folder = reference_data / "alttest" / name
    gold = json.loads((folder / "gold.json").read_text())[name]
    humans, judges = read_both(folder)
    found = alt_test(
        humans,
        judges,
        METRICS[gold["scoring_function"]],
        epsilons=[gold["paper_epsilon"]],
        test="t",
    )
    published = {k: v for k, v in tables["T2"].items() if k.startswith(f"{name}/")}
    assert len(published) == found.judges.height
    for row in found.judges.to_dicts():
        cell = published[f"{name}/{row['judge']}"]
        assert row["winning_rate"] == pytest.approx(cell["computed"]["wr"], abs=NEAR)
        assert row["advantage_probability"] == pytest.approx(cell["computed"]["ap"], abs=NEAR)
        reported = judges.filter(annotator=row["judge"])
        trad = traditional(humans, reported, gold["scoring_function"])
        wanted = cell["computed"]["trad_A"], cell["computed"]["trad_B"]
        assert trad == pytest.approx(wanted, abs=NEAR)
        if gold["scoring_function"] == "neg_rmse":
            assert trad[0] == pytest.approx(cell["paper"]["trad"], abs=0.00501)
        # the paper rounds to two digits
        assert row["winning_rate"] == pytest.approx(cell["paper"]["wr"], abs=0.00501)
        assert row["advantage_probability"] == pytest.approx(cell["paper"]["ap"], abs=0.00501)


@pytest.mark.parametrize("kind", ["additive", "multiplicative"])
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("as_sets", [True, False])
def test_labels_of_many(reference_data: Path, score: str, kind: Any, *, as_sets: bool) -> None:
    folder = reference_data / "multilabel_synthetic"
    data = json.loads((folder / "data.json").read_text())
    gold = json.loads((folder / "gold.json").read_text())[score]

    def frame(who: dict[str, dict[str, list[str]]]) -> pl.DataFrame:
        return pl.DataFrame(
            [
                {
                    "annotator": name,
                    "item": item,
                    "label": json.dumps(
                        [n for n, bit in zip(data["labels"], bits, strict=True) if bit == "1"]
                        if as_sets
                        else bits
                    ),
                }
                for name, labels in who.items()
                for item, bits in labels.items()
            ]
        )

    found = alt_test(
        frame(data["humans"]),
        frame(data["llms"]),
        METRICS[SCORES[score]],
        epsilons=CURVE,
        kind=kind,
        test="t",
    )
    assert found.judges.height == len(gold) * len(CURVE)
    check(
        found,
        {j: {e: v["tol1e-9"] for e, v in kinds[kind].items()} for j, kinds in gold.items()},
    )
