"""How large the report of a large study is; that of ``quick`` is in tests/flows/test_quick.py."""

from typing import Any

import polars as pl
import pytest

from schemas.judging import VoteLog
from schemas.results import Drifts
from tasks.report import SavedVotes, report
from tasks.results import results_of

MOST_BYTES = 6_000_000
JUDGES, PERTURBATIONS, QUESTIONS = 20, 12, 16
REST = {
    "p_adjusted": 0.0171,
    "adjustment": "Benjamini-Hochberg, all cells (F1)",
    "finding": "inconclusive",
    "design": "balanced",
    "floor": "sham",
    "votes": 2000,
    "invalid_rate": 0.02,
    "seed": 20240612,
    "study_seed": 0,
    "code_version": "0.1.0+abcdef123456",
    "prompt_digest": "bf6054986ab5",
}
EXAMPLES = 240
"""One of each cell: see EXAMPLES_IN_ALL of flows/publishing/pages.py."""


def vote_log() -> pl.DataFrame:
    """Return two votes per pair, whose choices are spread by a hash."""
    names = [f"perturbation_{number}" for number in range(PERTURBATIONS)]
    planted = pl.DataFrame({"perturbation": names}).join(
        pl.DataFrame({"arm": ["experimental", "sham"]}), how="cross"
    )
    control = pl.DataFrame({"perturbation": [None], "arm": ["control"]})
    judges = [f"provider/a-judge-{number}" for number in range(JUDGES)]
    drawn = pl.struct("judge", "sample", "arm", "perturbation", "shown_first").hash(7) % 100
    return (
        pl.concat([control, planted], how="vertical_relaxed")
        .join(pl.DataFrame({"judge": judges}), how="cross")
        .join(pl.DataFrame({"cluster": [f"q{n}" for n in range(QUESTIONS)]}), how="cross")
        .join(pl.DataFrame({"shown_first": ["anchor", "target"]}), how="cross")
        .with_columns(sample=pl.format("{}/a2", "cluster"))
        .with_columns(
            dataset=pl.lit("large"),
            prompt=pl.lit("pair_v1"),
            wave=pl.lit(""),
            kind=pl.when(pl.col("perturbation").is_not_null()).then(pl.lit("promote")),
            repeat=0,
            choice=pl.when(drawn < 15)
            .then(pl.lit("tie"))
            .when(drawn < 60)
            .then(pl.lit("first"))
            .otherwise(pl.lit("second")),
            simulated=True,
            cached=False,
        )
    )


def example(number: int) -> dict[str, Any]:
    """Return a flipped pair with answers and replies of some two thousand characters."""
    answer = "The answer explains in many words why it is so, and ends.\n" * 35
    reply = "I compared both answers step by step. " * 40
    sides = ["anchor", "target"]
    return {
        "dataset": "large",
        "judge": f"provider/a-judge-{number % JUDGES}",
        "simulated": True,
        "prompt": "pair_v1",
        "wave": "",
        "category": None,
        "perturbation": f"perturbation_{number // JUDGES}",
        "sample": f"q{number % 7}/a2",
        "criterion": "",
        "rating_kind": None,
        "control": "anchor",
        "experimental": "target",
        "sham": "tie",
        "question": "Why is it so?",
        "anchor": answer,
        "target": answer,
        "perturbed": f"# Summary\n\n{answer}\n\n* point\n* point\n(Smith 2019)",
        "repeat": None,
        **{f"{arm}_replies": [reply, reply] for arm in ("control", "experimental")},
        **{f"{arm}_orders": sides for arm in ("control", "experimental")},
        "total": 26,
    }


@pytest.mark.slow
def test_twenty_judges_and_twelve_perturbations_fit_in_six_megabytes(parts: Any) -> None:
    concluded = results_of(VoteLog.of(vote_log()), "balanced").concluded(Drifts.empty())
    # As many numbers as there are with everything measured.
    numbers = pl.concat([concluded.estimates] * 2).with_columns(
        **{name: pl.lit(value) for name, value in REST.items()}
    )
    examples = pl.DataFrame([example(number) for number in range(EXAMPLES)])
    page = report(
        parts.FACTS,
        concluded,
        parts.perturbed(),
        lambda: SavedVotes(numbers=numbers, examples=examples),
    )
    seen = parts.Page(page)
    assert "all judges and perturbations: 2500 of " in seen.text
    assert "Listed are 50 of 190 comparisons" in seen.text
    assert len(seen.data) > 3 * PERTURBATIONS
    assert len(page.encode()) < MOST_BYTES
