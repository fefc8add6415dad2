"""Questions, answers and reference answers beside logs in FastChat's format (MT-Bench)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from tasks.kit.printable import several
from tasks.readers.fastchat import FastchatFile, turn_texts
from tasks.readers.formats import MOST_WITH_TEXTS, Parts, texts_of
from tasks.reporting.wording import listing

TURN = "turn"
"""Begins the name of the part of a log that is about one turn."""


class FolderQuestions(NamedTuple):
    """What a folder knows of its questions, by id."""

    asked: FastchatFile
    answers: dict[str, FastchatFile]
    """Model -> its answers."""
    references: tuple[FastchatFile, ...]

    @classmethod
    def of(cls, parts: Sequence[FastchatFile]) -> "FolderQuestions | None":
        """Return the questions of a folder; null unless there is one file of them."""
        asked = [part for part in parts if part.kind == "questions"]
        if len(asked) != 1:
            return None
        answers = {part.model: part for part in parts if part.kind == "answers"}
        given = tuple(part for part in parts if part.kind == "reference answers")
        return cls(asked[0], answers, given)

    @property
    def summary(self) -> str:
        """Say what there is."""
        have = [several(len(self.asked.rows), "question")]
        have += [f"answers of {several(len(self.answers), 'model')}"] if self.answers else []
        have += ["reference answers"] if self.references else []
        return listing(have)

    def texts(self, question: str, models: dict[str, str | None], turn: int) -> dict[str, object]:
        """Return the texts of a question and of answers in a turn, and then of the turn before."""
        row = self.asked.rows.get(question)
        if row is None:
            return {}
        sides = {side: self.answers.get(model or "") for side, model in models.items()}
        return {
            name if number == turn else f"{name}, turn {number}": text
            for number, name, text in turn_texts(row, sides, self.references, turn)
        }

    def categories(self) -> dict[str, str]:
        """Return the category of each question that has one."""
        rows = self.asked.rows.items()
        return {key: str(row.fields["category"]) for key, row in rows if row.fields.get("category")}


def with_categories(parts: Parts, questions: FolderQuestions) -> Parts:
    """Add the category of the question to rows that have none."""
    known = questions.categories()
    votes, ratings = (
        rows
        if rows is None or "cluster" not in rows.columns
        else rows.with_columns(
            category=pl.coalesce(
                pl.col("category").cast(pl.String)
                if "category" in rows.columns
                else pl.lit(None, pl.String),
                pl.col("cluster")
                .cast(pl.String)
                .replace_strict(known, default=None, return_dtype=pl.String),
            )
        )
        for rows in (parts.votes, parts.ratings)
    )
    return parts._replace(votes=votes, ratings=ratings)


def texts_of_questions(found: Iterable[Parts], questions: FolderQuestions) -> pl.DataFrame | None:
    """Return the texts of the items that people rated, or of all items if nobody did, by part.

    None for more items than are kept in memory.
    """
    columns = ("item", "cluster", "anchor_author", "target_author", "part")
    schema: dict[str, pl.DataType | type[pl.DataType]] = dict.fromkeys(columns, pl.String)
    rows = [
        each.rename({"sample": "item"} if "sample" in each.columns else {})
        for parts in found
        for each in (parts.votes, parts.ratings)
        if each is not None
    ]
    human = pl.col("human").fill_null(value=False)
    everybody = pl.concat(
        [pl.DataFrame(schema=schema | {"human": pl.Boolean}), *rows], how="diagonal_relaxed"
    )
    rated = everybody.filter(human)
    items = (everybody if rated.is_empty() else rated).select(columns).drop_nulls("item").unique()
    if items.height > MOST_WITH_TEXTS:
        return None
    names = items.sort("item", "part").rows(named=True)
    by_part = {
        part: texts_of(
            (row["item"], questions.texts(row["cluster"], _models(row), _turn(row["part"])))
            for row in names
            if row["part"] == part
        ).with_columns(part=pl.lit(part, pl.String))
        for part in {row["part"] for row in names}
    }
    return pl.concat(by_part.values()) if by_part else None


def _models(row: dict[str, str | None]) -> dict[str, str | None]:
    if row["anchor_author"]:
        return {"anchor": row["anchor_author"], "target": row["target_author"]}
    # A grade is about one answer: its item is named after the question and the model.
    return {"answer": (row["item"] or "").removeprefix(f"{row['cluster']}/")}


def _turn(part: str | None) -> int:
    number = (part or "").removeprefix(TURN)
    return int(number) if number.isdecimal() else 1
