from hypothesis import given
from hypothesis import strategies as st

from tasks.perturbations import PERTURBATIONS, Item
from tasks.rewriting.text_splitting import words

RECIPE = PERTURBATIONS["rich_content"]
ITEM = Item("q/1/a2", "?", "Gravity pulls the water. At noon the tide falls, therefore boats rest.")
LETTERS = st.text(st.sampled_from("abcdefghij"), min_size=1, max_size=9)
PROSE = st.lists(
    st.lists(LETTERS, min_size=1, max_size=8).map(lambda ws: " ".join(ws).capitalize() + "."),
    min_size=1,
    max_size=6,
).map(" ".join)
RECORDED = "- **Gravity** pulls the water. 🔍\n- At noon the tide falls, therefore boats rest. 📘"


def test_is_reproducible_byte_by_byte() -> None:
    # recorded; if it changes, raise the recipe's version
    assert RECIPE.recipe == 1
    assert RECIPE.make(ITEM, 0) == RECORDED


@given(st.text(min_size=1), st.integers(0, 9))
def test_takes_any_text(answer: str, seed: int) -> None:
    made = RECIPE.make(Item("q/1/a2", "?", answer), seed)
    assert made == RECIPE.make(Item("q/1/a2", "?", answer), seed)
    assert (made is None) == (not answer.strip())


@given(PROSE, st.integers(0, 9))
def test_adds_and_drops_no_word_of_prose(answer: str, seed: int) -> None:
    made = RECIPE.make(Item("q/1/a2", "?", answer), seed) or ""
    assert RECIPE.check(answer, made) is None
    assert words(made) == words(answer)


def test_leaves_markup_alone() -> None:
    answer = "1. Define the container. `Content` is **important**\n2. Evaluate [nothing](x)."
    made = RECIPE.make(Item("q/1/a2", "?", answer), 0) or ""
    assert RECIPE.check(answer, made) is None
    assert "1. Define the **container**." in made
    assert "[nothing](x)" in made
    assert "`Content` is **important**" in made


def test_passes_on_the_bundled_questions(
    bundled: list[tuple[Item, dict[str, str]]],
) -> None:
    for item, _ in bundled:
        made = RECIPE.make(item, 0) or ""
        assert RECIPE.check(item.answer, made) is None
        assert "**" in made
