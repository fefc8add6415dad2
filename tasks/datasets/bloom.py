"""The bundled questions: ten for each level of Bloom's taxonomy."""

from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tasks.datasets import Imported, dataset
from tasks.kit.catalogue import read_toml
from tasks.readers.samples import Sample, Version, imported

FOLDER = Path(__file__).parent / "_bloom"
AUTHOR = "voirdire"
Replacements = list[tuple[str, str]]


class BloomQuestion(BaseModel):
    """One question of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    question: str
    anchor: str
    target: str
    facts: list[str]
    errors: Replacements
    """[right, wrong] phrases of the target."""
    bias: Replacements
    """[neutral, biased] phrases of the target."""


class Level(BaseModel):
    """One file: the questions of a level."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    questions: list[BloomQuestion]


@dataset(
    source="written for voirdire; levels after Bloom's taxonomy, as in arXiv 2402.10669",
    license="CC0-1.0",
)
def bloom(_folder: Path | None) -> Imported:
    """Import the bundled questions with factual errors and gender bias planted by hand.

    One raw row of ``_bloom/remembering.toml`` (texts shortened)::

        [[questions]]
        id = "remembering_01"
        question = "What is the largest organ of the human body, and what does it do?"
        anchor = "Skin is the body's largest organ. It keeps many germs out ..."
        target = "The largest organ is the skin, which covers nearly two square meters ..."
        facts = ["The skin is the largest organ", "Sweating cools the body"]
        errors = [["nearly two square meters", "nearly six square meters"]]
        bias = [["Working as a barrier, it", "... tough in men but weak in fussy women, it"]]
    """
    return imported("bloom", _read(FOLDER))


@cache
def _read(folder: Path) -> list[Sample]:
    return [
        _sample(file.stem, entry)
        for file in sorted(folder.glob("*.toml"))
        for entry in Level(**read_toml(file)).questions
    ]


def _sample(level: str, entry: BloomQuestion) -> Sample:
    return Sample(
        id=entry.id,
        question=entry.question,
        answers=(entry.anchor, entry.target),
        versions=(
            Version(2, "factual_error", _replace(entry, entry.errors)),
            Version(2, "gender_bias", _replace(entry, entry.bias)),
        ),
        category=level,
        reference="\n".join(entry.facts),
        authors=(AUTHOR, AUTHOR),
    )


def _replace(entry: BloomQuestion, replacements: Replacements) -> str:
    text = entry.target
    for old, new in replacements:
        if text.count(old) != 1:
            raise ValueError(
                f"bloom question {entry.id!r}: {old!r} occurs {text.count(old)} times in the "
                "target, where it must occur once. Choose a longer or another phrase."
            )
        text = text.replace(old, new)
    return text
