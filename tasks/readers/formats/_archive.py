"""Read JSON members of a ZIP archive, stored, deflated or zstd, within limits.

Python 3.11 cannot unpack zstd, but DuckDB can: members are copied, still packed, one after the
other into one file of JSON objects.
"""

import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import polars as pl

from tasks.readers.bounded import Problems, clip
from tasks.readers.fields import file_literal, quoted, reported, run_query

ZSTANDARD = 93
KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTANDARD)
MOST_MEMBERS = 1_000_000
LARGEST = 64_000_000
"""Maximum size of one member in bytes, unpacked."""
MOST_UNPACKED = 8 << 30
"""Maximum size of all members together."""
LOCAL_HEADER = struct.Struct("<26x2H")
"""Start of a member in the archive: lengths of its name and of its extra field."""
AGAIN = "Copy or export the log again."


def members(path: Path, problems: Problems) -> dict[str, zipfile.ZipInfo]:
    """Return the members of an archive by name.

    Raises
    ------
    ValueError
        If it is damaged, or a member exceeds a limit or is packed in an unknown way.
    """
    found: list[zipfile.ZipInfo] = []
    try:
        with zipfile.ZipFile(path) as archive:
            found = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        problems.add("", f"is not a complete ZIP archive ({clip(str(error))})", AGAIN)
    if len(found) > MOST_MEMBERS:
        problems.add("", f"has {len(found)} members; at most {MOST_MEMBERS} are allowed", AGAIN)
    if len({each.filename for each in found}) < len(found):
        problems.add("", "has two members of the same name", AGAIN)
    if (size := sum(each.file_size for each in found)) > MOST_UNPACKED:
        problems.add("", f"has {size} bytes unpacked; at most {MOST_UNPACKED} are allowed", AGAIN)
    for each in found:
        if each.file_size > LARGEST:
            what = f"has {each.file_size} bytes unpacked; at most {LARGEST} are allowed"
            problems.add(f"member {clip(each.filename)}", what, "Log fewer raw requests.")
        if each.compress_type not in KNOWN or each.flag_bits & 1:
            what = f"is encrypted or packed by the unknown method {each.compress_type}"
            problems.add(f"member {clip(each.filename)}", what, AGAIN)
    problems.check()
    return {each.filename: each for each in found}


def read_members(
    path: Path, some: Sequence[zipfile.ZipInfo], fields: Sequence[str], problems: Problems
) -> pl.DataFrame:
    """Return the fields of the JSON object in each member, as JSON.

    Raises
    ------
    ValueError
        If a member is damaged, exceeds a limit, or is not one JSON object.
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
            what = f"has {len(packed)} samples, but another number of JSON objects in them"
            problems.add("", what, AGAIN)
            problems.check()
        tables.append(found)
    return pl.concat(tables) if tables else pl.DataFrame(schema=dict.fromkeys(fields, pl.String))


def _join(path: Path, packed: Sequence[zipfile.ZipInfo], to: Path, problems: Problems) -> None:
    """Write members one after the other: zstd as it is, others unpacked."""
    try:
        with path.open("rb") as whole, zipfile.ZipFile(whole) as archive, to.open("wb") as file:
            for each in packed:
                if each.compress_type == ZSTANDARD:
                    file.write(_packed_bytes(whole, each))
                else:
                    # Reads no more bytes than the archive declares.
                    file.write(archive.read(each))
                    file.write(b"\n")
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, struct.error) as error:
        problems.add("", f"has a damaged member ({clip(str(error))})", AGAIN)
        problems.check()


def _packed_bytes(whole: BinaryIO, member: zipfile.ZipInfo) -> bytes:
    whole.seek(member.header_offset)
    name, extra = LOCAL_HEADER.unpack(whole.read(LOCAL_HEADER.size))
    whole.seek(name + extra, 1)
    packed = whole.read(member.compress_size)
    if len(packed) < member.compress_size:
        raise EOFError(f"{member.filename!r:.60} is cut off")
    return packed
