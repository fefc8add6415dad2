import numpy as np
import pytest

from tasks.calibration.label_values import make_panel
from tasks.metrics import METRICS


@pytest.mark.parametrize(
    ("judge", "gap"),
    [
        # {a, b} and {b, c}: 1/3. The judge against {b, c}, less that:
        ("bc", 1 - 1 / 3),
        ("", -1 / 3),
        ("d", -1 / 3),
        ("abcd", 1 / 2 - 1 / 3),
        ("ab", 0),
    ],
)
def test_by_hand(judge: str, gap: float) -> None:
    values = [frozenset("ab"), frozenset("bc"), frozenset(judge), frozenset("d")]
    panel = make_panel(values, np.array([0, 0]), np.array([0, 1]))
    assert METRICS["jaccard"].prepare(panel)(np.array([2]))[0] == pytest.approx(gap)


def test_empty_sets_are_alike() -> None:
    panel = make_panel([frozenset(), frozenset("a")], np.array([0, 0]), np.array([0, 0]))
    assert METRICS["jaccard"].prepare(panel)(np.array([0]))[0] == 0
    assert METRICS["jaccard"].prepare(panel)(np.array([1]))[0] == -1


def test_more_labels_than_a_word_has_bits() -> None:
    many = [f"{i:03}" for i in range(200)]
    values = [frozenset(many), frozenset(many[:100]), frozenset(many[50:])]
    panel = make_panel(values, np.array([0, 0]), np.array([0, 1]))
    # 100 of 200; the judge's 150 and the first 100 share 50 of 200
    assert METRICS["jaccard"].prepare(panel)(np.array([2])) == pytest.approx([-0.25, 0.25])
