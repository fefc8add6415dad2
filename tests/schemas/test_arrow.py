from datetime import UTC, date, datetime

import duckdb
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas import arrow
from schemas.arrow import fetch, lend

TEXT = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@pytest.fixture(params=[True, False], ids=["copied", "streamed"], autouse=True)
def _copied(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go both ways: with pyarrow in the environment, where this is safe, and without it."""
    if request.param:
        monkeypatch.setattr(arrow, "find_spec", lambda _: object())


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXT, st.none() | st.integers(-(2**63), 2**63 - 1)), max_size=5))
def test_what_goes_in_comes_out(rows: list[tuple[str | None, int | None]]) -> None:
    frame = pl.DataFrame(rows, schema={"text": pl.String, "number": pl.Int64}, orient="row")
    with duckdb.connect() as connection:
        lend(connection, "there", frame)
        assert fetch(connection, "select * from there").equals(frame)


def test_every_type_of_the_schemas_comes_back() -> None:
    frame = pl.DataFrame(
        {
            "moment": [datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC), None],
            "day": [date(2024, 1, 1), None],
            "share": [0.1 + 0.2, None],
            "flag": [None, True],
        },
        schema_overrides={"moment": pl.Datetime("us", "UTC")},
    )
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        lend(connection, "there", frame)
        assert fetch(connection, "select * from there").equals(frame)


def test_a_frame_takes_the_place_of_another_and_can_be_filtered_by_text() -> None:
    with duckdb.connect() as connection:
        lend(connection, "there", pl.DataFrame({"b": [1]}))
        lend(connection, "there", pl.DataFrame({"a": ["x", "y", None]}))
        found = fetch(connection, "select a from there where a = ?", ["y"])
        assert found.to_dict(as_series=False) == {"a": ["y"]}
        assert fetch(connection, "select a from there where a = 'z'").schema == {"a": pl.String}


@pytest.mark.parametrize("sql", ["", "-- nothing", "create table t (a integer)"])
def test_what_returns_no_rows_is_an_empty_frame(sql: str) -> None:
    with duckdb.connect() as connection:
        assert fetch(connection, sql).shape == (0, 0)
