import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.readers.questions import load_own


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[str, bytes], str]:
    def refuse(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=r"\w") as error:
            load_own(tmp_path / name)
        return str(error.value)

    return refuse


def test_stops_after_a_hundred_problems(refusal: Callable[[str, bytes], str]) -> None:
    error = refusal("mine.jsonl", b'{"x": 1}\n' * 500_000)
    assert error.startswith(
        "mine.jsonl has 100 or more problems.\n  mine.jsonl, line 1: unknown column"
    )
    assert "\n  mine.jsonl, line 1 and 32 more: field 'target' is missing" in error


HUGE = 100_000_000


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("mine.jsonl", b'{"question_id": "1", "target": "', b'"}\n'),
        ("mine.csv", b"question_id,question,anchor,target\n1,q,a,", b"\n"),
        ("lines.csv", b'question_id,question,anchor,target\n1,q,a,"', b'"\n'),
    ],
)
def test_refuses_a_huge_answer_without_holding_it(
    tmp_path: Path, name: str, start: bytes, end: bytes
) -> None:
    path = tmp_path / name
    filling = b"x" * 99 + (b"\n" if name == "lines.csv" else b"x")
    path.write_bytes(start + filling * (HUGE // 100) + end)
    tracemalloc.start()
    with pytest.raises(ValueError, match=f"{name}, line"):
        load_own(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60_000_000


def test_many_unknown_fields_are_refused(refusal: Callable[[str, bytes], str]) -> None:
    line = json.dumps({f"field {n}": n for n in range(10_000)}).encode()
    header = ",".join(f"field {n}" for n in range(10_000)).encode()
    assert "unknown columns 'field 0', 'field 1', " in refusal("mine.jsonl", line)
    assert "unknown columns 'field 0', 'field 1', " in refusal("mine.csv", header)
