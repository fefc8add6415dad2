"""Power analysis of a study: the smallest detectable shift, and cheaper designs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from flows.cli.terminal import number, plain_table
from flows.studies import Study
from schemas.curation import PerturbedAnswers
from schemas.judging import Pairs
from tasks.inference.linearised_errors import TOO_UNEVEN, correction, least_df, too_few
from tasks.inference.power_analysis import (
    ASR_VOTES,
    SPREADS,
    rescaled_sigma,
    samples_needed,
    samples_needed_dasr,
    share_used,
    shift_sigma,
    smallest_dasr,
    smallest_drift,
    smallest_effect,
)
from tasks.kit.defaults import ALPHA, limits
from tasks.statistics.sequential_looks import BOUNDS
from warehouse.peek import default_path
from warehouse.store import Warehouse

ENOUGH = 30
"""Questions of earlier shifts by which a judge's spread is known to 13 %."""

SCREEN, PAPER = 2, 6
"""Votes per pair of the two designs that are held against each other."""

DESIGNS = (2, 4, 6)
"""Votes per pair for which the number of samples is shown."""

ARMS = 3
"""Control, experimental and sham."""

EARLIER = f"""
    with shifted as (
        select *, experimental_score - if(has_sham, sham_score, control_score) as d from shifts
        where prompt = ? and mode = 'balanced'
    ),
    apart as (
        select *, d - avg(d) over (partition by study, judge, dataset, wave, perturbation) as off
        from shifted
    ),
    questions as (
        select study, judge, dataset, wave, perturbation, "cluster", count(d) as samples,
            sum(off) as total, min(votes) as fewest, max(votes) as most,
        from apart group by all
    ),
    cells as (
        select judge, min(fewest) as votes, count(*) - 1 as freedom, sum(samples) as shifts,
            count(*) * sum(total ** 2) / sum(samples) as squares,
        from questions where samples > 0
        group by study, judge, dataset, wave, perturbation
        having count(*) > 1 and min(fewest) = max(most)
    )
    select judge, votes, sqrt(sum(squares) / sum(freedom)) as sigma, sum(shifts)::integer as shifts,
    from cells group by judge, votes having sum(freedom) >= {ENOUGH} and sum(squares) > 0
    order by all
"""  # noqa: S608 - a constant of this file


class Spread(NamedTuple):
    """The standard deviation of a judge's shifts, and how it is known.

    Of earlier shifts it is that of independent samples whose mean would be as uncertain as theirs:
    samples of one question tell less than as many questions.
    """

    sigma: float
    source: str


class DetectableEffect(NamedTuple):
    """Smallest detectable shift of one judge under a design."""

    judge: str
    spread: Spread
    smallest: float
    needed: int
    screen: float
    """The smallest shift with two votes per pair and as many calls."""
    paper: float
    """The same with six."""


