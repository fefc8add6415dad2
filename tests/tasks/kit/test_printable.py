import pytest

from tasks.kit.printable import first_few, joined_few


@pytest.mark.parametrize(
    ("names", "parts", "text"),
    [
        ("", [], ""),
        ("a", ["a"], "a"),
        ("ab", ["a", "b"], "a, b"),
        ("abc", ["a", "b", "1 more"], "a, b and 1 more"),
        ("abcde", ["a", "b", "3 more"], "a, b and 3 more"),
    ],
)
def test_the_first_names_and_how_many_more_there_are(
    names: str, parts: list[str], text: str
) -> None:
    assert first_few([*names], 2) == parts
    assert joined_few([*names], 2) == text


def test_of_the_first_of_many_names_the_total_is_given() -> None:
    assert first_few(["a", "b"], 2, 5) == ["a", "b", "3 more"]
    assert first_few(["a", "b"], 2, 2) == ["a", "b"]
