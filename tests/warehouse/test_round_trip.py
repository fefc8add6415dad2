from datetime import UTC, datetime
from itertools import count
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.curation import Questions
from schemas.judging import Ballots, Judges, Pairs, Prompts, Votes
from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

TEXT = st.text(min_size=1) | st.sampled_from(
    ["\0", "a\0b", "null", "NULL", "'\"\\", "\r\n", "\U0001f600"]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
INTEGERS = st.integers(0, 2**63 - 1)
numbers = count()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return Warehouse(tmp_path_factory.mktemp("shelf") / "v.duckdb")


@settings(max_examples=20, deadline=None)
@given(rows=st.lists(st.tuples(TEXT, TEXT | st.none()), min_size=1, max_size=5))
def test_texts_come_back_as_they_were(shelf: Warehouse, rows: list[tuple[str, str | None]]) -> None:
    example = next(numbers)
    frame = Questions.of(
        pl.DataFrame(
            [
                {"question_id": f"{example}/{i}", "dataset": "d", "question": q, "category": c}
                for i, (q, c) in enumerate(rows)
            ],
            schema_overrides={"category": pl.String},
        )
    )
    shelf.save([Saving(Questions, frame)], run="r1")
    assert shelf.read(Questions, among=frame.select("question_id")).equals(frame)
    assert shelf.save([Saving(Questions, frame)], run="r2") == 0


@settings(max_examples=20, deadline=None)
@given(
    drawn=st.fixed_dictionaries(
        {
            "wave": st.text(),
            "estimate": FLOATS | st.none(),
            "low": FLOATS | st.none(),
            "standard_error": FLOATS.map(abs) | st.none(),
            "n": INTEGERS,
            "hits": INTEGERS | st.none(),
            "simulated": st.booleans() | st.none(),
        }
    )
)
def test_numbers_come_back_as_they_were(shelf: Warehouse, drawn: dict[str, Any]) -> None:
    row = {
        "statistic": "asr",
        "dataset": "d",
        "judge": "j",
        "prompt": "p",
        "mode": "paper",
        "subgroup": "",
        "clusters": 1,
        "dropped": 0,
        "votes_per_pair": 1,
        "method": "m",
    }
    frame = Estimates.of(pl.DataFrame([{**row, **drawn}]))
    study = str(next(numbers))
    shelf.save([Saving(Estimates, frame)], run="r1", study=study)
    assert shelf.read(Estimates, among=pl.DataFrame({"study": [study]})).equals(frame)


@settings(max_examples=15, deadline=None)
@given(moment=st.datetimes(timezones=st.just(UTC)), raw=st.text(), seconds=FLOATS.map(abs))
def test_votes_come_back_as_they_were(
    shelf: Warehouse, moment: datetime, raw: str, seconds: float
) -> None:
    key = str(next(numbers))
    facts = {
        Questions: {"question_id": "q", "dataset": "d", "question": "?"},
        Judges: {
            "judge": "j",
            "provider": "p",
            "model": "m",
            "params": "{}",
            "system": "",
            "simulated": False,
        },
        Prompts: {
            "prompt": "p",
            "kind": "pair",
            "source": "s",
            "verdict": "tag",
            "system": "",
            "user": "u",
        },
        Pairs: {
            "pair_id": "p",
            "dataset": "d",
            "sample": "s",
            "cluster": "q",
            "arm": "control",
            "question": "?",
            "anchor": "a",
            "target": "b",
        },
        Ballots: {
            "ballot_id": key,
            "pair_id": "p",
            "judge": "j",
            "prompt": "p",
            "wave": key,
            "shown_first": "anchor",
            "repeat": 0,
        },
        Votes: {
            "ballot_id": key,
            "choice": "tie",
            "raw": raw,
            "seconds": seconds,
            "attempts": 1,
            "cast_at": moment,
        },
    }
    shelf.save(
        [Saving(model, model.of(pl.DataFrame([row]))) for model, row in facts.items()], run="r"
    )
    found = shelf.read(Votes, among=pl.DataFrame({"ballot_id": [key]}))
    assert found.select("raw", "seconds", "cast_at").rows() == [(raw, seconds, moment)]
    assert found.equals(Votes.of(pl.DataFrame([facts[Votes]])))
