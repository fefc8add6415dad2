"""Functions that are computed once for each frame that several statistics read."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import polars as pl
import pytest

from tasks.kit.memo import memo, memoised

FRAME = pl.DataFrame({"a": [1, 2, 3]})


@pytest.fixture
def calls() -> list[pl.DataFrame]:
    """Collect the frames for which the function below was computed."""
    return []


def test_a_frame_of_the_memo_is_computed_once_by_any_thread(calls: list[pl.DataFrame]) -> None:
    @memoised
    def total(frame: pl.DataFrame, more: int = 0) -> int:
        calls.append(frame)
        return int(frame["a"].sum()) + more

    with memo(FRAME), ThreadPoolExecutor(4) as pool:
        found = [pool.submit(copy_context().run, total, FRAME) for _ in range(20)]
        assert {each.result() for each in found} == {6}
        assert total(FRAME, 1) == 7
    assert len(calls) == 2
    assert total(FRAME) == 6
    assert len(calls) == 3


def test_results_for_other_frames_are_not_kept(calls: list[pl.DataFrame]) -> None:
    @memoised
    def total(frame: pl.DataFrame) -> int:
        calls.append(frame)
        return int(frame["a"].sum())

    with memo(FRAME):
        assert [total(FRAME.head(1)) for _ in range(2)] == [1, 1]
    assert len(calls) == 2


def test_an_error_is_not_kept(calls: list[pl.DataFrame]) -> None:
    @memoised
    def total(frame: pl.DataFrame) -> int:
        calls.append(frame)
        if len(calls) == 1:
            raise ValueError("the first call")
        return int(frame["a"].sum())

    with memo(FRAME):
        with pytest.raises(ValueError, match="the first call"):
            total(FRAME)
        assert total(FRAME) == 6
