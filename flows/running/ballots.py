"""From a study to the pairs and ballots that its judges are asked about, for audits and plans."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from flows.studies import Study
from schemas.curation import Perturbations, PerturbedAnswers
from schemas.judging import Ballots, Judges, Pairs
from tasks.curate import file_of, import_dataset, require_shown
from tasks.datasets import Imported
from tasks.judge import Design, draw_ballots
from tasks.pair import pair_up, with_background
from tasks.perturb import perturb, perturbation_table, why_none
from tasks.reporting.wording import count, listing, thousands
from warehouse.evidence.selection import NEWER
from warehouse.store import Warehouse


class BallotSteps(NamedTuple):
    """The steps from a dataset to ballots: these functions, or tasks of the same name."""

    import_dataset: Callable[..., Any] = import_dataset
    perturb: Callable[..., Any] = perturb
    pair_up: Callable[..., Any] = pair_up
    draw_ballots: Callable[..., Any] = draw_ballots


BALLOT_STEPS = BallotSteps()


class Made(NamedTuple):
    """The frames from a study's dataset to its pairs."""

    dataset: Imported
    perturbations: DataFrame[Perturbations]
    perturbed: DataFrame[PerturbedAnswers]
    pairs: DataFrame[Pairs]
    shown: DataFrame[Pairs]
    """The pairs, with what judge prompts show beside the answers."""


def read_dataset(study: Study, steps: BallotSteps = BALLOT_STEPS) -> Imported:
    """Read the dataset of a study.

    Raise ValueError if the file cannot be used.
    """
    found: Imported = steps.import_dataset(
        study.dataset,
        study.folder,
        study.limit,
        study.category_column,
        study.columns,
        turn=study.turn(),
        pass_label=study.pass_label,
    )
    return found


def limit_line(study: Study, questions: int) -> str:
    """Say that a dataset has fewer questions than the limit of the study; empty if it has not."""
    if study.limit is None or questions >= study.limit:
        return ""
    return f"--limit {study.limit}: the dataset has {count(questions, 'question')}, all are used."


def left_line(study: Study, needed: Any) -> str:
    """Say how many of the further questions that judges need the dataset has; empty if none are.

    ``needed`` is the largest number that is recommended; null if there is none.
    """
    if not needed:
        return ""
    larger = "further ones take a larger dataset."
    if study.limit is None:
        return f"All questions of the dataset are asked: {larger}"
    total = read_dataset(study.model_copy(update={"limit": None})).questions.height
    asked = min(study.limit, total)
    left = total - asked
    if not left:
        return f"All {count(total, 'question')} of the dataset are asked: {larger}"
    some = "" if needed <= left else f"{thousands(left)} of "
    ask = f"The dataset has {some}the {count(needed, 'further question')}: "
    ask += f"--limit {asked + min(left, needed)}"
    return f"{ask}." if needed <= left else f"{ask}; the others take a larger dataset."


def make_pairs(study: Study, steps: BallotSteps = BALLOT_STEPS) -> Made:
    """Read the dataset of a study, perturb its answers and pair them.

    Raise ValueError if the file cannot be used, lacks what a judge prompt of the study shows, or
    has no answer that a perturbation of the study can change.
    """
    dataset = read_dataset(study, steps)
    require_shown(study.dataset, dataset, study.prompts)
    perturbations = perturbation_table(study.asked())
    perturbed = PerturbedAnswers.of(
        pl.concat(
            steps.perturb(dataset.questions, dataset.answers, dataset.versions, name, study.seed)
            for name in study.asked()
        )
    )
    pairs = steps.pair_up(
        dataset.questions,
        dataset.answers,
        perturbed,
        perturbations,
        study.checks,
        replicates=study.asks_again,
        shams=study.sham != "none",
        variants=study.variants(),
    )
    if pairs.is_empty():
        raise ValueError(why_none(perturbed, file_of(study.dataset)))
    shown = with_background(pairs, dataset.questions, study.prompts)
    return Made(dataset, perturbations, perturbed, pairs, shown)


def require_asked_in_wave(
    study: Study, pairs: DataFrame[Pairs], ballots: DataFrame[Ballots], warehouse: Warehouse
) -> None:
    """Refuse ballots of an earlier wave that a judge did not have when the wave was asked.

    Its replies of today would be filed under that day, and be the baseline of its drift. A judge
    that was down has ballots without a vote, and is asked again. The error names what is new, and
    what to do.
    """
    if not study.wave:
        return
    newer = warehouse.query(NEWER, {"study": study.name, "wave": study.wave})["wave"].to_list()
    if not newer:
        return
    unit = ["judge", "prompt", "perturbation"]
    drawn = warehouse.read(Ballots, among=ballots.select("ballot_id"))
    perturbed = pairs.select("pair_id", "perturbation")
    units, known = (
        some.join(perturbed, on="pair_id").select(unit).unique() for some in (ballots, drawn)
    )
    new = units.join(known, on=unit, how="anti", nulls_equal=True)
    if new.is_empty() or known.is_empty():
        return
    # Each name that is new, or the perturbations that are new to judges of that wave.
    judges = new.join(known, on=["judge", "prompt"], how="anti").select("judge", "prompt").unique()
    names = [f"{judge} with prompt {prompt}" for judge, prompt in judges.sort("judge").rows()]
    names = names or [*new["perturbation"].fill_null("control").unique().sort()]
    raise ValueError(
        f"wave {study.wave!r} of {study.name!r} was asked before wave {newer[-1]!r}, and had no "
        f"part of {listing(names)}: replies of today are not of that day. Choose the judges, "
        "prompts and perturbations of that wave with --judge, --prompt and --perturbation, or name "
        "a new wave with --wave."
    )


def ballots_of(
    study: Study,
    shown: DataFrame[Pairs],
    judges: DataFrame[Judges],
    left_out: Mapping[str, Mapping[str, Sequence[str]]],
    steps: BallotSteps = BALLOT_STEPS,
) -> DataFrame[Ballots]:
    """Draw the ballots of a study; ``left_out`` has the parameters that each prompt drops."""
    design = Design(study.votes_per_pair, study.mode, study.wave, study.seed)
    return Ballots.of(
        pl.concat(
            steps.draw_ballots(shown, judges, name, design, left_out[name])
            for name in study.prompts
        )
    )
