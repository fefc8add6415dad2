"""Power analysis of a study: the smallest detectable shift, and cheaper designs."""

import math
from bisect import bisect_left
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from flows.cli.meanings import explained_sources
from flows.cli.printing.tables import plain_table
from flows.cli.printing.terminal import number
from flows.studies import Study
from schemas.curation import PerturbedAnswers
from schemas.judging import Pairs
from schemas.keys import unit_name
from tasks.inference.intervals import proportions, table_moments
from tasks.inference.linearised_errors import TOO_UNEVEN, correction, least_df, too_few
from tasks.inference.power_analysis import (
    ASR_VOTES,
    FLIPS,
    ICC,
    pooled_spread,
    rescaled_sigma,
    samples_needed,
    samples_needed_dasr,
    shift_sigma,
    smallest_dasr,
    smallest_drift,
    smallest_effect,
)
from tasks.kit.defaults import ALPHA
from tasks.perturb import NOT_MADE
from tasks.perturbations import perturbation_named
from tasks.prompting.prompt import Prompt
from tasks.prompts import prompt_of
from tasks.reporting.wording import count, thousands
from warehouse.store import Warehouse

ENOUGH = 30
"""Degrees of freedom of earlier shifts at which a judge's spread is known to 13 %."""
OTHER_DESIGNS = (2, 6)
"""Votes per pair of the designs that the study's is compared with."""
DESIGNS = (2, 4, 6)
"""Votes per pair for which the number of samples is shown."""
MOST_QUESTIONS = 100_000
"""Largest number of questions that is named for the gate validity."""
ARMS = 3
"""Control, experimental and sham."""
GUESSED = "typical judge"
EASY = "easy pairs"
TYPICAL = {"score": "typical", "sd": "grades", "share": "passes", "labels": "passes"}
"""Unit of an endpoint -> the assumed spread."""
UNITS = {"score": "", "sd": " (sd)", "share": " (pass rate)", "labels": " (share of labels)"}
"""Unit of an endpoint -> how titles name it."""

EARLIER = """
    select e.judge, e.prompt, e.votes_per_pair, f.unit, e.perturbation, e.n, e.df, e.low, e.high,
        e.standard_error, f.by_logits
    from findings as f join estimates as e
        using (study, dataset, judge, prompt, wave, mode, perturbation, statistic)
    where f.prompt in $prompts and f.kind = $kind and f.mode <> 'paper' and e.subgroup = ''
        and coalesce(e.standard_error, e.high - e.low) > 0
    qualify row_number() over (
        partition by e.dataset, e.judge, e.prompt, e.votes_per_pair, f.unit, e.perturbation
        order by e.n desc, e.study, e.wave
    ) = 1
"""
"""The primary endpoints of each judge.

Studies and waves of a dataset share samples, and often votes: of each perturbation, only the result
with most samples counts. Flaws shift a judge's score by more on some questions than on others, so
they count only in a study that has nothing else.
"""
DESIGN = ("judge", "prompt", "votes_per_pair", "unit")


class JudgeSpread(NamedTuple):
    """The standard deviation of a judge's shifts, as of independent samples, and its source."""

    sigma: float
    source: str
    easy: bool = False
    """Whether pairs were too easy to move it, so that the effect in logits decides."""


class DetectableEffect(NamedTuple):
    """Smallest detectable shift of one judge under a design."""

    judge: str  # with its prompt if the study has several
    unit: str
    spread: JudgeSpread
    minimum: float  # smallest relevant shift
    smallest: float
    needed: int  # samples that detect the smallest relevant shift


def unit_of(prompt: Prompt) -> str:
    """Return a prompt's primary endpoint: score, sd of grades, share of passes or of labels."""
    if prompt.kind in {"pair", "labels"}:
        return "score" if prompt.kind == "pair" else "labels"
    return "sd" if any(prompt.grading.scales.values()) else "share"


