import re

import pytest

from tasks.rewriting.phrases import (
    NEUTRAL,
    NEUTRAL_LEADS,
    PADDING_LEADS,
    SAFE_AFTER,
    SAFE_BEFORE,
    SWAPS,
)
from tasks.rewriting.plain_content import canonical, features
from tasks.rewriting.text_splitting import sentences, words


def test_there_are_enough_neutral_sentences() -> None:
    assert len({canonical(f"The tide. {s}") for s in NEUTRAL}) == 1
    assert len(set(NEUTRAL)) == len(NEUTRAL) >= 45


@pytest.mark.parametrize("sentence", NEUTRAL)
def test_a_neutral_sentence_is_plain(sentence: str) -> None:
    assert 15 <= len(sentence) <= 130
    assert re.fullmatch(r"[A-Z][A-Za-z, ]+\.", sentence)
    assert sentences(sentence) == [sentence]
    assert features(sentence)[:4] == (0, 0, 0, 0)


def test_swaps_settle_in_one_go() -> None:
    olds = [words(old) for old in SWAPS]
    for new in SWAPS.values():
        found = words(new)
        spots = [found[i : i + len(old)] == old for old in olds for i in range(len(found))]
        assert not any(spots), new


def test_patterns_belong_to_swaps() -> None:
    assert SAFE_BEFORE.keys() | SAFE_AFTER.keys() <= SWAPS.keys()


def test_lead_ins_are_removed() -> None:
    for lead in (*PADDING_LEADS, *NEUTRAL_LEADS):
        assert canonical(f"{lead}, the tide falls.") == "the tide falls"
