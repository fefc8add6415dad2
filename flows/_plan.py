"""What a study would ask, cost and see, before anything is spent."""

import math
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click
import polars as pl
from pandera.typing.polars import DataFrame
from rich.console import Console

from flows._budget import budget_line, unbounded
from flows._terminal import plain_table
from flows.studies import Study
from schemas.curation import PerturbedAnswers
from schemas.judging import Ballots, Pairs, Votes
from tasks.conclude import MINIMUM
from tasks.curate import import_dataset
from tasks.judge import Design, draw_ballots, dropped_params, judge_table
from tasks.pair import pair_up
from tasks.perturb import perturb, perturbation_table
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, Judge, provider_of
from tasks.providers._engine import most_tokens
from tasks.providers._prices import price_of
from tasks.statistics._design import smallest_shift
from warehouse.peek import default_path
from warehouse.store import Warehouse

CHARACTERS_PER_TOKEN = 4
REPLY_TOKENS = 80
"""Of a short comparison with a verdict."""

THINKING_TOKENS = 600
"""A guess at what a judge takes that thinks before it replies."""

SHORT_TOKENS = 1024
"""Who may take more than these is taken for one that thinks."""

TELLING = 20
"""Earlier votes by which the tokens of a reply are known."""

REPLIES = f"""
    select judge, avg(completion_tokens) from votes join (
        select distinct ballot_id, judge from ballots where prompt = ?
    ) using (ballot_id) group by judge having count(completion_tokens) >= {TELLING}
"""  # noqa: S608 - a constant of this file

ASK_ABOVE_USD = 1.0


class Cost(NamedTuple):
    """What asking one judge would take."""

    judge: str
    cast: int
    calls: int
    tokens: int
    reply_tokens: int
    usd: float | None
    most_usd: float | None
    """If every reply is as long as it may get."""
    told: bool = False
    """Whether earlier votes tell how long replies are."""

    @property
    def expected_usd(self) -> float | None:
        """What to expect: the most, unless earlier votes tell better."""
        return self.usd if self.told else self.most_usd


def show_plan(study: Study, warehouse: Path | None) -> None:
    """Print ballots, tokens and cost per judge, and the smallest shift that can be seen."""
    study = study.at(datetime.now(UTC))
    pairs, perturbed = _prepare(study)
    console = Console()
    costs = _estimate(study, pairs, warehouse)
    console.print(_cost_table(costs))
    for line in _hindrances(study, costs):
        console.print(line, markup=False, highlight=False)
    console.print(_sight(pairs, perturbed, study))
    console.print(_advice(pairs, study))
    notes = (
        f"Tokens are estimated: {CHARACTERS_PER_TOKEN} characters each; a reply takes the mean of "
        f"this judge's earlier ones, if there are {TELLING}. Else it is a guess: {THINKING_TOKENS} "
        f"for judges that reason or may take over {SHORT_TOKENS}, {REPLY_TOKENS} for others. "
        "At most: if every reply is as long as max_tokens allow."
    )
    if study.stop != "none" or study.probe:
        notes += " Votes that prove not to be needed are not asked, so it may be less."
    console.print(notes, style="dim")


def confirm_spending(study: Study, warehouse: Path | None) -> None:
    """Ask before more is spent than ``ASK_ABOVE_USD``, or an amount that nobody knows.

    Raises
    ------
    ValueError
        If nobody is there to ask, or the answer is no.
    """
    if study.budget_usd is not None or all(provider_of(j).simulated for j in study.judges):
        return
    costs = _estimate(study.at(datetime.now(UTC)), _prepare(study)[0], warehouse)
    due = [cost for cost in costs if cost.calls]
    total = sum(cost.expected_usd or 0.0 for cost in due)
    unknown = [cost.judge for cost in due if cost.expected_usd is None]
    if total <= ASK_ABOVE_USD and not unknown:
        return
    about = sum(cost.usd or 0.0 for cost in due)
    text = f"{sum(cost.calls for cost in due)} calls for about {about:.2f} USD"
    if all(cost.told for cost in due):
        text += ", as earlier votes tell"
    else:
        text += f", at most {sum(cost.most_usd or 0.0 for cost in due):.2f} USD"
    text += f", and an unknown amount for {', '.join(unknown)}" if unknown else ""
    if sys.stdin.isatty() and click.confirm(f"This makes {text}. Go on?"):
        return
    raise ValueError(
        f"{text}: nothing was asked. Say --yes to spend it, or cap it with --budget USD "
        "(a price or bound that is unknown is given as usd_per_million and max_tokens in the "
        "provider's file)."
    )


