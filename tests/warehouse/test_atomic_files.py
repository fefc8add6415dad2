import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from waiting import PATIENCE_SECONDS

from warehouse.atomic_files import write_private


def test_a_file_is_replaced_and_its_owners_alone(tmp_path: Path) -> None:
    place = tmp_path / "new" / "file"
    for content in (b"one", b"two"):
        write_private(place, content)
        assert place.read_bytes() == content
    assert place.stat().st_mode & 0o777 == 0o600
    assert list(place.parent.iterdir()) == [place]


def test_a_pipe_or_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_bytes)
        write_private(pipe, b"rows")
        assert read.result(timeout=PATIENCE_SECONDS) == b"rows"
    assert pipe.is_fifo()


def test_an_error_names_the_file_and_not_the_draft() -> None:
    with pytest.raises(OSError, match="cannot be written") as raised:
        write_private(Path("/proc/rows.csv"), b"rows")
    assert raised.value.filename == "/proc/rows.csv"
    assert raised.value.strerror == "cannot be written (No such file or directory)"


def test_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is a folder\. Name a file"):
        write_private(tmp_path, b"")
