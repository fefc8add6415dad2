"""How much sets have in common, label by label."""

import numpy as np

from tasks.calibration.label_values import Bits, Codes, Floats, Panel, Sets, count_bits, neighbours
from tasks.metrics import Gaps, metric


@metric(labels="set", source="https://arxiv.org/abs/2501.10970")
def macro_jaccard(panel: Panel) -> Gaps:
    """Mean over all labels of the Jaccard index of one label against the others' sets of the item.

    For a label that the set holds, it is the share of the others who hold it too; for a label that
    it lacks, 0, or 1 if nobody holds it.

    Notes
    -----
    With c people of r holding a label, r times the mean is, but for a constant,
    ``sum over the set of c - r * (labels held by the set or by anyone)``: whole numbers.

    Examples
    --------
    {a, b} against {a}, {a, c}, all labels being a, b, c, d: (1 + 0 + 0 + 1) / 4.
    """
    sets = Sets(panel.values)
    human = sets.bits[panel.code]
    held, alone = _held(panel, human)
    own = _overlap(panel, sets, panel.code) - sets.sizes[panel.code]
    own = own - panel.others * count_bits(held)[panel.item]

    def gaps(codes: Codes) -> Floats:
        judge = codes[panel.item]
        common = sets.common(judge, panel.code)
        shared = panel.sums(common.astype(np.float64))[panel.item] - common
        # Without the one left out, nobody holds what that one alone held.
        gone = count_bits(human & alone[panel.item] & ~sets.bits[judge])
        either = count_bits(sets.bits[codes] | held)[panel.item] - gone
        gap: Floats = shared - panel.others * either - own
        return gap

    return gaps


def _held(panel: Panel, human: Bits) -> tuple[Bits, Bits]:
    """Return, per item, the labels of anyone and the labels of exactly one person."""
    starts = panel.starts
    held: Bits = np.zeros((panel.size.size, human.shape[1]), np.uint64)
    twice = held.copy()
    for rank in range(int(np.diff(starts).max())):
        rows = starts[:-1][starts[:-1] + rank < starts[1:]] + rank
        items = panel.item[rows]
        often = np.where((panel.count[rows] > 1)[:, None], human[rows], held[items] & human[rows])
        twice[items] |= often
        held[items] |= human[rows]
    return held, held & ~twice


def _overlap(panel: Panel, sets: Sets, codes: Codes) -> Floats:
    """Return, per row, how often the people of its item hold the labels of its set."""
    overlap = np.empty(codes.size)
    for rows, place, other in neighbours(panel):
        common = sets.common(codes[rows][place], codes[other]) * panel.count[other]
        overlap[rows] = np.bincount(place, common, minlength=codes[rows].size)
    return overlap
