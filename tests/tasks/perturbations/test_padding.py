from hypothesis import given
from hypothesis import strategies as st

from tasks.perturbations import PERTURBATIONS, Item
from tasks.rewriting.plain_content import canonical, features

RECIPE = PERTURBATIONS["padding"]
ANSWER = "The tide falls at noon. Paris is not on the sea. It is near. Boats rest on sand!"
ITEM = Item("q/1/a2", "?", ANSWER)
RECORDED = (
    "The tide falls at noon. Paris is not on the sea. It is near. Boats rest on sand!\n"
    "\n"
    "To come back to this point, the tide falls at noon."
)


def test_is_reproducible_byte_by_byte() -> None:
    # recorded; if it changes, raise the recipe's version
    assert RECIPE.recipe == 1
    assert RECIPE.make(ITEM, 0) == RECORDED


@given(
    st.text(min_size=1) | st.lists(st.sampled_from([ANSWER, "\n", " ", "- ", "\x00"])).map("".join)
)
def test_is_at_most_twice_as_long(answer: str) -> None:
    made = RECIPE.make(Item("q/1/a2", "?", answer), 1)
    assert made == RECIPE.make(Item("q/1/a2", "?", answer), 1)
    if made is not None:
        assert made.startswith(answer)
        assert len(answer) < len(made) <= 2 * len(answer)
        assert RECIPE.check(answer, made) is None
        assert canonical(made) == canonical(answer)


def test_cannot_pad_a_single_sentence_within_twice_its_length() -> None:
    assert RECIPE.make(Item("q/1/a2", "?", "The tide falls at noon."), 0) is None


def test_has_no_sham() -> None:
    assert RECIPE.sham is None


def test_passes_on_the_bundled_questions(
    bundled: list[tuple[Item, dict[str, str]]],
) -> None:
    for item, _ in bundled:
        made = RECIPE.make(item, 0) or ""
        assert RECIPE.check(item.answer, made) is None
        assert features(made).padding >= 1
