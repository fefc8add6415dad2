import pytest

from tasks.perturbations import PERTURBATIONS, Item

RECIPE = PERTURBATIONS["gender_bias"]


def test_has_no_template() -> None:
    assert RECIPE.make(Item("q/1/a2", "?", "The tide falls."), 0) is None
    assert RECIPE.kind == "detract"


def test_passes_on_the_bundled_questions(
    bundled: list[tuple[Item, dict[str, str]]],
) -> None:
    for item, versions in bundled:
        assert RECIPE.check(item.answer, versions["gender_bias"]) is None, item.answer_id


@pytest.mark.parametrize("change", [str.upper, lambda text: f"**{text}**", lambda text: text])
def test_refuses_a_version_that_says_the_same(
    bundled: list[tuple[Item, dict[str, str]]], change: object
) -> None:
    assert callable(change)
    item, _ = bundled[0]
    assert RECIPE.check(item.answer, change(item.answer)) is not None
