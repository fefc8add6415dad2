import os
from pathlib import Path

import pytest

from booth._event_journal import SECRET_BYTES, open_event_journal


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "v.duckdb"


def test_lines_come_back_and_the_secret_stays(place: Path) -> None:
    with open_event_journal(place, "quick") as journal:
        journal.write({"what": "voter", "voter": "ann"})
        signed = journal.sign("link", "ann", 1)
    with open_event_journal(place, "quick") as journal:
        assert journal.lines == [{"what": "voter", "voter": "ann"}]
        assert journal.sign("link", "ann", 1) == signed
        assert journal.sign("link", "ann", 2) != signed
    with open_event_journal(place, "other") as journal:
        assert (journal.lines, journal.sign("link", "ann", 1) == signed) == ([], False)


def test_nobody_else_can_read_what_it_keeps(place: Path) -> None:
    before = os.umask(0)
    try:
        with open_event_journal(place, "quick") as journal:
            journal.write({})
    finally:
        os.umask(before)
    folder = place.with_name("v.duckdb.booth")
    assert folder.stat().st_mode & 0o777 == 0o700
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["quick.jsonl", "quick.lock", "secret"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_a_line_that_was_cut_is_left_behind_and_the_next_one_is_whole(place: Path) -> None:
    with open_event_journal(place, "quick") as journal:
        journal.write({"n": 1})
    journal = place.with_name("v.duckdb.booth") / "quick.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"n": 2, "half')
    with open_event_journal(place, "quick") as journal:
        assert (journal.lines, journal.unreadable) == ([{"n": 1}], 1)
        journal.write({"n": 3})
    with open_event_journal(place, "quick") as journal:
        assert journal.lines == [{"n": 1}, {"n": 3}]


def test_what_the_disk_does_not_take_did_not_happen(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_event_journal(place, "quick") as journal:
        journal.write({"n": 1})
        with monkeypatch.context() as patch:

            def full(_: int) -> None:
                raise OSError(28, "No space left on device")

            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space left"):
                journal.write({"n": 2})
        assert journal.lines == [{"n": 1}]
        journal.write({"n": 3})
        assert journal.lines == [{"n": 1}, {"n": 3}]


def test_a_line_is_written_before_it_is_synced(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    write, fsync = os.write, os.fsync
    with open_event_journal(place, "quick") as journal:
        monkeypatch.setattr(os, "write", lambda *a: (calls.append("write"), write(*a))[1])
        monkeypatch.setattr(os, "fsync", lambda *a: (calls.append("fsync"), fsync(*a))[1])
        journal.write({"n": 1})
        assert calls == ["write", "fsync"]
        journal.write({"n": 2})
    assert calls == ["write", "fsync"] * 2


def test_the_secret_is_on_the_disk_before_it_has_its_name(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int]] = []
    fsync, link = os.fsync, os.link

    def synced(file: int) -> None:
        calls.append(("fsync", os.fstat(file).st_size))
        fsync(file)

    def linked(draft: Path, path: Path) -> None:
        calls.append(("link", draft.stat().st_size))
        link(draft, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", linked)
    with open_event_journal(place, "quick"):
        assert calls[:2] == [("fsync", SECRET_BYTES), ("link", SECRET_BYTES)]


def test_a_study_has_one_booth_at_a_time(place: Path) -> None:
    with (
        open_event_journal(place, "quick"),
        open_event_journal(place, "other"),
        pytest.raises(ValueError, match="booth of study 'quick' is already open"),
    ):
        open_event_journal(place, "quick").__enter__()
    with open_event_journal(place, "quick") as journal:
        assert journal.lines == []


def test_a_broken_secret_is_named(place: Path) -> None:
    with open_event_journal(place, "quick"):
        pass
    secret = place.with_name("v.duckdb.booth") / "secret"
    assert len(secret.read_bytes()) == SECRET_BYTES
    secret.write_bytes(b"short")
    with pytest.raises(ValueError, match=r"is damaged: .*Remove the file"):
        open_event_journal(place, "quick").__enter__()
