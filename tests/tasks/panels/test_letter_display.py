from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.panels.letter_display import letter, letters


@given(st.integers(1, 9), st.data())
def test_two_share_a_letter_if_and_only_if_they_are_not_told_apart(
    count: int, data: st.DataObject
) -> None:
    every = list(combinations(range(count), 2))
    apart = data.draw(st.lists(st.sampled_from(every), unique=True)) if every else []
    groups = letters(count, apart)
    for i, j in every:
        assert any({i, j} <= group for group in groups) is ((i, j) not in apart)
    assert set().union(*groups) == set(range(count))
    assert not any(a < b for a in groups for b in groups)
    assert len(set(groups)) == len(groups)


@pytest.mark.parametrize(
    ("count", "apart", "groups"),
    [
        (0, [], []),
        (1, [], [{0}]),
        (3, [], [{0, 1, 2}]),
        (3, [(0, 1), (0, 2), (1, 2)], [{0}, {1}, {2}]),
        (4, [(0, 2), (0, 3), (1, 3)], [{0, 1}, {1, 2}, {2, 3}]),
        (4, [(0, 1), (2, 3)], [{0, 2}, {0, 3}, {1, 2}, {1, 3}]),
    ],
)
def test_by_hand(count: int, apart: list[tuple[int, int]], groups: list[set[int]]) -> None:
    assert letters(count, apart) == groups


def test_letters_go_on_after_z() -> None:
    assert [letter(n) for n in (0, 25, 26, 51, 52, 701, 702)] == [
        "a",
        "z",
        "aa",
        "az",
        "ba",
        "zz",
        "aaa",
    ]
