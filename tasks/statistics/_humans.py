"""Judges beside the people who labelled the same items."""

import numpy as np

from tasks.statistics._annotations import Block, Codes
from tasks.statistics._intervals import Sums
from tasks.statistics._pairs import TIE


def decided(block: Block, counts: Sums) -> Sums:
    """Return how many people gave each label, without those who said tie."""
    if TIE not in block.labels:
        return counts
    kept = counts.copy()
    # Where a judge says tie nobody is left to agree or disagree with: see `between`.
    kept[:, block.labels.index(TIE)] = np.nan
    return kept


def between(given: Codes, counts: Sums) -> tuple[Sums, Sums]:
    """Return how many pairs of a judge and a person each item has, and how many are alike.

    ``given`` are the judges' labels, shape (items, judges); a label that counts as none in
    ``counts`` is not a number there.
    """
    named = np.where(given < 0, np.nan, np.take_along_axis(counts, np.maximum(given, 0), axis=1))
    people = np.nansum(counts, axis=1)[:, None]
    return np.where(np.isnan(named), 0.0, people), np.nan_to_num(named)


def among(counts: Sums) -> tuple[Sums, Sums]:
    """Return how many pairs of people each item has, and how many are alike, as one column."""
    people = np.nansum(counts, axis=1)
    alike = np.nansum(counts * (counts - 1), axis=1) / 2
    return (people * (people - 1) / 2)[:, None], alike[:, None]
