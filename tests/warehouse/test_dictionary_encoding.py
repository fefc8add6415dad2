"""Texts leave DuckDB as numbers of names, and come out as the same texts."""

import duckdb
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warehouse._dictionary_encoding import DictionaryEncoding

TEXTS = st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1)))


def _through(texts: list[str | None]) -> pl.Series:
    with duckdb.connect() as connection:
        connection.execute("create table t (name varchar, number integer)")
        rows = [(text, number) for number, text in enumerate(texts)]
        if rows:
            connection.executemany("insert into t values (?, ?)", rows)
        encoding = DictionaryEncoding.of(connection, "t where true", ["name"])
        return encoding.fetch("select name, number from t").sort("number")["name"]


@settings(max_examples=40, deadline=None)
@given(TEXTS)
@example([])
@example([None, None])
@example(["", "'; drop table t; --", '"', None, "é", "🙂", "a", "A", "10", "9"])
def test_texts_come_back_as_they_were_and_names_stand_in_order(texts: list[str | None]) -> None:
    found = _through(texts)
    assert found.cast(pl.String).to_list() == texts
    assert isinstance(found.dtype, pl.Enum)
    names = found.dtype.categories.to_list()
    assert names == sorted({text for text in texts if text is not None}, key=str.encode)


@pytest.mark.parametrize("many", [254, 255, 256, 257])
def test_numbers_of_any_width_are_the_right_names(many: int) -> None:
    texts: list[str | None] = [f"name {number:05}" for number in range(many)]
    assert _through([*texts, None]).cast(pl.String).to_list() == [*texts, None]
