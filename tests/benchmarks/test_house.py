"""What benchmarks/house.py counts of docs/architecture.md."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
Import = Callable[[str], ModuleType]


@pytest.mark.parametrize(
    ("what", "most", "one"),
    [("vote", 15, "flows/running/casting.py"), ("ASR", 12, "warehouse/marts/asr.sql")],
)
def test_few_files_are_read_to_follow(benchmark: Import, what: str, most: int, one: str) -> None:
    found = benchmark("house").files_to_follow(ROOT, what)
    assert one in found
    assert 5 < len(found) <= most


def test_a_file_that_does_not_exist_is_an_error(benchmark: Import, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "architecture.md"
    page.write_text(
        "1. `flows/gone.py` does it.\n\nTo follow one vote, read the files of step 1.\n"
    )
    with pytest.raises(ValueError, match=r"do not exist: \['flows/gone.py'\]"):
        benchmark("house").files_to_follow(tmp_path, "vote")
