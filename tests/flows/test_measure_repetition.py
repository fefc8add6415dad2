"""Repeated votes of nine models in both orders (Shi et al.), through `voirdire measure`."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main

Gold = dict[str, Any]
CHOICE = {"A": "first", "B": "second", "C": "tie", None: "invalid"}
NAMES = [
    "position_consistency",
    "preference_fairness",
    "lenient_consistency",
    "repetition_stability",
    "swap_protocol",
]


@pytest.fixture(scope="module")
def gold(reference_data: Path) -> Gold:
    path = reference_data / "position_bias_repetition" / "gold.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def found(
    reference_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, ...], Any]:
    """Return estimates by dataset (each repetition alone, and all), judge and statistic."""
    source = reference_data / "position_bias_repetition" / "votes.jsonl.gz"
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        votes = [json.loads(line) for line in lines]
    path = tmp_path_factory.mktemp("repetition") / "votes.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for vote in votes:
            anchor, target = sorted((vote["first"], vote["second"]))
            row = {
                "judge": vote["judge"],
                "perturbation": None,
                "kind": None,
                "arm": "control",
                "sample": f"{vote['item']}/{anchor}/{target}",
                "cluster": vote["item"],
                "shown_first": "anchor" if vote["first"] == anchor else "target",
                "choice": CHOICE[vote["choice"]],
            }
            repetition = vote["repetition"]
            alone = {**row, "dataset": f"rep{repetition}", "repeat": 0}
            for line in (alone, {**row, "dataset": "all", "repeat": repetition - 1}):
                file.write(json.dumps(line) + "\n")
    only = [option for name in NAMES for option in ("--only", name)]
    result = CliRunner().invoke(main, ["measure", str(path), "--format", "json", *only])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    return {(row["dataset"], row["judge"], row["statistic"]): row for row in rows}


@pytest.mark.parametrize("repetition", ["rep1", "rep2", "rep3"])
def test_counts_of_each_repetition(found: Any, gold: Gold, repetition: str) -> None:
    assert len(gold["metrics"]) == 9
    for judge, metrics in gold["metrics"].items():
        wanted = metrics[repetition]
        rows = {
            name: found[repetition, judge, name]
            for name in ("position_consistency", "primacy", "recency", "preference_fairness")
        }
        counts = [rows[name]["hits"] for name in ("position_consistency", "primacy", "recency")]
        assert counts == [wanted["cons"], wanted["prim"], wanted["rec"]], judge
        assert {row["dropped"] for row in rows.values()} == {wanted.get("inv", 0)}
        assert rows["position_consistency"]["estimate"] == pytest.approx(wanted["PC"], abs=1e-9)
        # Theirs divides by all 96 matches, ours by those with two valid votes.
        fairness = rows["preference_fairness"]
        theirs = fairness["estimate"] * fairness["n"] / (fairness["n"] + fairness["dropped"])
        assert theirs == pytest.approx((wanted["rec"] - wanted["prim"]) / 96, abs=1e-9)
        swap = found[repetition, judge, "swap_inconsistent_rate"]
        assert swap["hits"] == wanted["prim"] + wanted["rec"]


def test_the_authors_logs_forgive_what_cannot_be_read(found: Any, gold: Gold) -> None:
    assert len(gold["author_logs"]) == 27
    lenient = 0
    for name, log in gold["author_logs"].items():
        repetition = "rep" + name.split("Repetition")[1][0]
        judge = name.split("record0_")[1].removesuffix("_3")
        row = found[repetition, judge, "lenient_consistency"]
        assert (row["hits"], row["n"]) == (log["consistent"], log["of"]), name
        assert 100 * row["estimate"] == pytest.approx(log["rate"], abs=0.005001)
        lenient += row["estimate"] > found[repetition, judge, "position_consistency"]["estimate"]
    unread = [log for log in gold["author_logs"].values() if log["of"] < 192]
    assert lenient == len(unread) == 8


def test_stability_over_all_repetitions(found: Any, gold: Gold) -> None:
    differ = 0
    for judge, metrics in gold["metrics"].items():
        theirs = found["all", judge, "repetition_stability_asked"]["estimate"]
        ours = found["all", judge, "repetition_stability"]["estimate"]
        assert theirs == pytest.approx(metrics["RS"], abs=1e-9)
        assert ours >= theirs - 1e-12
        differ += ours > theirs + 1e-12
    assert differ == 5  # models with replies that cannot be read
