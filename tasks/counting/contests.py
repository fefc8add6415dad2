"""Contests between models, from the point of view of each model."""

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import FORMATS, VERSUS, Contests
from schemas.keys import JUDGE
from tasks.counting.annotations import HUMANS, PERSON
from tasks.counting.order_halves import only_order
from tasks.counting.positions import ORDERS, order_score
from tasks.counting.verdicts import one_order_of_a_person
from tasks.inference.cluster_sums import Numbers, combined, numbered
from tasks.kit.defaults import LEAST_EXCESS

TEXTS = (*JUDGE, "cluster", "sample")
CONTEST = (*JUDGE, "mode", "cluster", "other", "half")
SCORES = ("score", "human", "label_chance")
PAIRS_AT_ONCE = 1_000_000
"""Pairs of scores that are held in memory at once."""


def match_models(tallies: pl.DataFrame) -> DataFrame[Contests]:
    """Return the control pairs of two different known models, with the judge's scores.

    The score is the average over both orders in any mode, null unless each order has a valid vote.
    If a person saw the pair, or a judge every pair, in one order only, it is that order's score.
    """
    pairs = tallies.with_columns(shown_first=only_order()).filter(
        pl.col("arm") == "control",
        pl.col("anchor_author").cast(pl.String) != pl.col("target_author").cast(pl.String),
    )
    scores = {f"score_{order}": order_score(order) for order in ORDERS}
    one_order = one_order_of_a_person() | pl.col("shown_first").is_not_null()
    alone = pl.when(one_order).then(pl.coalesce("score_12", "score_21"))
    contests = pairs.with_columns(**scores, votes=pl.col("planned")).with_columns(
        score=alone.otherwise((pl.col("score_12") + pl.col("score_21")) / 2)
    )
    return cast("DataFrame[Contests]", contests)


def of_labelled_judges(contests: DataFrame[Contests]) -> DataFrame[Contests]:
    """Keep the contests of judges that have at least one contest with a score of people."""
    labelled = pl.col("human_score").is_not_null().any().over(JUDGE)
    return cast("DataFrame[Contests]", contests.filter(labelled))


def of_people(contests: DataFrame[Contests]) -> DataFrame[Contests]:
    """Pool the contests of several people as one judge, ``humans``; none if there is one person."""
    several = pl.col("judge").n_unique().over("dataset", "wave") > 1
    people = contests.filter(pl.col("human").fill_null(value=False)).filter(several)
    pooled = people.with_columns(judge=pl.lit(HUMANS), prompt=pl.lit(PERSON))
    return cast("DataFrame[Contests]", pooled)


def sides(contests: pl.DataFrame) -> pl.DataFrame:
    """Return one row per contest and subgroup: each of the two models, and the pair of them.

    Values are from the point of view of the ``own`` model: ``score``, ``naive`` (anchor first
    only) and ``human`` in [0, 1]; ``longer`` and ``marked``, the excess length and markup of its
    answer. In a pair, ``own`` is the model that comes first by name.
    """
    ordered = contests.sort(Contests.place().key)
    # As codes: texts of millions of rows take several times as long.
    cluster = pl.Series("cluster", numbered(ordered["cluster"])[0])
    ordered = ordered.with_columns(cluster, *_authors(ordered))
    both = pl.concat([_seen(ordered, "target", "anchor"), _seen(ordered, "anchor", "target")])
    named = both.filter(pl.col("own") < pl.col("other")).with_columns(subgroup=pl.col("pair"))
    return pl.concat([both.with_columns(subgroup=pl.col("own")), named]).drop("pair")


def _authors(contests: pl.DataFrame) -> list[pl.Series]:
    """Return the authors and their ``pair`` as ``pl.Enum`` of all names, in order."""
    anchor, target = (contests[side].cast(pl.String) for side in ("anchor_author", "target_author"))
    models = sorted({*anchor.unique(), *target.unique()})
    codes = [
        side.cast(pl.Enum(models)).to_physical().cast(pl.Int64).to_numpy()
        for side in (anchor, target)
    ]
    pairs, which = _versus(models, np.minimum(*codes), np.maximum(*codes))
    names = pl.Enum(sorted({*models, *pairs}))
    return [anchor.cast(names), target.cast(names), pl.Series("pair", pairs, names)[which]]


def _versus(models: Sequence[str], one: Numbers, other: Numbers) -> tuple[list[str], Numbers]:
    """Name the pairs of models that occur, given by index; return the index of each row's pair."""
    which, pairs = combined([(one, len(models)), (other, len(models))])
    first, second = np.divmod(pairs, len(models))
    return [f"{models[a]}{VERSUS}{models[b]}" for a, b in zip(first, second, strict=True)], which


