import pytest

from tasks._heads import heads, is_person, share_of


@pytest.mark.parametrize(
    ("judges", "told"),
    [
        (["a"], "1 judge"),
        (["a", "a", "b"], "2 judges"),
        (["a", "people/ann"], "1 judge and 1 person"),
        (["people/ann", "Ben"], "2 people"),
        ([], "0 judges"),
    ],
)
def test_judges_and_people_are_counted_apart(judges: list[str], told: str) -> None:
    assert heads(judges, {"Ben"}) == told


def test_who_is_a_person() -> None:
    assert is_person("people/ann")
    assert is_person("Ben", {"Ben"})
    assert not is_person("peoples/ann")
    assert not is_person("Ben")


def test_a_share_has_a_part_for_each_kind() -> None:
    of = ["a", "b", "people/ann"]
    assert share_of(["b"], of, ()) == "1 of 2 judges and 0 of 1 person"
    assert share_of(["b", "b"], of[:2], ()) == "1 of 2 judges"
    assert share_of([], of[2:], ()) == "0 of 1 person"
