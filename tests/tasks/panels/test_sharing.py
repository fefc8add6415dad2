"""Who shares enough questions, against sets of names."""

import numpy as np
import pytest

from tasks.panels.panels import seen, sharing


def by_sets(table: dict[str, set[int]]) -> list[str]:
    """Leave judges out one by one, as the docstring says, questions being sets of numbers."""
    kept = sorted(judge for judge, own in table.items() if len(own) >= 10)
    while len(kept) > 1 and len(set.intersection(*(table[j] for j in kept))) < 10:
        rest = {j: [k for k in kept if k != j] for j in kept}
        kept.remove(
            min(
                kept,
                key=lambda j: (
                    -len(set.intersection(*(table[k] for k in rest[j]))),
                    sum(len(table[j] & table[k]) for k in rest[j]),
                    j,
                ),
            )
        )
    return kept if len(kept) > 1 else []


@pytest.mark.parametrize("seed", range(40))
def test_like_sets(seed: int) -> None:
    random = np.random.default_rng(seed)
    reported = random.random((40, 6)) < random.uniform(0.2, 1.0, 6)
    table = {name: set(np.flatnonzero(reported[:, j])) for j, name in enumerate("abcdef")}
    kept = sharing(reported, np.arange(40))
    assert [name for name, keep in zip("abcdef", kept, strict=True) if keep] == by_sets(table)


def test_clusters_are_counted_by_part() -> None:
    # Samples 0 and 1 are one question, 2 and 3 the next of the same part; 4 is of another part.
    reported = np.array([[1, 0], [1, 0], [0, 0], [0, 1], [1, 0]], bool)
    counts = seen(reported, np.array([0, 2, 4]), np.array([0, 2]))
    assert counts.tolist() == [[1, 1], [1, 0]]
    assert not sharing(reported, np.array([0, 2, 4]), np.array([0, 2])).any()
