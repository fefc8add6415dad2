"""Perturb: answers to perturbed answers with their shams and failed checks."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.curation import Answers, Perturbations, PerturbedAnswers, Questions, Versions
from tasks.kit.printable import several
from tasks.perturbations import PERTURBATIONS, SECOND, Item, Perturbation, perturbation_named
from tasks.progress import step
from tasks.rewriting.checks import sham_failure, words_kept

PERTURBED_SLOT = 2
NOT_BROUGHT = "the dataset brings no version of this answer"
NOT_MADE = "no version: the dataset has none, and no template makes one of this text"
SHOWN = 3
NO_SHAM = "has no sham by design"
NOTHING_TO_MATCH = "no perturbed text to match"
UNREACHED = "no neutral edit of the answer is as long as the perturbed text"


class Target(NamedTuple):
    """An answer to perturb, the other answer to its question, and a version from the dataset."""

    item: Item
    question_id: str
    other: str | None
    version: str | None


def perturb(
    questions: DataFrame[Questions],
    answers: DataFrame[Answers],
    versions: DataFrame[Versions],
    name: str,
    seed: int,
) -> DataFrame[PerturbedAnswers]:
    """Apply the perturbation ``name`` to the targets; a failed check is a row, not an error.

    ``name/second`` is the same perturbation with its second sham.

    If the dataset has versions of this perturbation, only these are used, for the answers that
    they belong to. Otherwise a template perturbs the answer in slot 2.
    """
    step(f"perturbing answers: {name}")
    perturbation = perturbation_named(name)
    brought = dict(
        versions.filter(pl.col("perturbation") == name.removesuffix(SECOND))
        .select("answer_id", "version")
        .iter_rows()
    )
    made_by = "dataset" if brought else "template"
    with PERTURBATIONS.running(name.removesuffix(SECOND)):
        rows = [
            _row(perturbation, made_by, seed, target)
            for target in _targets(questions, answers, brought)
        ]
    return PerturbedAnswers.of(pl.DataFrame(rows, schema=PerturbedAnswers.dtypes(), orient="row"))


def perturbation_table(names: Iterable[str]) -> DataFrame[Perturbations]:
    """Return the frame of the perturbations ``names``."""
    rows = [
        (p.name, p.recipe, p.kind, p.bias, p.source)
        for p in (perturbation_named(name) for name in dict.fromkeys(names))
    ]
    return Perturbations.of(pl.DataFrame(rows, schema=Perturbations.dtypes(), orient="row"))


def why_none(perturbed: DataFrame[PerturbedAnswers], file: str) -> str:
    """Say why no perturbed answer is left to ask about, with the next step.

    ``file`` is what the dataset is called.
    """
    made = perturbed.filter(pl.col("failure").ne_missing(NOT_MADE))
    names = perturbed["perturbation"].str.strip_suffix(SECOND).unique().sort().to_list()
    if made.is_empty() and names and all(PERTURBATIONS[name].from_data for name in names):
        some = " or ".join(names)
        these = "this perturbation" if len(names) == 1 else "these perturbations"
        others = ", ".join(name for name, each in PERTURBATIONS.items() if not each.from_data)
        return (
            f"{file} has no filled column {some}; only the data can bring {these}. Add the column, "
            f"or choose {others} with --perturbation."
        )
    reasons = perturbed.group_by("perturbation", "failure").len().sort("len", "perturbation")
    listed = "; ".join(
        f"{several(many, 'answer')} of {name} ({why or NOTHING_TO_MATCH})"
        for name, why, many in reasons.reverse().head(SHOWN).iter_rows()
    )
    return (
        f"no pair is left to ask about: {listed}. Choose another perturbation, or give other "
        "answers. `voirdire list perturbations` says what each needs."
    )


def _targets(
    questions: DataFrame[Questions], answers: DataFrame[Answers], brought: dict[str, str]
) -> Iterator[Target]:
    texts: dict[str, list[tuple[str, int, str]]] = {}
    for row in answers.select("question_id", "answer_id", "slot", "answer").iter_rows():
        texts.setdefault(row[0], []).append(row[1:])
    for question_id, question in questions.select("question_id", "question").iter_rows():
        both = texts.get(question_id, [])
        named = [row for row in both if row[0] in brought]
        for answer_id, _, answer in named or [row for row in both if row[1] == PERTURBED_SLOT]:
            other = next((text for key, _, text in both if key != answer_id), None)
            item = Item(answer_id, question, answer)
            yield Target(item, question_id, other, brought.get(answer_id))


def _row(perturbation: Perturbation, made_by: str, seed: int, target: Target) -> tuple[object, ...]:
    """Return a row of the frame, with columns in order."""
    item = target.item
    text = target.version if made_by == "dataset" else perturbation.make(item, seed)
    key = (
        item.answer_id,
        target.question_id,
        perturbation.name,
        perturbation.recipe,
        seed,
        made_by,
    )
    if text is None:
        missing = NOT_BROUGHT if made_by == "dataset" else NOT_MADE
        return (*key, None, None, None, None, None, missing, NOTHING_TO_MATCH)
    failure = perturbation.check(item.answer, text) or _other_failure(target, text)
    sham, unshammed = _sham(perturbation, item, text, seed)
    return (
        *key,
        text,
        sham,
        len(text) / len(item.answer),
        None if sham is None else len(sham) / len(text),
        words_kept(item.answer, text),
        failure,
        unshammed,
    )


def _other_failure(target: Target, text: str) -> str | None:
    # None is in neither: the question has one answer.
    if target.other in (text, target.item.answer):
        return "identical to the other answer"
    return None


def _sham(
    perturbation: Perturbation, item: Item, text: str, seed: int
) -> tuple[str | None, str | None]:
    if perturbation.sham is None:
        return None, NO_SHAM
    sham = perturbation.sham(item, text, seed)
    if sham is None:
        return None, UNREACHED
    return sham, sham_failure(item.answer, text, sham)
