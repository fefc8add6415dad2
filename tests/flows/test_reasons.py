"""No null without a reason of its own, whatever the votes."""

from collections.abc import Callable
from itertools import product
from typing import Any

import polars as pl
import pytest

from schemas.judging import SIDES
from schemas.results import Estimates
from tasks.inference.intervals import EMPTY
from tasks.results import results_of_file

Make = Callable[..., Any]
Row = dict[str, Any]
SILENT = dict.fromkeys(("simulated", "cached", "human"))


def votes(
    choices: Callable[[str, int, str, str, int], str | None],
    *,
    judges: tuple[str, ...] = ("ada", "bob"),
    questions: int = 12,
    sides: tuple[str, ...] = SIDES,
    repeats: int = 1,
    arms: tuple[str, ...] = ("control", "experimental", "sham"),
    **more: Any,
) -> list[Row]:
    """Return votes on all questions in all arms, as ``choices`` has them."""
    return [
        {
            "judge": judge,
            "sample": f"s{at}",
            "cluster": f"q{at}",
            "arm": arm,
            "shown_first": side,
            "repeat": repeat,
            "choice": choices(judge, at, arm, side, repeat),
            **SILENT,
            **more,
        }
        for judge, at, arm, side, repeat in product(
            judges, range(questions), arms, sides, range(repeats)
        )
    ]


def mixed(judge: str, at: int, arm: str, side: str, repeat: int) -> str:
    """Vote in no order that a statistic could be partial to."""
    place = hash_of(f"{judge}{at}{arm}{side}{repeat}")
    return ("first", "second", "tie")[place % 3]


def hash_of(text: str) -> int:
    return sum(ord(character) * (at + 7) for at, character in enumerate(text))


def always(choice: str | None) -> Callable[..., str | None]:
    return lambda *_: choice


PLANS: dict[str, list[Row]] = {
    "one judge": votes(mixed, judges=("ada",)),
    "two judges": votes(mixed),
    "three judges, repeats": votes(mixed, judges=("ada", "bob", "cid"), repeats=3),
    "all ties": votes(always("tie"), repeats=2),
    "all invalid": votes(always("invalid")),
    "nothing cast": votes(always(None)),
    "always the first": votes(always("first")),
    "one order": votes(mixed, sides=SIDES[:1]),
    "one cluster": votes(mixed, questions=1, repeats=2),
    "two clusters": votes(mixed, questions=2),
    "control only": votes(mixed, arms=("control",)),
    "no sham": votes(mixed, arms=("control", "experimental")),
    "no control": votes(mixed, arms=("experimental", "sham")),
    "shams only": votes(mixed, arms=("sham",)),
    "replicates": votes(mixed, arms=("control", "experimental", "sham", "replicate")),
    "detract": [
        row | {"kind": None if row["arm"] == "control" else "detract"} for row in votes(mixed)
    ],
    "labels": votes(mixed, label="target"),
    "people": votes(mixed, judges=("ada",))
    + [row | {"human": True} for row in votes(mixed, judges=("Ann", "Bob"), arms=("control",))],
    "one person who ties": votes(mixed, judges=("ada",))
    + [row | {"human": True} for row in votes(always("tie"), judges=("Ann",), arms=("control",))],
    "two waves": votes(mixed, wave="n1") + votes(mixed, wave="n2"),
    "two waves, repeats": votes(mixed, wave="n1", repeats=2)
    + votes(always("tie"), wave="n2", repeats=2),
    "two waves, nothing cast in one": votes(mixed, wave="n1") + votes(always(None), wave="n2"),
    "two waves, all cached": votes(mixed, wave="n1", cached=False)
    + votes(mixed, wave="n2", cached=True),
    "models": [
        row
        | {
            "anchor_author": "ant",
            "target_author": "bee",
            "anchor_length": 9,
            "target_length": 9 + index % 3,
            "anchor_markup": 0,
            "target_markup": 0,
        }
        for index, row in enumerate(votes(mixed, sides=SIDES))
        if row["shown_first"] or index
    ],
    "models, kinds of markup": [
        row
        | {
            "anchor_author": "ant",
            "target_author": "bee",
            "anchor_length": 9,
            "target_length": 9 + hash_of(row["sample"]) % 3,
            "anchor_markup": 2,
            "target_markup": 2,
            "anchor_header": 1,
            "target_header": hash_of(row["sample"]) % 2,
            "anchor_list": 1,
            "target_list": 1,
            "anchor_bold": 0,
            "target_bold": 0,
        }
        for row in votes(mixed)
    ],
    "models, all tie": votes(
        always("tie"),
        anchor_author="ant",
        target_author="bee",
        anchor_length=9,
        target_length=9,
    ),
    "models, labelled": votes(
        mixed,
        anchor_author="ant",
        target_author="bee",
        human_score=1.0,
        label_chance=0.5,
    ),
    "models, one order": votes(
        mixed,
        sides=SIDES[:1],
        anchor_author="ada",
        target_author="bob",
        human_score=0.5,
    ),
    "stopped": [
        row | ({"choice": None, "stopped": "pair"} if row["repeat"] else {})
        for row in votes(mixed, repeats=2)
    ],
}
PLANS["models"] = [
    row | {"target_length": 9 + hash_of(row["sample"]) % 3} for row in PLANS["models"]
]


FEW = {
    "three judges, repeats",
    "all invalid",
    "one cluster",
    "control only",
    "people",
    "two waves",
    "models, labelled",
}
"""Those that `make test` measures: each takes a second."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(plan, marks=() if plan in FEW else pytest.mark.slow, id=plan) for plan in PLANS
    ],
)
def estimates(request: pytest.FixtureRequest, make_vote_log: Make) -> pl.DataFrame:
    return results_of_file(make_vote_log(PLANS[request.param]), "balanced").estimates


def test_what_is_null_says_why(estimates: pl.DataFrame) -> None:
    silent = pl.col("reason").is_null() & pl.any_horizontal(
        pl.col("estimate", "low", "high").is_null()
    )
    assert estimates.filter(silent).select("statistic", "estimate").unique().rows() == []
    # Which denominator it is that is empty
    assert estimates.filter(reason=EMPTY)["statistic"].unique().to_list() == []


def test_an_interval_rests_on_something(estimates: pl.DataFrame) -> None:
    bounded = estimates.filter(pl.col("low").is_not_null())
    # Bounds of what was lost are no confidence interval: they need no second question.
    least = pl.when(pl.col("statistic") == "asr_bounds").then(1).otherwise(2)
    assert bounded.filter((pl.col("n") == 0) | (pl.col("clusters") < least)).rows() == []
    assert set(bounded.filter(pl.col("level").is_null())["statistic"]) <= {"asr_bounds"}
    assert Estimates.of(estimates).equals(estimates)
