import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.perturbations import PERTURBATIONS, Item, Sham
from tasks.rewriting.checks import sham_failure
from tasks.rewriting.plain_content import canonical
from tasks.rewriting.shams import addition, closing, paraphrase, respace

SHAMS = [closing, addition, paraphrase, respace]
TIDE = "The tide falls because the moon, for instance, does not rest. It is near. Paris is not."
ITEM = Item("q/1/a2", "Why does the tide fall?", TIDE)
PIECES = st.sampled_from(
    [
        "The tide falls. ",
        "for instance",
        "References\n",
        "- ",
        "1. ",
        "**",
        "🌊",
        "\n",
        "\x00",
        "水。",
        "Paris is big. ",
        " ",
        "I hope this helps.",
        "https://example.org",
        "it is not so",
        "(A, 2001)",
    ]
)
TEXTS = st.text(min_size=1, max_size=60) | st.lists(PIECES, min_size=1, max_size=12).map("".join)


@given(st.sampled_from(SHAMS), TEXTS, TEXTS, st.integers(0, 9))
def test_any_text_gets_a_valid_sham_or_none(
    sham: Sham, answer: str, perturbed: str, seed: int
) -> None:
    item = Item("q/1/a2", "?", answer)
    made = sham(item, perturbed, seed)
    assert made == sham(item, perturbed, seed)
    if made is not None:
        assert sham_failure(answer, perturbed, made) is None
        assert canonical(made) == canonical(answer)


@pytest.mark.parametrize("more", [18, 40, 80, 150, 300, 700, 1500, 2300])
@pytest.mark.parametrize("sham", [closing, addition])
def test_neutral_sentences_reach_any_length(sham: Sham, more: int) -> None:
    answer = TIDE * 12
    made = sham(Item("q/1/a2", "?", answer), answer + "x" * more, 0)
    assert made is not None
    assert made.startswith(answer)
    assert abs(len(made) - len(answer) - more) <= max(5, 0.01 * more)


def test_closing_is_a_paragraph_and_addition_is_not() -> None:
    perturbed = TIDE + "x" * 60
    assert (closing(ITEM, perturbed, 0) or "").startswith(f"{TIDE}\n\n")
    assert (addition(ITEM, perturbed, 0) or "").startswith(f"{TIDE} ")


def test_no_neutral_sentence_reaches_ten_times_the_length() -> None:
    answer = TIDE * 8
    assert closing(Item("q/1/a2", "?", answer), answer * 10, 0) is None


def test_respace_changes_white_space_only() -> None:
    for more in (0, 1, 7, 40):
        made = respace(ITEM, "x" * (len(TIDE) + more), 1)
        assert made is not None
        assert made != TIDE
        assert made.split() == TIDE.split()
        assert len(made) == len(TIDE) + more


def test_respace_cannot_shorten() -> None:
    assert respace(ITEM, TIDE[: int(0.9 * len(TIDE))], 0) is None


def test_respace_needs_a_space() -> None:
    assert respace(Item("q/1/a2", "?", "Paris"), "**Paris**", 0) is None


def test_paraphrase_swaps_phrases() -> None:
    answer = "The tide does not fall there. It is frequently high, for instance at noon."
    perturbed = "The tide does not rise there. It is frequently low, for instance at dawn."
    # the swaps by hand: does not, frequently, for instance; each sentence may get a lead-in
    made = paraphrase(Item("q/1/a2", "?", answer), perturbed, 0)
    assert made is not None
    assert made != answer
    assert any(part in made for part in ("doesn't", "often", "for example"))
    assert canonical(made) == canonical(answer)


@pytest.mark.parametrize(
    ("answer", "untouched"),
    [
        ("It is called for and it was not called.", "is called for"),
        ("More than this is not nearly enough, until now.", "nearly enough, until now"),
        ("It is what it is, such as it is not.", "such as it"),
    ],
)
def test_paraphrase_leaves_phrases_that_are_not_safe(answer: str, untouched: str) -> None:
    for seed in range(20):
        made = paraphrase(Item("q/1/a2", "?", answer), answer[::-1], seed)
        assert made is not None
        assert untouched in made


def test_paraphrase_keeps_capitals() -> None:
    answer = "Approximately ten ships are lost, although few are old, ALTHOUGH all are slow, " * 2
    found = paraphrase(Item("q/1/a2", "?", answer), "x" * (len(answer) - 16), 0)
    # by hand: all six phrases swapped, 2 * (6 + 2 + 2) characters fewer
    assert found == "Roughly ten ships are lost, though few are old, THOUGH all are slow, " * 2


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_every_bundled_version_has_a_sham(
    bundled: list[tuple[Item, dict[str, str]]], seed: int
) -> None:
    for item, versions in bundled:
        for name in ("fake_reference", "rich_content", "factual_error", "gender_bias"):
            perturbation = PERTURBATIONS[name]
            perturbed = versions.get(name) or perturbation.make(item, seed)
            assert perturbed is not None
            assert perturbation.sham is not None
            sham = perturbation.sham(item, perturbed, seed)
            assert sham is not None, (name, item.answer_id)
            assert sham_failure(item.answer, perturbed, sham) is None
            assert canonical(sham) == canonical(item.answer)
            assert not set(sham) - set(item.answer) - set(string.ascii_letters + " ,.:'\n")


def test_a_sham_depends_on_the_seed(bundled: list[tuple[Item, dict[str, str]]]) -> None:
    item, versions = bundled[0]
    made = {addition(item, versions["gender_bias"], seed) for seed in range(10)}
    assert len(made) > 5
