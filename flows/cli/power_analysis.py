"""Power analysis of a study: the smallest detectable shift, and cheaper designs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from flows.cli.printing.terminal import number, plain_table
from flows.studies import Study
from schemas.curation import PerturbedAnswers
from schemas.judging import Pairs
from schemas.keys import unit_name
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
"""Degrees of freedom of earlier shifts at which a judge's spread is known to 13 %."""

SCREEN, PAPER = 2, 6
"""Votes per pair of the two designs that are compared."""

DESIGNS = (2, 4, 6)
"""Votes per pair for which the number of samples is shown."""

ARMS = 3
"""Control, experimental and sham."""

EARLIER = f"""
    with shifted as (
        select *, experimental_score - if(has_sham, sham_score, control_score) as d from shifts
        where prompt in $prompts and mode = 'balanced'
    ),
    centred as (
        select *, d - avg(d) over (
            partition by study, judge, prompt, dataset, wave, perturbation
        ) as off
        from shifted
    ),
    questions as (
        select study, judge, prompt, dataset, wave, perturbation, "cluster", count(d) as samples,
            sum(off) as total, min(votes) as fewest, max(votes) as most,
        from centred group by all
    ),
    cells as (
        select judge, prompt, min(fewest) as votes, count(*) - 1 as freedom, sum(samples) as shifts,
            count(*) * sum(total ** 2) / sum(samples) as squares,
        from questions where samples > 0
        group by study, judge, prompt, dataset, wave, perturbation
        having count(*) > 1 and min(fewest) = max(most)
    )
    select judge, prompt, votes, sqrt(sum(squares) / sum(freedom)) as sigma,
        sum(shifts)::integer as shifts,
    from cells group by judge, prompt, votes having sum(freedom) >= {ENOUGH} and sum(squares) > 0
    order by all
"""  # noqa: S608 - a constant of this file


class Spread(NamedTuple):
    """The standard deviation of a judge's shifts, and where it comes from.

    From earlier shifts, it is the standard deviation that independent samples with the same
    uncertainty of the mean would have: samples of the same question are correlated.
    """

    sigma: float
    source: str


class DetectableEffect(NamedTuple):
    """Smallest detectable shift of one judge under a design."""

    judge: str
    """With its prompt if the study has several."""
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
    units = [
        unit_name(judge, prompt, study.prompts)
        for judge in study.judges
        for prompt in study.prompts
    ]
    for judge in units:
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
    """Return the spread of each judge's earlier shifts, by judge prompt if there are several."""
    path = Path(warehouse or default_path())
    if not path.is_file():
        return {}
    spreads: dict[str, Spread] = {}
    rows = Warehouse(path).query(EARLIER, {"prompts": study.prompts}).rows()
    # The design nearest to the study's comes last, so it stays.
    for judge, prompt, votes, sigma, shifts in sorted(
        rows, key=lambda row: -abs(row[2] - study.votes_per_pair)
    ):
        rescaled = rescaled_sigma(sigma, votes, study.votes_per_pair)
        at = "" if votes == study.votes_per_pair else f" at {votes} votes"
        unit = unit_name(judge, prompt, study.prompts)
        spreads[unit] = Spread(rescaled, f"{shifts} earlier shifts{at}")
    return spreads


def sample_table(
    pairs: DataFrame[Pairs], perturbed: DataFrame[PerturbedAnswers], study: Study
) -> tuple[object, dict[str, int]]:
    """Lay out the samples per perturbation; also return how many the primary endpoint uses."""
    rows: list[tuple[Any, ...]] = []
    seen: dict[str, int] = {}
    for name in study.asked():
        arms = pairs.filter(pl.col("perturbation") == name)
        samples = arms.filter(pl.col("arm") == "experimental").height
        shams = arms.filter(pl.col("arm") == "sham").height
        dropped = perturbed.filter(pl.col("perturbation") == name).height - samples
        rows.append((name, samples, shams, dropped))
        # The primary endpoint compares with the sham where there is one.
        seen[name] = shams or samples
    columns = ("perturbation", "samples", "with sham", "dropped")
    return plain_table(columns, rows, "Samples per perturbation"), seen


