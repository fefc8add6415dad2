import re

from hypothesis import given
from hypothesis import strategies as st

from tasks.perturbations import PERTURBATIONS, Item
from tasks.rewriting.checks import additive

RECIPE = PERTURBATIONS["fake_reference"]
ITEM = Item("q/1/a2", "Why does the tide change?", "The tide falls.")
ENTRY = (
    r"[A-Z][a-z]+, [A-Z]\. \((?:19|20)\d\d\)\. [^.\n]+\. "
    r"(?:https://example\.org/[a-z]+-\d{4}|[A-Z][A-Za-z& ]+\.)"
)
RECORDED = (
    "The tide falls.\n"
    "\n"
    "References\n"
    "Hallamore, T. (2001). Change Explained. Morrowgate Publishing.\n"
    "Norrigan, L. (1987). Foundations of Change. Quillmoor Press.\n"
    "Vantorre, B. (2018). Essays on Change. Fennbridge House."
)


def test_is_reproducible_byte_by_byte() -> None:
    # recorded; if it changes, raise the recipe's version
    assert RECIPE.recipe == 1
    assert RECIPE.make(ITEM, 0) == RECORDED


@given(st.text(), st.text(min_size=1), st.integers(0, 99))
def test_appends_one_to_three_entries(question: str, answer: str, seed: int) -> None:
    made = RECIPE.make(Item("q/1/a2", question, answer), seed) or ""
    assert made == RECIPE.make(Item("q/1/a2", question, answer), seed)
    assert made.startswith(f"{answer}\n\nReferences\n")
    entries = made.removeprefix(f"{answer}\n\nReferences\n").split("\n")
    assert 1 <= len(entries) <= 3
    assert all(re.fullmatch(ENTRY, entry) for entry in entries), entries
    assert len({entry.split(",")[0] for entry in entries}) == len(entries)
    if any(character.isalnum() for character in answer):
        assert additive(answer, made) is None


def test_names_a_topic_of_the_question() -> None:
    for seed in range(10):
        made = RECIPE.make(ITEM._replace(question="Explain what erosion is."), seed) or ""
        assert "Erosion" in made


def test_numbers_of_entries_vary() -> None:
    counts = {(RECIPE.make(ITEM, seed) or "").count("\n") - 2 for seed in range(30)}
    assert counts == {1, 2, 3}


def test_passes_on_the_bundled_questions(
    bundled: list[tuple[Item, dict[str, str]]],
) -> None:
    for item, _ in bundled:
        assert RECIPE.check(item.answer, RECIPE.make(item, 0) or "") is None
