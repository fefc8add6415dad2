from hypothesis import given
from hypothesis import strategies as st

from tasks.drawing.names import CHARACTERS, names
from tasks.reporting.wording import columns


def test_a_simulated_judge_is_marked_and_a_long_name_breaks_after_its_provider() -> None:
    known = names(
        [
            {"who": "offline/honest", "simulated": True},
            {"who": "openai/gpt-4o-mini-2024-07-18", "simulated": False},
            {"who": "short", "simulated": None},
        ]
    )
    assert known["offline/honest"][:2] == ("offline/honest", "(simulated)")
    assert known["openai/gpt-4o-mini-2024-07-18"][:2] == ("openai/", "gpt-4o-mini-2024-07-18")
    assert known["short"][:2] == ("short", "")


@given(st.dictionaries(st.text(min_size=1), st.booleans(), max_size=12))
def test_names_fit_and_stay_apart(judges: dict[str, bool]) -> None:
    known = names([{"who": w, "simulated": s} for w, s in judges.items()])
    assert len({(n.upper, n.lower) for n in known.values()}) == len(judges)
    assert all(
        columns(n.upper) <= CHARACTERS and columns(n.lower) <= CHARACTERS for n in known.values()
    )
