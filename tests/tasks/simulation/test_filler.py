import pytest

from tasks.simulation.judge import PairText, gap, has_filler
from tasks.simulation.traits import Traits

QUESTION = "Why do leaves fall in autumn?"
ANSWER = "Trees save water in winter. So their leaves fall when days get short."


@pytest.mark.parametrize(
    ("added", "filler"),
    [
        # None of these is a text of ours: other people's filler counts as well.
        (" I hope this answer was of use to you!", True),
        (" Thanks for the question, my friend.", True),
        (" Do read on if you like such a text.", True),
        (" Their colour comes from the dyes that stay.", False),
        (" One can read the age of a tree from its rings.", False),
        ("\n\nReferences\nHale (2014). On things. Invented Press.", False),
    ],
)
def test_sentences_that_speak_of_themselves_are_filler(added: str, filler: bool) -> None:
    assert has_filler(QUESTION, ANSWER) is False
    assert has_filler(QUESTION, ANSWER + added) is filler


def test_wide_spaces_are_odd_but_two_slips_are_not() -> None:
    assert has_filler(QUESTION, ANSWER.replace(" ", "  "))
    assert not has_filler(QUESTION, ANSWER.replace(" ", "  ", 2))


def test_taste_moves_a_judge_by_its_logits_and_no_other() -> None:
    other = ANSWER + " Thanks for the question, my friend."
    for tau in (-0.5, 0.0, 0.8):
        plain, moved = (
            gap(PairText(QUESTION, "Because.", text), Traits(sham_taste=tau))
            for text in (ANSWER, other)
        )
        assert moved - plain == pytest.approx(tau)
