"""Read JSON members of a ZIP archive, stored, deflated or zstd, within limits.

Python 3.11 cannot unpack zstd, but DuckDB can: members are copied, still packed, one after the
other into one file of JSON objects.
"""

import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import polars as pl

from tasks.kit.printable import cause, several
from tasks.readers.bounded import MAX_FILE, Problems, clip
from tasks.readers.duckdb_reader import file_literal, quoted, reported, run_query

ZSTANDARD = 93
KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTANDARD)
MOST_MEMBERS = 1_000_000
LARGEST = 64_000_000
"""Maximum size of one member in bytes, unpacked."""
MOST_UNPACKED = 8 << 30
"""Maximum size of all members together."""
MOST_RATIO = 500
"""Maximum size unpacked over size packed of a large log; JSON shrinks to a tenth or less."""
LOCAL_HEADER = struct.Struct("<26x2H")
"""Start of a member in the archive: lengths of its name and of its extra field."""
AGAIN = "Copy or export the log again."
BOMB = "This is no log that a tool wrote (a zip bomb?). Do not use it."
FRAME, SKIPPABLE = 0xFD2FB528, range(0x184D2A50, 0x184D2A60)
"""Magic numbers of zstd."""
RAW, RUN = 0, 1
"""Kinds of blocks: as they are, and one byte repeated."""
BLOCK = 128 << 10
"""Maximum size of a block of zstd, unpacked."""


def members(path: Path, problems: Problems) -> dict[str, zipfile.ZipInfo]:
    """Return the members of an archive by name.

    Raise ValueError if it is damaged, or a member exceeds a limit or is packed in an unknown way.
    """
    found: list[zipfile.ZipInfo] = []
    try:
        with zipfile.ZipFile(path) as archive:
            found = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        problems.add("", f"is not a complete ZIP archive ({cause(error)})", AGAIN)
    if len(found) > MOST_MEMBERS:
        problems.add("", f"has {len(found)} members; at most {MOST_MEMBERS} are allowed", AGAIN)
    if len({each.filename for each in found}) < len(found):
        problems.add("", "has two members of the same name", AGAIN)
    _refuse_bombs(path, found, problems)
    large = [each for each in found if each.file_size > LARGEST]
    if large:
        most = max(large, key=lambda each: each.file_size)
        others = f" ({len(large)} members have too many)" if len(large) > 1 else ""
        what = f"has {most.file_size} bytes unpacked; at most {LARGEST} are allowed{others}"
        problems.add(f"member {clip(most.filename)}", what, "Log fewer raw requests.")
    for each in found:
        if each.compress_type not in KNOWN or each.flag_bits & 1:
            what = f"is encrypted or packed by the unknown method {each.compress_type}"
            problems.add(f"member {clip(each.filename)}", what, AGAIN)
    problems.check()
    return {each.filename: each for each in found}


def _refuse_bombs(path: Path, found: Sequence[zipfile.ZipInfo], problems: Problems) -> None:
    """Raise one error for an archive that would unpack to far more than a log.

    Members that share their bytes, many members, or much too well packed ones.

    A ValueError gives the sizes.
    """
    if not found:
        return
    unpacked, packed = (
        sum(getattr(each, size) for each in found) for size in ("file_size", "compress_size")
    )
    there = path.stat().st_size
    if packed > there:
        what = f"has {there} bytes, but its {len(found)} members claim {packed}: they overlap"
        problems.add("", what, BOMB)
    elif unpacked > MOST_UNPACKED:
        what = f"has {unpacked} bytes unpacked; at most {MOST_UNPACKED} are allowed"
        problems.add("", what, BOMB if unpacked > MOST_RATIO * there else "Log fewer raw requests.")
    elif unpacked > max(MAX_FILE, MOST_RATIO * there):
        what = f"has {there} bytes, and {unpacked} unpacked: more than {MOST_RATIO} times as many"
        problems.add("", what, BOMB)
    problems.check()


def read_members(
    path: Path, some: Sequence[zipfile.ZipInfo], fields: Sequence[str], problems: Problems
) -> pl.DataFrame:
    """Return the fields of the JSON object in each member, as JSON.

    Raise ValueError if a member is damaged, exceeds a limit, or is not one JSON object.
    """
    types = ", ".join(f"{quoted(field)}: 'JSON'" for field in fields)
    tables = []
    for method in sorted({each.compress_type for each in some}):
        packed = [each for each in some if each.compress_type == method]
        with TemporaryDirectory() as folder:
            file = Path(folder) / "members"
            _join(path, packed, file, problems)
            compression = "zstd" if method == ZSTANDARD else "uncompressed"
            query = (
                f"from read_json({file_literal(file)}, columns = {{{types}}}, records = true, "
                f"format = 'unstructured', compression = '{compression}', "
                f"maximum_object_size = {LARGEST}) limit {len(packed) + 1}"
            )
            with reported(problems):
                found = run_query(query)
        if found.height != len(packed):
            what = (
                f"has {several(len(packed), 'sample')}, but another number of JSON objects in them"
            )
            problems.refuse("", what, AGAIN)
        tables.append(found)
    return pl.concat(tables) if tables else pl.DataFrame(schema=dict.fromkeys(fields, pl.String))


def _join(path: Path, packed: Sequence[zipfile.ZipInfo], to: Path, problems: Problems) -> None:
    """Write members one after the other: zstd as it is, others unpacked."""
    too_large = None
    try:
        with path.open("rb") as whole, zipfile.ZipFile(whole) as archive, to.open("wb") as file:
            for each in packed:
                if each.compress_type == ZSTANDARD:
                    content = _packed_bytes(whole, each)
                    if (size := _unpacked_at_most(content)) > 2 * LARGEST:
                        what = f"unpacks to up to {size} bytes, and declares {each.file_size}"
                        too_large = f"member {clip(each.filename)}", what
                        break
                    file.write(content)
                else:
                    # Reads no more bytes than the archive declares.
                    file.write(archive.read(each))
                    file.write(b"\n")
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, struct.error, zlib.error) as error:
        problems.refuse("", f"has a damaged member ({cause(error)})", AGAIN)
    if too_large:
        problems.refuse(*too_large, BOMB)


def _packed_bytes(whole: BinaryIO, member: zipfile.ZipInfo) -> bytes:
    whole.seek(member.header_offset)
    name, extra = LOCAL_HEADER.unpack(whole.read(LOCAL_HEADER.size))
    whole.seek(name + extra, 1)
    packed = whole.read(member.compress_size)
    if len(packed) < member.compress_size:
        raise EOFError(f"{member.filename!r:.60} is cut off")
    return packed


def _unpacked_at_most(packed: bytes) -> int:
    """Return the most bytes that frames of zstd unpack to, from the headers of their blocks.

    What a member declares may be false. RFC 8878, section 3.1, describes the format.
    """
    size, at = 0, 0
    while at + 5 <= len(packed):
        magic = int.from_bytes(packed[at : at + 4], "little")
        if magic in SKIPPABLE:
            at += 8 + int.from_bytes(packed[at + 4 : at + 8], "little")
            continue
        if magic != FRAME:
            break  # DuckDB says that it is damaged.
        descriptor = packed[at + 4]
        single = descriptor >> 5 & 1
        content = (single, 2, 4, 8)[descriptor >> 6]
        at += 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + content
        last = False
        while not last and at + 3 <= len(packed):
            header = int.from_bytes(packed[at : at + 3], "little")
            last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
            at += 3 + (1 if kind == RUN else length)
            size += length if kind in (RAW, RUN) else BLOCK
        at += 4 * (descriptor >> 2 & 1)  # checksum
    return size