def detectable_effects(
    study: Study, samples: int, spreads: dict[str, JudgeSpread]
) -> list[DetectableEffect]:
    """Return the smallest detectable shift of each judge with ``samples`` per perturbation."""
    votes, limit = study.votes_per_pair, study.thresholds
    minima = {
        "score": limit.minimum_shift,
        "sd": limit.minimum_rating_shift,
        "share": limit.minimum_pass_rate_shift,
        "labels": limit.minimum_pass_rate_shift,
    }
    found = []
    for judge, prompt in product(study.judges, study.prompts):
        unit = unit_of(prompt_of(prompt))
        name, minimum = unit_name(judge, prompt, study.prompts), minima[unit]
        spread = spreads.get(name, JudgeSpread(shift_sigma(votes, TYPICAL[unit]), GUESSED))
        smallest = smallest_effect(samples, spread.sigma) or 1.0
        needed = samples_needed(minimum, spread.sigma) or 0
        found.append(DetectableEffect(name, unit, spread, minimum, smallest, needed))
    return found


def earlier_spreads(study: Study, warehouse: Path | None) -> dict[str, JudgeSpread]:
    """Return the spread of each judge's earlier shifts, by judge prompt if there are several."""
    store = Warehouse(warehouse)
    if not store.path.is_file():
        return {}
    spreads: dict[str, JudgeSpread] = {}
    kinds = {perturbation_named(name).kind for name in study.asked()}
    kind = "promote" if "promote" in kinds else "detract"
    own = study.votes_per_pair
    endpoints = store.query(EARLIER, {"prompts": study.prompts, "kind": kind})
    asked_now = endpoints.filter(pl.col("perturbation").is_in(study.asked()))
    pooled = pl.concat(
        pooled_spread(rows, DESIGN).with_columns(asked=pl.lit(value=asked))
        for asked, rows in ((False, endpoints), (True, asked_now))
    ).filter(pl.col("df") >= ENOUGH)
    # What stays comes last: the perturbations of the study, and the design nearest to its own.
    distance = (pl.col("votes_per_pair") - own).abs()
    ordered = pooled.sort("asked", -distance, *DESIGN).drop("df")
    for judge, prompt, votes, unit, sigma, shifts, easy, asked in ordered.rows():
        if unit != unit_of(prompt_of(prompt)).replace("labels", "share"):
            continue
        rescaled = rescaled_sigma(sigma, votes, own, TYPICAL[unit])
        at = "" if votes == own else f" at {count(votes, 'vote')}"
        what = EASY if easy else "earlier shifts" if asked else "shifts, other perturbations"
        name = unit_name(judge, prompt, study.prompts)
        spreads[name] = JudgeSpread(rescaled, f"{thousands(shifts)} {what}{at}", easy)
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
        needs = perturbation_named(name).needs if frequent[0] == NOT_MADE else ""
        reasons.append(f"{name} ({f'the template needs {needs}' if needs else frequent[0]})")
    return f"Left out because they have no samples: {', '.join(reasons)}."


