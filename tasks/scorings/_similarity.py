"""Scores that are means of a similarity of two labels."""

from collections.abc import Callable

import numpy as np

from tasks.scorings._panel import Codes, Floats, Panel, neighbours

Similarity = Callable[[Codes, Codes], Floats]
"""Of labels that are judged, and of those that they are held against."""

TOLERANCE = 1e-9
"""Means as near as that tie: which is larger would depend on the order in which they are summed."""

PAIRS = 1 << 20


def mean_similarity(panel: Panel, similarity: Similarity) -> Callable[[Codes], Floats]:
    """Compare means of ``similarity`` to the labels of all others."""
    own = np.empty(panel.code.size)
    for rows, place, other in neighbours(panel, PAIRS):
        codes = panel.code[rows]
        each = similarity(codes[place], panel.code[other]) * panel.count[other]
        itself = similarity(codes, codes)
        own[rows] = np.bincount(place, each, minlength=codes.size) - itself

    def gaps(codes: Codes) -> Floats:
        each = similarity(codes[panel.item], panel.code)
        gap = (panel.sums(each)[panel.item] - each - own) / panel.others
        return np.where(np.abs(gap) <= TOLERANCE, 0.0, gap)

    return gaps
