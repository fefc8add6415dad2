"""Export ballots to files for labelling elsewhere, and import the choices."""

import csv
import io
import json
import math
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from booth._booth import Booth
from booth._voters import Seat
from schemas.judging import Ballots, Votes
from tasks.judging.people import TIMED, UNTIMED
from tasks.kit.printable import several
from tasks.readers.bounded import (
    MAX_LINE,
    FileLimits,
    FileRow,
    Problems,
    Reader,
    Table,
    csv_table,
    json_lines,
    open_table,
)
from warehouse.atomic_files import write_private

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
"""First characters that make a spreadsheet compute a cell, and the escape character itself."""

LIMITS = FileLimits(size=256 * 2**20)
SHOWN = 3


def export_ballots(booth: Booth, seat: Seat, path: Path) -> str:
    """Write the ballots of a voter that have no choice yet, in the voter's order.

    Raise ValueError if there is none: no file is written.
    """
    suffix = _form(path)
    rows = [
        {**_shown(booth, seat, ballot), "choice": ""}
        for ballot in seat.order
        if ballot not in seat.chosen and ballot not in seat.saved
    ]
    if not rows:
        raise ValueError(
            f"nothing to export: {seat.voter} has made a choice on each of {len(seat.order)} "
            "ballots. A higher --limit, or --limit 0 for no limit, adds ballots."
        )
    if suffix == ".jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        draft = text.encode()
    else:
        lines = io.StringIO()
        writer = csv.DictWriter(lines, COLUMNS)
        writer.writeheader()
        writer.writerows({name: guarded(cell) for name, cell in row.items()} for row in rows)
        # Without a byte order mark, spreadsheets read the file as Latin-1.
        draft = lines.getvalue().encode("utf-8-sig")
    write_private(path, draft)
    return (
        f"Wrote {several(len(rows), 'ballot')} of {seat.voter} to {path}. Fill in the column "
        "`choice` with 1, 2, tie or not familiar, then --import the file for the same voter."
    )


def import_votes(booth: Booth, seat: Seat, path: Path) -> str:
    """Save the choices in a file as votes, all of them or none.

    Raise ValueError if a row is not a ballot of the voter, its texts differ from the ballot's, its
    choice cannot be read, or it contradicts a saved vote.
    """
    read = _rows(path)
    filled = [row for row in read if str(row.fields.get("choice") or "").strip()]
    problems: list[str] = []
    votes: dict[str, dict[str, Any]] = {}
    now = datetime.now(UTC)
    for row in filled:
        try:
            vote = _vote(booth, seat, row.fields)
        except ValueError as error:
            problems.append(f"{row.where}: {error}")
            continue
        if vote["ballot_id"] in votes:
            problems.append(
                f"{row.where}: ballot {vote['ballot_id']} occurs twice in the file. Keep one line"
            )
        votes[vote["ballot_id"]] = {**vote, "cast_at": now}
    there = booth.votes_of(votes)
    problems += [
        f"ballot {ballot} already has the saved vote {choice!r}, which cannot be changed. Leave "
        "its choice empty in the file"
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
        booth.writer.save(seat.voter, ballots, Votes.of(pl.DataFrame(new)))
        seat.mark_saved(ids)
    return (
        f"Saved {several(len(new), 'vote')} of {seat.voter}. The file also has "
        f"{several(len(there), 'vote')} saved before and "
        f"{several(len(read) - len(filled), 'row')} without a choice. "
        f"`voirdire remeasure {booth.study}` adds the votes to the results."
    )


def guarded(cell: str) -> str:
    """Escape a cell against formula injection; :func:`unguarded` reverses it."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def unguarded(cell: str) -> str:
    """Reverse :func:`guarded`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def _shown(booth: Booth, seat: Seat, ballot: str) -> dict[str, str]:
    question, (first, second) = booth.texts_of(seat, ballot)
    return {"ballot_id": ballot, "question": question, "answer_1": first, "answer_2": second}


def _vote(booth: Booth, seat: Seat, cells: dict[str, Any]) -> dict[str, Any]:
    ballot = str(cells.get("ballot_id") or "").strip()
    if not booth.is_ballot_of(seat, ballot):
        raise ValueError(
            f"ballot_id {ballot!r:.60} is not a ballot of {seat.voter} in study {booth.study}. "
            "Remove the line, or use a file that --export wrote for this voter"
        )
    shown = _shown(booth, seat, ballot)
    for name in ("question", "answer_1", "answer_2"):
        if cells.get(name) is not None and _plain(cells[name]) != _plain(shown[name]):
            raise ValueError(
                f"{name} differs from the text of ballot {ballot}. Perhaps only some columns of "
                "the file were sorted: --export it again, and enter the choices there"
            )
    said = str(cells["choice"]).strip()
    choice = WORDS.get(" ".join(said.casefold().split()))
    if choice is None:
        raise ValueError(f"choice {said!r:.60} must be 1, 2, tie or not familiar")
    if ballot in seat.chosen:
        raise ValueError(
            f"{seat.voter} has already voted on ballot {ballot} in the booth. Leave its choice "
            "empty in the file"
        )
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
        raise ValueError(f"seconds {cell!r:.60} must be a number that is not negative")
    return seconds


def _plain(text: Any) -> str:
    """Normalise whitespace, which editors change."""
    return " ".join(str(text).split())


def _form(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in {".csv", ".jsonl"}:
        raise ValueError(f"{path} has an unknown format. Use a file that ends in .jsonl or .csv.")
    return suffix


def _rows(path: Path) -> list[FileRow]:
    problems = Problems(path.name, limits=LIMITS)
    # Answers may be longer than a cell usually is. The limit applies to the whole process.
    before = csv.field_size_limit(MAX_LINE)
    try:
        table = open_table(path, problems, READERS)
        problems.check()
        if table.columns is not None:
            _require(table.columns, "header", problems)
        rows = [_checked(row, table, problems) for row in table.rows]
    finally:
        csv.field_size_limit(before)
    problems.check()
    return rows


def _checked(row: FileRow, table: Table, problems: Problems) -> FileRow:
    if table.columns is None:
        _require(row.fields, row.where, problems)
        return row
    return FileRow(row.where, {c: unguarded(row.fields.get(c, "")) for c in table.columns})


def _require(found: Collection[str], where: str, problems: Problems) -> None:
    missing = [name for name in ("ballot_id", "choice") if name not in found]
    if missing:
        problems.refuse(where, f"there is no {' and no '.join(missing)}", "Use a file of --export.")


READERS: dict[str, Reader] = {".jsonl": json_lines, ".csv": csv_table}
