"""Ballots as files, for teams that label elsewhere: written out, and read back with choices."""

import csv
import io
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from booth._booth import Booth
from booth._seats import Seat
from schemas.judging import Ballots, Votes
from tasks.judging.people import TIMED, UNTIMED
from warehouse.private import write_private

COLUMNS = ("ballot_id", "question", "answer_1", "answer_2", "choice")
WORDS = {
    "1": "first",
    "answer 1": "first",
    "2": "second",
    "answer 2": "second",
    "tie": "tie",
    "not familiar": "abstain",
}
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
"""What makes a spreadsheet compute a cell, and the mark itself that keeps it from that."""

MOST_BYTES = 256 * 2**20
SHOWN = 3


class _Row(NamedTuple):
    where: str
    cells: dict[str, Any]


def export_ballots(booth: Booth, seat: Seat, path: Path) -> str:
    """Write the ballots of a voter that have no choice yet, in the voter's order.

    Raises
    ------
    ValueError
        If there is none: no file is written.
    """
    suffix = _form(path)
    rows = [
        {**_shown(booth, seat, ballot), "choice": ""}
        for ballot in seat.order
        if ballot not in seat.chosen and ballot not in seat.sealed
    ]
    if not rows:
        raise ValueError(
            f"{seat.voter} has a choice on each of {len(seat.order)} ballots: nothing to export. "
            "A higher --limit, or 0 for none, shows more."
        )
    if suffix == ".jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        draft = text.encode()
    else:
        lines = io.StringIO()
        writer = csv.DictWriter(lines, COLUMNS)
        writer.writeheader()
        writer.writerows({name: guarded(cell) for name, cell in row.items()} for row in rows)
        # Spreadsheets take a file for Latin-1 unless it begins like this.
        draft = lines.getvalue().encode("utf-8-sig")
    write_private(path, draft)
    return (
        f"{len(rows)} ballots of {seat.voter} in {path}. Fill in `choice`: 1, 2, tie or not "
        f"familiar; then --import it for the same voter."
    )


def import_votes(booth: Booth, seat: Seat, path: Path) -> str:
    """Save the choices in a file as votes, all of them or none.

    Raises
    ------
    ValueError
        If a row is not one of the voter's ballots, its texts are not that ballot's, its choice
        cannot be read, or it contradicts a vote that is there.
    """
    read = list(_rows(path))
    filled = [row for row in read if str(row.cells.get("choice") or "").strip()]
    problems: list[str] = []
    votes: dict[str, dict[str, Any]] = {}
    now = datetime.now(UTC)
    for row in filled:
        try:
            vote = _vote(booth, seat, row.cells)
        except ValueError as error:
            problems.append(f"{row.where}: {error}")
            continue
        if vote["ballot_id"] in votes:
            problems.append(f"{row.where}: ballot {vote['ballot_id']} stands in the file twice")
        votes[vote["ballot_id"]] = {**vote, "cast_at": now}
    there = booth.votes_of(votes)
    problems += [
        f"ballot {ballot} has the vote {choice!r} already, and votes never change"
        for ballot, choice in there.items()
        if choice != votes[ballot]["choice"]
    ]
    if problems:
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise ValueError(f"{path}: {'; '.join(problems[:SHOWN])}{more}. Nothing was saved.")
    new = [vote for ballot, vote in votes.items() if ballot not in there]
    if new:
        ids = [vote["ballot_id"] for vote in new]
        ballots = Ballots.of(seat.every.filter(pl.col("ballot_id").is_in(ids)))
        booth.office.save(seat.voter, ballots, Votes.of(pl.DataFrame(new)))
        seat.seal(ids)
    return (
        f"{len(new)} votes of {seat.voter} saved; {len(there)} were there, "
        f"{len(read) - len(filled)} rows have no choice. `voirdire remeasure {booth.study}` puts "
        "them into the table."
    )


def guarded(cell: str) -> str:
    """Keep a spreadsheet from computing a cell; :func:`unguarded` gives it back."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def unguarded(cell: str) -> str:
    """Return what :func:`guarded` was given."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def _shown(booth: Booth, seat: Seat, ballot: str) -> dict[str, str]:
    question, (first, second) = booth.texts_of(seat, ballot)
    return {"ballot_id": ballot, "question": question, "answer_1": first, "answer_2": second}


def _vote(booth: Booth, seat: Seat, cells: dict[str, Any]) -> dict[str, Any]:
    ballot = str(cells.get("ballot_id") or "").strip()
    if not booth.is_ballot_of(seat, ballot):
        raise ValueError(
            f"ballot_id {ballot!r:.60} is no ballot of {seat.voter} in study {booth.study}"
        )
    shown = _shown(booth, seat, ballot)
    for name in ("question", "answer_1", "answer_2"):
        if cells.get(name) is not None and _plain(cells[name]) != _plain(shown[name]):
            raise ValueError(
                f"{name} is not that of ballot {ballot}: was the file sorted in parts?"
            )
    said = str(cells["choice"]).strip()
    choice = WORDS.get(" ".join(said.casefold().split()))
    if choice is None:
        raise ValueError(f"choice {said!r:.60} must be 1, 2, tie or not familiar")
    if ballot in seat.chosen:
        raise ValueError(f"{seat.voter} has voted on ballot {ballot} in the booth")
    seconds = _seconds(cells.get("seconds"))
    return {
        "ballot_id": ballot,
        "choice": choice,
        "raw": said,
        "attempts": 1,
        "seconds": seconds or 0.0,
        "finish_reason": UNTIMED if seconds is None else TIMED,
    }


def _seconds(cell: Any) -> float | None:
    if cell is None or str(cell).strip() == "":
        return None
    try:
        seconds = float(cell)
    except (TypeError, ValueError):
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"seconds {cell!r:.60} must be a number, 0 or more")
    return seconds


def _plain(text: Any) -> str:
    """Leave out what programs that edit files change in a text."""
    return " ".join(str(text).split())


def _form(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in {".csv", ".jsonl"}:
        raise ValueError(f"{path} must end in .jsonl or .csv.")
    return suffix


def _rows(path: Path) -> Iterator[_Row]:
    """Read a file of ballots, row by row."""
    suffix = _form(path)
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} has more than {MOST_BYTES // 2**20} MiB: no file of ballots.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 (byte {error.start}). Save it as UTF-8.") from error
    yield from _json_rows(text) if suffix == ".jsonl" else _csv_rows(text, path)


def _json_rows(text: str) -> Iterator[_Row]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number} is not JSON: {error}.") from error
        if not isinstance(row, dict) or not {"ballot_id", "choice"} <= row.keys():
            raise ValueError(f"line {number} must be an object with ballot_id and choice.")
        yield _Row(f"line {number}", row)


def _csv_rows(text: str, path: Path) -> Iterator[_Row]:
    header = text.split("\n", 1)[0]
    # A spreadsheet of a country with decimal commas writes semicolons.
    delimiter = ";" if header.count(";") > header.count(",") else ","
    # The limit is the whole process's.
    before = csv.field_size_limit(MOST_BYTES)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        if not {"ballot_id", "choice"} <= set(reader.fieldnames or []):
            found = ", ".join(reader.fieldnames or []) or "none"
            raise ValueError(f"{path} has no columns ballot_id and choice (found: {found:.200}).")
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(f"{path}, line {reader.line_num}: too many or too few cells.")
            cells = {name: unguarded(cell) for name, cell in row.items()}
            yield _Row(f"line {reader.line_num}", cells)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}.") from error
    finally:
        csv.field_size_limit(before)
