"""Judgments of Arena-Hard: a model against the baseline, in both orders."""

import polars as pl

from tasks.readers.duckdb_reader import Source
from tasks.readers.expressions import pair_item
from tasks.readers.formats import Parts, log_format, strange_values, without_copies

CHOICES = {
    "A>>B": "first",
    "A>B": "first",
    "A=B": "tie",
    "B=A": "tie",
    "B>A": "second",
    "B>>A": "second",
}
STRENGTH = (
    "Arena-Hard weighs a strong verdict (A>>B) three times; here it is one vote, like a weak one"
)

UNPLAYED = "judgments without a game"


@log_format(
    title="Arena-Hard judgments",
    needs=(("question_id", "model", "judge", "games"), ("uid", "model", "judge", "games")),
    source="https://github.com/lmarena/arena-hard-auto",
)
def arena_hard(source: Source) -> Parts:
    """Two games a row, ``A>>B`` to ``B>>A``; the baseline is shown first in the first game.

    A score that is null or not one of these is an invalid vote; judgments without any game are
    counted and left out. A row that repeats an earlier one, with its replies, is a copy and left
    out. Version 0.1 does not name the
    baseline, which is then called ``baseline``.
    """
    names = ("question_id", "uid", "judge", "model", "baseline", "category")
    scores = {"score0": "games.0.score", "score1": "games.1.score"}
    rows = source.fields(
        {**{n: n for n in names}, **scores, "stamp": "tstamp"},
        digests={"digest": "games.0.judgment", "second_digest": "games.1.judgment"},
        present={"game0": "games.0", "game1": "games.1"},
    )
    once, copies = without_copies(rows)
    named = once.with_columns(
        question=pl.coalesce("question_id", "uid"),
        anchor_author=pl.col("baseline").fill_null("baseline"),
        target_author="model",
        human=pl.lit(value=False),
    )
    orders = [
        named.filter(f"game{game}").select(
            pl.col("judge", "human", "category", "anchor_author", "target_author", "copy"),
            sample=pair_item("question"),
            cluster="question",
            shown_first=pl.lit(first),
            choice=pl.col(f"score{game}").replace_strict(CHOICES, default="invalid"),
        )
        for game, first in enumerate(("anchor", "target"))
    ]
    without = named.filter(~pl.col("game0") & ~pl.col("game1")).height
    strange = strange_values((once["score0"], once["score1"]), CHOICES)
    return Parts(
        votes=pl.concat(orders),
        left_out={UNPLAYED: without, **copies},
        notes=(STRENGTH, *strange),
        rows=rows.height,
    )