def left_out_line(samples: dict[str, int], perturbed: DataFrame[PerturbedAnswers]) -> str | None:
    """Name the perturbations without samples, and why; None if all or none have samples."""
    empty = [name for name, number in samples.items() if not number]
    if not empty or len(empty) == len(samples):
        return None
    reasons = []
    for name in empty:
        failures = perturbed.filter(pl.col("perturbation") == name)["failure"].drop_nulls()
        frequent = failures.mode().sort().to_list() or ["the dataset has no answers"]
        reasons.append(f"{name} ({frequent[0]})")
    return f"Left out because they have no samples: {', '.join(reasons)}."


def detectable_table(rows: list[DetectableEffect], samples: int) -> object:
    """Lay out the smallest detectable shift of each judge; fits 100 columns."""
    columns = (
        "judge",
        "spread",
        "source",
        "smallest",
        f"samples for {_plain(limits().minimum_shift)}",
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
    """Lay out the samples, and the calls in all arms, needed to detect ``effect`` per judge."""
    body = []
    for row in rows:
        sigmas = [rescaled_sigma(row.spread.sigma, votes, v) for v in DESIGNS]
        needed = [samples_needed(effect, sigma) or 0 for sigma in sigmas]
        asked = [n * v * ARMS for n, v in zip(needed, DESIGNS, strict=True)]
        body.append((row.judge, *(x for both in zip(needed, asked, strict=True) for x in both)))
    columns = ("judge", *(text for v in DESIGNS for text in (f"{v} votes", "calls")))
    return plain_table(
        columns, body, f"Samples needed to detect a shift of {_plain(effect)} (80 % power)"
    )


def effect_advice(samples: int, votes: int, effect: float) -> str:
    """Explain the table of an effect, and say what detecting it as a dASR would take."""
    needed = samples_needed_dasr(effect) or 0
    return (
        f"The study has {samples} samples at {votes} votes per pair. Calls are those of one "
        f"perturbation in {ARMS} arms; several perturbations share the control arm. To detect a "
        f"dASR of that size at {ASR_VOTES} votes per pair takes about {needed} samples of a "
        f"typical judge, {needed * ASR_VOTES * ARMS} calls."
    )


def questions_of(pairs: DataFrame[Pairs]) -> int:
    """Return the smallest number of questions with samples of one perturbation."""
    asked = _asked(pairs).group_by("perturbation").agg(pl.col("cluster").n_unique())
    return min(asked["cluster"].to_list(), default=0)


def freedom_of(pairs: DataFrame[Pairs]) -> float | None:
    """Return the smallest degrees of freedom of one perturbation; None if none is defined.

    They are the number of questions minus one if all questions have equally many samples.
    """
    sizes = _asked(pairs).group_by("perturbation", "cluster").agg(pl.col("sample").n_unique())
    found = [
        float(correction(part["sample"].cast(pl.Float64).to_numpy()).df)
        for part in sizes.partition_by("perturbation")
        if part.height > 1
    ]
    return min(found, default=None)


def _asked(pairs: DataFrame[Pairs]) -> pl.DataFrame:
    """Keep the arm that the primary endpoint compares with: the sham where there is one."""
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
    """Say whether the smallest relevant shift can be detected, and explain the columns."""
    if not samples:
        yield "The study has no samples."
        return
    minimum, fewest = study.thresholds.minimum_shift, study.thresholds.fewest_questions
    if questions is not None and too_few(questions, df):
        needed = max((row.needed for row in rows), default=0)
        why = (
            f"a finding needs {fewest} independent questions, and one perturbation has "
            f"only {questions}"
            if questions < fewest
            else f"{TOO_UNEVEN} ({df:.1f} degrees of freedom, and a finding needs {least_df():.0f})"
        )
        yield (
            f"No shift can be detected, however large: {why}. To detect the smallest relevant "
            f"shift ({_plain(minimum)}) takes about {needed} samples per perturbation with "
            f"{study.votes_per_pair} votes per pair (80 % power, for the noisiest judge)."
        )
        return
    blind = [row for row in rows if row.smallest > minimum]
    if not blind:
        yield f"The design can detect the smallest relevant shift ({_plain(minimum)})."
    else:
        judges = "any judge" if len(blind) == len(rows) else ", ".join(row.judge for row in blind)
        yield (
            f"The design cannot detect the smallest relevant shift ({_plain(minimum)}) for "
            f"{judges}: with {study.votes_per_pair} votes per pair that takes about "
            f"{max(row.needed for row in blind)} samples."
        )
    text = (
        "smallest: smallest detectable shift. "
        f"samples for {_plain(minimum)}: samples per perturbation needed to detect a shift of "
        f"{_plain(minimum)} with 80 % power, given the judge's spread over all perturbations (the "
        "questions that an audit says would decide are what its undecided gates lack, each with "
        f"its own interval). {SCREEN} votes, {PAPER} votes: smallest detectable shift with the "
        "same number of calls at that many votes per pair."
    )
    if any(row.spread.source == "typical judge" for row in rows):
        sharp, noisy = (
            _three(smallest_effect(samples, shift_sigma(study.votes_per_pair, kind)) or 1.0)
            for kind in SPREADS
            if kind != "typical"
        )
        text += (
            f" The smallest shift is {sharp} for a judge with little noise and {noisy} for a "
            "noisy one."
        )
    yield text
    cells = len(study.judges) * len(study.prompts) * len(study.asked())
    text = f"The power of 80 % refers to a raw p-value below {_plain(ALPHA)}."
    if cells > 1:
        text += (
            f" A finding needs the p-value adjusted over the study's {cells} cells to be below "
            f"{_plain(ALPHA)}, which takes more samples if few of the cells are biased."
        )
    yield text
    guessed = [row.judge for row in rows if row.spread.source == "typical judge"]
    if questions and questions < samples and guessed:
        judges = "every judge" if len(guessed) == len(rows) else ", ".join(guessed)
        yield (
            f"The {samples} samples come from {questions} questions. The figures for {judges} "
            "assume that samples of the same question are independent; once there are votes, "
            "their correlation is taken into account."
        )
    one, two = (f"{100 * share_used(times, BOUNDS):.0f} %" for times in (1, 2))
    text = (
        "Stopping a study early: with looks at 1/3, 2/3 and all samples (`sequential_stop`) it "
        f"takes {one} of the samples on average if the true shift is the smallest detectable one, "
        f"{two} if it is twice as large. The test by betting (`e_stop`) allows a look after each "
        "sample, but detects small shifts half as often (operating-characteristics.md)."
    )
    if study.votes_per_pair == ASR_VOTES:
        smallest = _three(smallest_dasr(samples) or 1.0)
        text += f" Smallest detectable dASR of a typical judge: {smallest}."
    yield text
    yield _drift_advice(samples, study)


def _drift_advice(samples: int, study: Study) -> str:
    """Say which change between two waves can be detected, alone and within the alert budget."""
    # Shift and dASR of each perturbation; position gap and verdicts of each judge.
    cells = len(study.judges) * len(study.prompts) * (2 * len(study.asked()) + 2)
    votes, nights = study.votes_per_pair, study.thresholds.nights_per_false_alert
    alone, budgeted = (
        _three(smallest_drift(samples, votes, alpha=alpha) or 1.0)
        for alpha in (ALPHA, 1 / nights / cells)
    )
    return (
        "Drift: comparing two waves of a typical judge detects a change of the shift by "
        f"{alone} in a single cell (p below {_plain(ALPHA)}), and by {budgeted} if one false alert "
        f"in {nights} nights is allowed over all {cells} cells of this study."
    )


def _plain(value: float) -> str:
    """Format a given number as it was written: ``.05``."""
    return f"{value:.3g}".removeprefix("0")


def _three(value: float) -> str:
    return number(min(value, 1.0), 3)