def _hindrances(study: Study, costs: list[Cost]) -> Iterator[str]:
    """Say what a run would be refused for, and whether the budget suffices."""
    refusals = [text for text in (study.unready(), unbounded(study)) if text]
    yield from (f"`voirdire audit` would not begin: {text}" for text in refusals)
    if study.budget_usd is not None and not unbounded(study):
        sums = (_sum([c.usd for c in costs]), _sum([c.most_usd for c in costs]))
        yield budget_line(study.budget_usd, *sums)


def _prepare(study: Study) -> tuple[DataFrame[Pairs], DataFrame[PerturbedAnswers]]:
    questions, answers, versions = import_dataset(study.dataset, study.folder, study.limit)
    perturbed = PerturbedAnswers.of(
        pl.concat(
            perturb(questions, answers, versions, name, study.seed) for name in study.perturbations
        )
    )
    table = perturbation_table(study.perturbations)
    return pair_up(
        questions, answers, perturbed, table, study.checks, replicates=study.replicates
    ), perturbed


def _estimate(study: Study, pairs: DataFrame[Pairs], warehouse: Path | None) -> list[Cost]:
    design = Design(study.votes_per_pair, study.mode, study.wave, study.seed)
    dropped = dropped_params(study.judges, study.prompt)
    ballots = draw_ballots(pairs, judge_table(study.judges), study.prompt, design, dropped)
    path = Path(warehouse or default_path())
    cast, told = Votes.empty(), {}
    if path.is_file():
        cast = Warehouse(path).read(Votes, among=ballots.select("ballot_id"))
        told = dict(Warehouse(path).query(REPLIES, [study.prompt]).iter_rows())
    return _costs(ballots, cast, pairs, study.prompt, told)


def _costs(
    ballots: DataFrame[Ballots],
    cast: DataFrame[Votes],
    pairs: DataFrame[Pairs],
    prompt: str,
    told: dict[str, float],
) -> list[Cost]:
    """Return the cost of each judge; ``told`` are the mean tokens of earlier replies."""
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
            cast=pl.col("known").sum(),
            calls=(~pl.col("known")).sum(),
            characters=pl.col("characters").filter(~pl.col("known")).sum(),
        )
        .sort("judge")
    )
    return [_cost(**row, told=told.get(row["judge"])) for row in asked.iter_rows(named=True)]


def _cost(judge: str, cast: int, calls: int, characters: int, told: float | None) -> Cost:
    asked, simulated = JUDGES[judge], provider_of(judge).simulated
    tokens = characters // CHARACTERS_PER_TOKEN
    replies = round(calls * (_guess(asked) if told is None else told))
    longest = 0 if simulated else most_tokens(asked)
    price = price_of(asked, simulated=simulated)
    usd = most = None
    if price is not None:
        usd = tokens * price.prompt + replies * price.completion
        if longest is not None:
            most = tokens * price.prompt + calls * longest * price.completion
        elif not calls or not price.completion:
            most = usd
    return Cost(judge, cast, calls, tokens, replies, usd, most, told is not None)


def _guess(judge: Judge) -> int:
    """Return how many tokens a reply may take, where nobody knows."""
    longest = most_tokens(judge)
    thinks = judge.params.get("reasoning_effort", "none") not in {"none", "minimal"}
    if thinks or (longest or 0) > SHORT_TOKENS:
        return min(THINKING_TOKENS, longest or THINKING_TOKENS)
    return min(REPLY_TOKENS, longest or REPLY_TOKENS)


def _cost_table(costs: list[Cost]) -> object:
    rows: list[tuple[Any, ...]] = [
        (*cost[:5], _usd([cost.usd]), _usd([cost.most_usd])) for cost in costs
    ]
    sums = [sum(row[column] for row in rows) for column in range(1, 5)]
    totals = _usd([cost.usd for cost in costs]), _usd([cost.most_usd for cost in costs])
    rows.append(("all", *sums, *totals))
    columns = ("judge", "cast", "calls", "tokens in", "out", "USD", "at most")
    return plain_table(columns, rows, "What would be asked")


def _usd(costs: list[float | None]) -> str:
    total = _sum(costs)
    return "unknown" if total is None else f"{total:.2f}"


def _sum(costs: list[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


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