def detectable_tables(rows: list[DetectableEffect], samples: int, votes: int) -> Iterator[object]:
    """Lay out the smallest detectable shift of each judge, a table per unit; fits 90 columns."""
    for unit, words in UNITS.items():
        own = [row for row in rows if row.unit == unit]
        if not own:
            continue
        columns = ["judge", "spread", "source", "smallest", f"samples for {_plain(own[0].minimum)}"]
        others = [v for v in OTHER_DESIGNS if v != votes and unit == "score"]
        body = []
        for row in own:
            sigma = row.spread.sigma
            cells = [row.judge, number(sigma), row.spread.source, _three(row.smallest), row.needed]
            for other in others:
                # With as many calls at another number of votes per pair.
                rescaled = rescaled_sigma(sigma, votes, other, TYPICAL[unit])
                cells.append(_three(smallest_effect(samples * votes // other, rescaled) or 1.0))
            body.append(cells)
        columns += [f"{other} votes" for other in others]
        title = f"Smallest detectable shift{words} with {count(samples, 'sample')} (80 % power)"
        yield plain_table(columns, body, title)


def effect_table(rows: list[DetectableEffect], votes: int, effect: float) -> object:
    """Lay out the samples, and the calls in all arms, needed to detect ``effect`` per judge."""
    body = []
    for row in rows:
        sigmas = [rescaled_sigma(row.spread.sigma, votes, v, TYPICAL[row.unit]) for v in DESIGNS]
        needed = [samples_needed(effect, sigma) or 0 for sigma in sigmas]
        asked = [n * v * ARMS for n, v in zip(needed, DESIGNS, strict=True)]
        body.append((row.judge, *(x for both in zip(needed, asked, strict=True) for x in both)))
    columns = ("judge", *(text for v in DESIGNS for text in (f"{v} votes", "calls")))
    units = " or ".join(filter(None, sorted({UNITS[row.unit].strip() for row in rows})))
    title = f"Samples needed to detect a shift of {_plain(effect)} {units}".rstrip()
    return plain_table(columns, body, f"{title} (80 % power)")


def effect_advice(rows: list[DetectableEffect], samples: int, votes: int, effect: float) -> str:
    """Explain the table of an effect, and say what detecting it as a dASR would take."""
    text = (
        f"The study has {count(samples, 'sample')} at {count(votes, 'vote')} per "
        f"{_asked_about(rows)}. Calls are those of one perturbation in {ARMS} arms; several "
        "perturbations share the control arm."
    )
    if any(row.unit == "score" for row in rows):
        needed = samples_needed_dasr(effect) or 0
        text += (
            f" To detect a dASR of that size at {ASR_VOTES} votes per pair takes about "
            f"{count(needed, 'sample')} of a typical judge, "
            f"{count(needed * ASR_VOTES * ARMS, 'call')}."
        )
    return text


def _asked_about(rows: list[DetectableEffect]) -> str:
    """Return what a vote is about: an answer if no judge compares two."""
    return "pair" if any(row.unit == "score" for row in rows) else "answer"


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


def validity_line(pairs: DataFrame[Pairs], most_invalid: float) -> str:
    """Say that valid replies alone do not pass the gate validity, and how many questions do.

    Empty if they do. A few invalid ones may pass: then replies count (methods.md, section 3).
    """
    sizes = pairs["cluster"].value_counts(sort=True)["count"].cast(pl.Float64).to_numpy()
    if sizes.size == 0:
        return ""
    reach = _most_unreadable(sizes)
    if reach <= most_invalid:
        return ""
    # Questions with as unequal numbers of pairs count as fewer questions.
    equal = bisect_left(
        range(MOST_QUESTIONS), 1, lo=2, key=lambda n: _most_unreadable(np.ones(n)) <= most_invalid
    )
    effective = sizes.sum() ** 2 / (sizes**2).sum()
    needed = math.ceil(equal * sizes.size / effective)
    return (
        "The gate validity is inconclusive if every reply is valid: the interval of the share of "
        f"invalid replies, which then counts {count(sizes.size, 'question')}, reaches to "
        f"{number(reach, 3)}; the limit is {number(most_invalid)}. "
        f"To pass takes {count(needed, 'question')}."
    )


def _most_unreadable(sizes: NDArray[np.float64]) -> float:
    """Return the upper limit of the share of invalid replies where none is, by question."""
    moments = table_moments(np.zeros((sizes.size, 1)), sizes[:, None])
    high = proportions(moments)["high"].item()
    return 1.0 if high is None else float(high)


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
    fewest = study.thresholds.fewest_questions
    votes = f"{count(study.votes_per_pair, 'vote')} per {_asked_about(rows)}"
    minima = " or ".join(dict.fromkeys(_plain(row.minimum) for row in rows))
    if questions is not None and too_few(questions, df):
        why = (
            f"a finding needs {fewest} independent questions, and the perturbation with the "
            f"fewest has {questions}"
            if questions < fewest
            else f"{TOO_UNEVEN} ({df:.1f} degrees of freedom, and a finding needs {least_df():.0f})"
        )
        yield (
            f"No shift can be detected, however large: {why}. To detect the smallest relevant "
            f"shift ({minima}) takes {_needed(rows)} per perturbation with {votes} (80 % "
            f"power).{_easy(rows)}"
        )
        return
    if not (blind := [row for row in rows if row.smallest > row.minimum]):
        yield f"The design can detect the smallest relevant shift ({minima}) with 80 % power."
    else:
        judges = "any judge" if len(blind) == len(rows) else ", ".join(row.judge for row in blind)
        yield (
            f"The design cannot detect the smallest relevant shift ({minima}) with 80 % power for "
            f"{judges}: with {votes} that takes {_needed(blind)}."
        )
    text = (
        "smallest: the smallest shift that this many samples per perturbation detect (raw p below "
        f"{_plain(ALPHA)}), given the judge's spread. samples for {minima}: how many detect that."
    )
    others = [v for v in OTHER_DESIGNS if v != study.votes_per_pair]
    if any(row.unit == "score" for row in rows):
        named = ", ".join(f"{v} votes" for v in others)
        text += f" {named}: the smallest shift with as many calls at that many votes per pair."
    if any(row.unit == "sd" for row in rows):
        text += " sd: standard deviations of the judge's grades in control."
    text += explained_sources(row.spread.source for row in rows) + _easy(rows)
    cells = len(study.judges) * len(study.prompts) * len(study.asked())
    if cells > 1:
        text += (
            f" A finding needs the p-value adjusted over the study's {cells} cells to be below "
            f"{_plain(ALPHA)}, which takes more samples if few of the cells are biased."
        )
    yield text
    yield from _typical(rows, samples, study.votes_per_pair, questions)
    if study.votes_per_pair == ASR_VOTES and any(row.unit == "score" for row in rows):
        smallest = _three(smallest_dasr(samples) or 1.0)
        yield f"Smallest detectable dASR of a typical judge: {smallest}."
    if study.wave and any(row.unit == "score" for row in rows):
        yield _drift_advice(samples, study)


def _easy(rows: list[DetectableEffect]) -> str:
    """Say of which judges the numbers may be too small, as their pairs are too easy."""
    names = [row.judge for row in rows if row.spread.easy]
    if not names:
        return ""
    return (
        f" {EASY} ({', '.join(names)}): the shift hardly moves, so the effect in logits decides, "
        "which may take far more samples."
    )


def _needed(rows: list[DetectableEffect]) -> str:
    """Say how many samples the judges need: one number only if it is that of all of them."""
    least, most = (pick(rows, key=lambda row: row.needed) for pick in (min, max))
    if least.needed == most.needed:
        return f"about {count(most.needed, 'sample')}"
    few, many = count(least.needed, "sample"), thousands(most.needed)
    return f"from about {few} ({least.judge}) to {many} ({most.judge})"


def _typical(
    rows: list[DetectableEffect], samples: int, votes: int, questions: int | None
) -> Iterator[str]:
    """Say what stands for the spread of judges without enough votes."""
    guessed = [row for row in rows if row.spread.source == GUESSED]
    if not guessed:
        return
    text = f"{GUESSED}: fewer than {ENOUGH + 1} questions with votes, so the spread is assumed."
    units = {row.unit for row in guessed}
    if "score" in units:
        sharp, noisy = (
            _three(smallest_effect(samples, shift_sigma(votes, kind)) or 1.0)
            for kind in ("sharp", "noisy")
        )
        text += (
            f" The smallest shift is {sharp} for a judge with little noise and {noisy} for a "
            "noisy one."
        )
    if "sd" in units:
        text += f" Repeated grades of one answer are taken to correlate by {number(ICC)}."
    if units & {"share", "labels"}:
        text += f" Two verdicts on one answer are taken to differ with probability {number(FLIPS)}."
    if questions and questions < samples:
        judges = "every judge" if len(guessed) == len(rows) else ", ".join(r.judge for r in guessed)
        text += (
            f" The {count(samples, 'sample')} come from {count(questions, 'question')}. The "
            f"figures for {judges} assume that samples of the same question are independent; once "
            "there are votes, their correlation is taken into account."
        )
    yield text


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