def detectable_effects(
    study: Study, samples: int, spreads: dict[str, Spread]
) -> list[DetectableEffect]:
    """Return the smallest detectable shift of each judge with ``samples`` per perturbation."""
    votes, minimum = study.votes_per_pair, study.thresholds.minimum_shift
    found = []
    for judge in study.judges:
        spread = spreads.get(judge, Spread(shift_sigma(votes), "typical judge"))
        calls = samples * votes
        seen = {
            v: smallest_effect(calls // v, rescaled_sigma(spread.sigma, votes, v))
            for v in (SCREEN, PAPER)
        }
        found.append(
            DetectableEffect(
                judge,
                spread,
                smallest_effect(samples, spread.sigma) or 1.0,
                samples_needed(minimum, spread.sigma) or 0,
                seen[SCREEN] or 1.0,
                seen[PAPER] or 1.0,
            )
        )
    return found


def earlier_spreads(study: Study, warehouse: Path | None) -> dict[str, Spread]:
    """Return what earlier votes on the same judge prompt tell of each judge."""
    path = Path(warehouse or default_path())
    if not path.is_file():
        return {}
    told: dict[str, Spread] = {}
    rows = Warehouse(path).query(EARLIER, [study.prompt]).rows()
    # The design nearest to the study's comes last, so it stays.
    for judge, votes, sigma, shifts in sorted(
        rows, key=lambda row: -abs(row[1] - study.votes_per_pair)
    ):
        rescaled = rescaled_sigma(sigma, votes, study.votes_per_pair)
        at = "" if votes == study.votes_per_pair else f" at {votes} votes"
        told[judge] = Spread(rescaled, f"{shifts} earlier shifts{at}")
    return told


def sample_table(
    pairs: DataFrame[Pairs], perturbed: DataFrame[PerturbedAnswers], study: Study
) -> tuple[object, dict[str, int]]:
    """Lay out how many samples each perturbation has; return those that its endpoint rests on."""
    rows: list[tuple[Any, ...]] = []
    seen: dict[str, int] = {}
    for name in study.asked():
        arms = pairs.filter(pl.col("perturbation") == name)
        samples = arms.filter(pl.col("arm") == "experimental").height
        shams = arms.filter(pl.col("arm") == "sham").height
        dropped = perturbed.filter(pl.col("perturbation") == name).height - samples
        rows.append((name, samples, shams, dropped))
        # The primary endpoint is over the sham where there is one.
        seen[name] = shams or samples
    columns = ("perturbation", "samples", "with sham", "dropped")
    return plain_table(columns, rows, "Samples per perturbation"), seen


def left_out_line(samples: dict[str, int], perturbed: DataFrame[PerturbedAnswers]) -> str | None:
    """Name the perturbations without samples and why; null if each has some, or none has."""
    empty = [name for name, number in samples.items() if not number]
    if not empty or len(empty) == len(samples):
        return None
    reasons = []
    for name in empty:
        failures = perturbed.filter(pl.col("perturbation") == name)["failure"].drop_nulls()
        frequent = failures.mode().sort().to_list() or ["the dataset has no answers"]
        reasons.append(f"{name} ({frequent[0]})")
    return f"Left out, without a sample: {', '.join(reasons)}."


def detectable_table(rows: list[DetectableEffect], samples: int) -> object:
    """Lay out what the design sees of each judge; fits 100 columns."""
    columns = (
        "judge",
        "spread",
        "known from",
        "smallest",
        f"needs for {_plain(limits().minimum_shift)}",
        f"{SCREEN} votes",
        f"{PAPER} votes",
    )
    body = [
        (
            row.judge,
            number(row.spread.sigma),
            row.spread.source,
            _three(row.smallest),
            row.needed,
            _three(row.screen),
            _three(row.paper),
        )
        for row in rows
    ]
    return plain_table(
        columns, body, f"Smallest detectable shift with {samples} samples (80 % power)"
    )


def effect_table(rows: list[DetectableEffect], votes: int, effect: float) -> object:
    """Lay out how many samples, and calls in all arms, it takes to see ``effect`` of each judge."""
    body = []
    for row in rows:
        sigmas = [rescaled_sigma(row.spread.sigma, votes, v) for v in DESIGNS]
        needed = [samples_needed(effect, sigma) or 0 for sigma in sigmas]
        asked = [n * v * ARMS for n, v in zip(needed, DESIGNS, strict=True)]
        body.append((row.judge, *(x for both in zip(needed, asked, strict=True) for x in both)))
    columns = ("judge", *(text for v in DESIGNS for text in (f"{v} votes", "calls")))
    return plain_table(
        columns, body, f"Samples of a perturbation to see a shift of {_plain(effect)} (80 % power)"
    )


def effect_advice(samples: int, votes: int, effect: float) -> str:
    """Say what the table of an effect counts, and what the same effect takes as a dASR."""
    needed = samples_needed_dasr(effect) or 0
    return (
        f"The study has {samples} at {votes} votes per pair. Calls are those of one perturbation "
        f"in {ARMS} arms; of several, the control is asked once. Seen as a dASR of that size, at "
        f"{ASR_VOTES} votes, it takes about {needed} samples of a typical judge, "
        f"{needed * ASR_VOTES * ARMS} calls."
    )


def questions_of(pairs: DataFrame[Pairs]) -> int:
    """Return how many questions the samples are of, where a perturbation has fewest."""
    asked = _asked(pairs).group_by("perturbation").agg(pl.col("cluster").n_unique())
    return min(asked["cluster"].to_list(), default=0)


def freedom_of(pairs: DataFrame[Pairs]) -> float | None:
    """Return the degrees of freedom of the questions, where a perturbation has fewest.

    All but one of the questions if each has the same number of samples; None if none can be told.
    """
    sizes = _asked(pairs).group_by("perturbation", "cluster").agg(pl.col("sample").n_unique())
    found = [
        float(correction(part["sample"].cast(pl.Float64).to_numpy()).df)
        for part in sizes.partition_by("perturbation")
        if part.height > 1
    ]
    return min(found, default=None)


def _asked(pairs: DataFrame[Pairs]) -> pl.DataFrame:
    """Keep the arm that each perturbation's endpoint rests on: the sham's where there is one."""
    asked = pairs.filter(pl.col("arm").is_in(["experimental", "sham"]))
    shammed = (pl.col("arm") == "sham").any().over("perturbation")
    return asked.filter(~shammed | (pl.col("arm") == "sham"))


def advice(
    rows: list[DetectableEffect],
    samples: int,
    study: Study,
    questions: int | None = None,
    df: float | None = None,
) -> Iterator[str]:
    """Say whether the smallest shift that matters can be seen, and what the columns mean."""
    if not samples:
        yield "The study has no samples."
        return
    minimum, fewest = study.thresholds.minimum_shift, study.thresholds.fewest_questions
    if questions is not None and too_few(questions, df):
        needed = max((row.needed for row in rows), default=0)
        why = (
            f"below {fewest} independent questions nothing is concluded, and the "
            f"perturbation with fewest has {questions}"
            if questions < fewest
            else f"{TOO_UNEVEN}, which leaves {df:.1f} degrees of freedom where a finding "
            f"takes {least_df():.0f}"
        )
        yield (
            f"No shift can be seen, however large: {why}. The smallest "
            f"shift that matters ({_plain(minimum)}) takes about {needed} samples of a "
            f"perturbation with {study.votes_per_pair} votes per pair (80 % power; of the judge "
            "that takes most)."
        )
        return
    blind = [row for row in rows if row.smallest > minimum]
    if not blind:
        yield f"The design can detect the smallest shift that matters ({_plain(minimum)})."
    else:
        whom = "any judge" if len(blind) == len(rows) else ", ".join(row.judge for row in blind)
        yield (
            f"The smallest shift that matters ({_plain(minimum)}) cannot be seen of {whom}: with "
            f"{study.votes_per_pair} votes per pair that takes about "
            f"{max(row.needed for row in blind)} samples."
        )
    text = (
        f"Needs: samples of a perturbation to see a shift of {_plain(minimum)}. {SCREEN} votes, "
        f"{PAPER} votes: the smallest shift if the same number of calls went to so many votes per "
        "pair."
    )
    if any(row.spread.source == "typical judge" for row in rows):
        sharp, noisy = (
            _three(smallest_effect(samples, shift_sigma(study.votes_per_pair, kind)) or 1.0)
            for kind in SPREADS
            if kind != "typical"
        )
        text += f" Of a sharp judge one sees {sharp}, of a noisy one {noisy}."
    yield text
    cells = len(study.judges) * len(study.asked())
    text = f"Power .80 is at a raw p of {_plain(ALPHA)}"
    if cells > 1:
        text += (
            f"; a finding needs a p that is below it when adjusted over the study's {cells} cells, "
            "so more samples where few of them are biased"
        )
    yield f"{text}."
    guessed = [row.judge for row in rows if row.spread.source == "typical judge"]
    if questions and questions < samples and guessed:
        whom = "every judge" if len(guessed) == len(rows) else ", ".join(guessed)
        yield (
            f"The {samples} samples are of {questions} questions: what is said of {whom} holds if "
            "samples of a question were independent. Earlier shifts tell how far they are not."
        )
    one, two = (f"{100 * share_used(times, BOUNDS):.0f} %" for times in (1, 2))
    text = (
        "Stopping early: looks at 1/3, 2/3 and all samples "
        f"(`sequential_stop`) take {one} of the samples on average if the true shift is the "
        f"smallest, {two} if it is twice that; bets after each sample (`e_stop`) may be looked at "
        "any time, and find small shifts half as often (docs/operating_characteristics.md)."
    )
    if study.votes_per_pair == ASR_VOTES:
        text += f" dASR of a typical judge: {_three(smallest_dasr(samples) or 1.0)}."
    yield text
    yield _drift_advice(samples, study)


def _drift_advice(samples: int, study: Study) -> str:
    """Say which change between two waves can be seen, alone and within the budget of alerts."""
    # Of each perturbation the shift and the dASR; of the judge its position gap and its verdicts.
    cells = len(study.judges) * (2 * len(study.asked()) + 2)
    votes, nights = study.votes_per_pair, study.thresholds.nights_per_false_alert
    alone, budgeted = (
        _three(smallest_drift(samples, votes, alpha=alpha) or 1.0)
        for alpha in (ALPHA, 1 / nights / cells)
    )
    return (
        "Drift: of a typical judge, one wave against another, one sees a change of shift of "
        f"{alone} at {_plain(ALPHA)} in a cell looked at alone, and of {budgeted} where one false "
        f"alert in {nights} nights is shared by the {cells} cells of this study."
    )


def _plain(value: float) -> str:
    """Write a number that was given: ``.05``."""
    return f"{value:.3g}".removeprefix("0")


def _three(value: float) -> str:
    return f"{min(value, 1.0):.3f}".removeprefix("0")