def _seen(contests: pl.DataFrame, own: str, other: str) -> pl.DataFrame:
    def turned(score: str) -> pl.Expr:
        return pl.col(score) if own == "target" else 1 - pl.col(score)

    marked = all_excess(own, other)
    length, others = (pl.col(f"{side}_length") for side in (own, other))
    return contests.select(
        *TEXTS,
        "pair",
        "votes",
        "simulated",
        "label_chance",
        mode=pl.lit("any"),
        perturbation=pl.lit(None, dtype=pl.String),
        kind=pl.lit(None, dtype=pl.String),
        own=pl.col(f"{own}_author"),
        other=pl.col(f"{other}_author"),
        score=turned("score"),
        naive=turned("score_12"),
        human=turned("human_score"),
        longer=length - others,
        marked=marked,
        half=pl.col("shown_first") == own,
        carries_length=length > (1 + LEAST_EXCESS) * others,
        lacks_length=others > (1 + LEAST_EXCESS) * length,
        carries_markup=marked > 0,
    )


def excess(what: str, own: str, other: str) -> pl.Expr:
    """Return the difference of a size between the answers of two sides."""
    return pl.col(f"{own}_{what}") - pl.col(f"{other}_{what}")


def all_excess(own: str, other: str) -> pl.Expr:
    """Return the difference in all markup or, where not counted, in the known kinds together."""
    kinds = [excess(kind, own, other) for kind in FORMATS]
    together = pl.sum_horizontal(kinds, ignore_nulls=False)
    return pl.coalesce(excess("markup", own, other), together)


def differences(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Pair the scores of two models against the same opponent on the same question.

    If each pair was seen in one order, both models must have had the same slot. ``own_score`` and
    ``its_score`` are the two scores, ``score`` is their difference, ``human`` likewise.

    Yields the pairs of one or more models, about ``PAIRS_AT_ONCE``, with all of each cell.
    """
    means = _mean_scores(rows)
    group = means.select(pl.struct(CONTEST).rle_id()).to_series().to_numpy()
    later = _later(group)
    # Codes instead of texts, as there may be millions of pairs.
    means = means.with_columns(pl.col(pl.String).cast(pl.Categorical))
    names = cast("pl.Enum", means["own"].dtype).categories.to_list()
    own = means["own"].to_physical().to_numpy()
    pairs = np.bincount(own, later, len(names))
    batch = ((np.cumsum(pairs) - pairs) // PAIRS_AT_ONCE)[own]
    for each in np.unique(batch[later > 0]):
        one, other = _pairs(np.flatnonzero(batch == each), later)
        texts, which = _versus(names, own[one], own[other])
        subgroup = pl.Series(texts, dtype=pl.String).cast(pl.Categorical)[which]
        yield _differing(means[one], means.select(SCORES)[other], subgroup)


def _mean_scores(rows: pl.DataFrame) -> pl.DataFrame:
    """Average the scores of each model against each opponent on each question, in order."""
    means = (
        rows.filter(pl.col("subgroup") == pl.col("own"), pl.col("score").is_not_null())
        # Grouping by all keys takes long; a model alone on a question has no difference.
        .filter(pl.len().over("dataset", "judge", "cluster", "other") > 1)
        .group_by(*CONTEST, "own", maintain_order=True)
        .agg(
            pl.col("score").mean(),
            # A mean over the labelled part would not be comparable with the judge's mean.
            human=pl.when(pl.col("human").null_count() == 0).then(pl.col("human").mean()),
            label_chance=pl.when(
                (pl.col("label_chance").null_count() == 0)
                & (pl.col("label_chance").n_unique() == 1)
            ).then(pl.col("label_chance").first()),
            votes=pl.col("votes").max(),
            simulated=pl.col("simulated").first(),
        )
    )
    return means.sort(*CONTEST, "own")


def _later(group: NDArray[np.uint32]) -> Numbers:
    """Return how many rows of the same group follow each row; groups are numbered in order."""
    last = np.cumsum(np.bincount(group)) - 1
    return last[group] - np.arange(len(group))


def _pairs(some: Numbers, later: Numbers) -> tuple[Numbers, Numbers]:
    """Return the indices of some rows, each with every row that follows in its group."""
    number = later[some]
    one = np.repeat(some, number)
    before = np.cumsum(number) - number
    return one, one + 1 + np.arange(len(one)) - np.repeat(before, number)


def _differing(one: pl.DataFrame, other: pl.DataFrame, subgroup: pl.Series) -> pl.DataFrame:
    alike = one["label_chance"] == other["label_chance"]
    return one.select(
        *CONTEST,
        "votes",
        "simulated",
        perturbation=pl.lit(None, dtype=pl.String),
        kind=pl.lit(None, dtype=pl.String),
        subgroup=subgroup,
        own_score=pl.col("score"),
        its_score=other["score"],
        score=pl.col("score") - other["score"],
        human=pl.col("human") - other["human"],
        label_chance=pl.when(alike).then("label_chance"),
    )
