from pathlib import Path

import numpy as np
import pytest

from tasks.calibration.label_values import make_panel, read_labels
from tasks.calibration.similarity import find_metric, from_function
from tasks.metrics import METRICS

OWN = '''
def near(label, other):
    """One less the distance."""
    return 1 - abs(label - other) / 4

def wide(label, other):
    return 2

def broken(label, other):
    return label / 0

def seen(label, other):
    return float(isinstance(label, list) and len(label) == len(other))

CONSTANT = 1
'''


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return file


def test_a_function_of_the_users(own: Path) -> None:
    metric = find_metric(f"{own}:near")
    assert metric.summary == "One less the distance."
    panel = make_panel([1, 2, 4], np.array([0, 0, 0]), np.array([0, 1, 2]))
    # Of 1, 2, 4, a judge says 2. To 2, 4 it is off by 0, 2 and 1 by 1, 3: half a quarter each.
    # To 1, 2 it is off by 1, 0 and 4 by 3, 2.
    assert metric.prepare(panel)(np.array([1])) == pytest.approx([0.25, 0, 0.5])


def test_it_gets_lists_as_lists(own: Path) -> None:
    metric = find_metric(f"{own}:seen")
    values = read_labels("any", [["a"], ["b", "c"], ["d"]])
    panel = make_panel(values, np.array([0, 0]), np.array([0, 1]))
    assert metric.prepare(panel)(np.array([2])).tolist() == [0, 1]


def test_a_text_that_looks_like_a_list_stays_a_text() -> None:
    got = []

    def same(label: str, other: str) -> float:
        got.append(label)
        return float(label == other)

    values = read_labels("any", ['["a"]', "b"])
    panel = make_panel(values, np.array([0, 0]), np.array([0, 1]))
    from_function(same, "same").prepare(panel)
    assert set(got) == {'["a"]', "b"}


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("wide", ValueError, "returns 2.0 for 1 and 1; it must return a number from 0 to 1"),
        (
            "broken",
            ValueError,
            r"fails on 1 and 1: ZeroDivisionError.*\. Correct it; it must return",
        ),
        ("missing", LookupError, "defines no function 'missing'"),
        ("CONSTANT", LookupError, "defines no function 'CONSTANT'"),
    ],
)
def test_functions_that_are_none(own: Path, name: str, error: type[Exception], says: str) -> None:
    panel = make_panel([1, 2], np.array([0, 0]), np.array([0, 1]))
    with pytest.raises(error, match=says):
        find_metric(f"{own}:{name}").prepare(panel)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a file"):
        find_metric(f"{tmp_path / 'none.py'}:near")
    text = tmp_path / "own.txt"
    text.write_text(OWN)
    with pytest.raises(ValueError, match="is not a Python file"):
        find_metric(f"{text}:near")
    wrong = tmp_path / "wrong.py"
    wrong.write_text("1 +")
    with pytest.raises(
        ValueError, match=r"cannot be imported: SyntaxError.*\. Correct the file, or name"
    ):
        find_metric(f"{wrong}:near")


def test_names_are_of_the_catalogue() -> None:
    assert find_metric("jaccard") is METRICS["jaccard"]
    with pytest.raises(LookupError, match=r"no metric 'jacard'\. Did you mean 'jaccard'"):
        find_metric("jacard")
