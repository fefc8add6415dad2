"""What a study would ask, cost and see, before anything is spent."""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame
from rich.console import Console

from flows._terminal import plain_table
from flows.studies import Study
from schemas.curation import PerturbedAnswers
from schemas.judging import Ballots, Pairs, Votes
from tasks.conclude import MINIMUM
from tasks.curate import import_dataset
from tasks.judge import Design, draw_ballots, judge_table
from tasks.pair import pair_up
from tasks.perturb import perturb, perturbation_table
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, provider_of
from tasks.providers._prices import price_of
from tasks.statistics._design import smallest_shift
from warehouse.peek import default_path
from warehouse.store import Warehouse

CHARACTERS_PER_TOKEN = 4
REPLY_TOKENS = 80
"""Of a short comparison with a verdict; a judge that thinks aloud takes more."""


def show_plan(study: Study, warehouse: Path | None) -> None:
    """Print ballots, tokens and cost per judge, and the smallest shift that can be seen."""
    study = study.at(datetime.now(UTC))
    pairs, perturbed = _prepare(study)
    design = Design(study.votes_per_pair, study.mode, study.wave, study.seed)
    ballots = draw_ballots(pairs, judge_table(study.judges), study.prompt, design)
    path = Path(warehouse or default_path())
    cast = Votes.empty()
    if path.is_file():
        cast = Warehouse(path).read(Votes, among=ballots.select("ballot_id"))
    console = Console()
    console.print(_costs(ballots, cast, pairs, study.prompt))
    console.print(_sight(pairs, perturbed, study))
    console.print(_advice(pairs, study))
    console.print(
        f"Tokens are estimated: {CHARACTERS_PER_TOKEN} characters each, {REPLY_TOKENS} a reply.",
        style="dim",
    )


def _prepare(study: Study) -> tuple[DataFrame[Pairs], DataFrame[PerturbedAnswers]]:
    questions, answers, versions = import_dataset(study.dataset, study.folder, study.limit)
    perturbed = PerturbedAnswers.of(
        pl.concat(
            perturb(questions, answers, versions, name, study.seed) for name in study.perturbations
        )
    )
    table = perturbation_table(study.perturbations)
    return pair_up(questions, answers, perturbed, table, study.checks), perturbed


def _costs(
    ballots: DataFrame[Ballots], cast: DataFrame[Votes], pairs: DataFrame[Pairs], prompt: str
) -> object:
    form = PROMPTS[prompt]
    frame = len(form.system) + len(form.user)
    characters = pairs.select(
        "pair_id", characters=frame + pl.sum_horizontal(
            pl.col("question", "anchor", "target").str.len_chars()
        ),
    )  # fmt: skip
    asked = (
        ballots.unique("ballot_id")
        .join(characters, on="pair_id")
        .with_columns(known=pl.col("ballot_id").is_in(cast["ballot_id"].implode()))
        .group_by("judge", maintain_order=True)
        .agg(
            ballots=pl.len(),
            cast=pl.col("known").sum(),
            calls=(~pl.col("known")).sum(),
            characters=pl.col("characters").filter(~pl.col("known")).sum(),
        )
        .sort("judge")
    )
    rows: list[tuple[Any, ...]] = []
    costs: list[float | None] = []
    for row in asked.iter_rows(named=True):
        tokens, replies = row["characters"] // CHARACTERS_PER_TOKEN, row["calls"] * REPLY_TOKENS
        price = price_of(JUDGES[row["judge"]], simulated=provider_of(row["judge"]).simulated)
        cost = None if price is None else tokens * price.prompt + replies * price.completion
        costs.append(cost)
        rows.append(
            (row["judge"], row["ballots"], row["cast"], row["calls"], tokens, replies, _usd(cost))
        )
    sums = [sum(row[column] for row in rows) for column in range(1, 6)]
    known = [cost for cost in costs if cost is not None]
    rows.append(("all", *sums, _usd(sum(known) if len(known) == len(costs) else None)))
    columns = ("judge", "ballots", "cast", "calls", "tokens in", "out", "USD")
    return plain_table(columns, rows, "What would be asked")


def _usd(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:.2f}"


def _sight(pairs: DataFrame[Pairs], perturbed: DataFrame[PerturbedAnswers], study: Study) -> object:
    rows: list[tuple[Any, ...]] = []
    for name in study.perturbations:
        arms = pairs.filter(pl.col("perturbation") == name)
        samples = arms.filter(pl.col("arm") == "experimental").height
        shams = arms.filter(pl.col("arm") == "sham").height
        dropped = perturbed.filter(pl.col("perturbation") == name).height - samples
        # The primary endpoint is over the sham where there is one.
        seen = smallest_shift(shams or samples, study.votes_per_pair)
        rows.append((name, samples, shams, dropped, seen))
    columns = ("perturbation", "samples", "with sham", "dropped", "smallest shift seen")
    return plain_table(columns, rows, "What the design can see, per judge (80 % power)")


def _advice(pairs: DataFrame[Pairs], study: Study) -> str:
    """Say how many samples, or votes, would see the smallest shift that matters."""
    asked = pairs.filter(pl.col("arm") == "experimental")["perturbation"].to_list()
    fewest = min(asked.count(name) for name in study.perturbations)
    if not fewest:
        return "No sample is left to ask about."
    seen = smallest_shift(fewest, study.votes_per_pair) or 1.0
    if seen <= MINIMUM:
        return f"The design sees the smallest shift that matters ({MINIMUM})."
    needed = math.ceil(fewest * (seen / MINIMUM) ** 2)
    return (
        f"The smallest shift that matters ({MINIMUM}) cannot be seen: with {study.votes_per_pair} "
        f"votes per pair that takes about {needed} samples."
    )
