"""Votes collected elsewhere, as the vote log that all statistics read."""

import json
from pathlib import Path
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.frame import FrameError
from schemas.judging import VoteLog

COLUMNS = (
    "judge", "perturbation", "kind", "arm", "sample", "cluster", "shown_first", "repeat", "choice"
)  # fmt: skip
DEFAULTS = {"prompt": "unknown", "wave": ""}
OPTIONAL = ("dataset", "prompt", "wave", "simulated", "cached")
LIKE = "The columns are described in the README under 'Bring your own votes'."


def read_votes(path: Path) -> DataFrame[VoteLog]:
    """Read one vote per row of a .jsonl, .csv or .parquet file.

    Raises
    ------
    ValueError
        Naming the file, the place, the value, what is allowed and the next step.
    """
    raw = _read(path)
    if raw.is_empty():
        raise ValueError(f"{path.name} holds no votes. {LIKE}")
    missing = [c for c in COLUMNS if c not in raw.columns]
    strange = [c for c in raw.columns if c not in COLUMNS + OPTIONAL]
    if missing or strange:
        raise ValueError(
            f"{path.name}: missing {missing or 'nothing'}, unknown {strange or 'nothing'}. "
            f"Needed: {', '.join(COLUMNS)}. Allowed: {', '.join(OPTIONAL)}. {LIKE}"
        )
    defaults = {"dataset": path.stem, **DEFAULTS}
    filled = raw.with_columns(
        (pl.col(c) if c in raw.columns else pl.lit(None)).fill_null(value).alias(c)
        for c, value in defaults.items()
    )
    _check_arms(filled, path.name)
    try:
        return VoteLog.of(filled)
    except FrameError as error:
        raise ValueError(f"{path.name}: {error} {LIKE}") from error


def _read(path: Path) -> pl.DataFrame:
    if not path.is_file():
        raise ValueError(f"{path} is not a file. Name a .jsonl, .csv or .parquet file of votes.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty. {LIKE}")
    try:
        match path.suffix.lower():
            case ".jsonl" | ".ndjson" | ".json":
                return _read_lines(path)
            case ".csv":
                return pl.read_csv(path, infer_schema_length=None)
            case ".parquet":
                return pl.read_parquet(path)
            case suffix:
                raise ValueError(
                    f"{path.name}: files of kind {suffix!r} are not read. "
                    "Allowed: .jsonl, .csv, .parquet."
                )
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}. {LIKE}") from error


def _read_lines(path: Path) -> pl.DataFrame:
    """Read JSON Lines with the fast reader, or say which line it stumbled on."""
    try:
        return pl.read_ndjson(path, infer_schema_length=None)
    except pl.exceptions.PolarsError as error:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                _check_line(path.name, number, line)
        raise ValueError(f"{path.name} cannot be read: {error}. {LIKE}") from error


def _check_line(name: str, number: int, line: bytes) -> None:
    try:
        vote: Any = json.loads(line.decode("utf-8")) if line.strip() else {}
    except ValueError as error:
        raise ValueError(
            f"{name}, line {number} is not JSON in UTF-8: {error}: {line[:60]!r}. {LIKE}"
        ) from error
    if not isinstance(vote, dict):
        raise ValueError(f"{name}, line {number} is not an object: {line[:60]!r}. {LIKE}")  # noqa: TRY004


def _check_arms(votes: pl.DataFrame, name: str) -> None:
    """Refuse votes whose arm, perturbation, kind and cluster do not go together."""
    control = pl.col("arm") == "control"
    named = pl.col("perturbation").is_not_null()
    rules = {
        "a control vote serves every perturbation, so its perturbation must be null": (
            control & named
        ),
        "an experimental or sham vote must name its perturbation and kind": (
            ~control & (~named | pl.col("kind").is_null())
        ),
        "a perturbation must have one kind": (
            named & (pl.col("kind").n_unique().over("perturbation") > 1)
        ),
        "a sample must have one cluster": pl.col("cluster").n_unique().over("sample") > 1,
    }
    for rule, broken in rules.items():
        rows = votes.with_row_index("row", offset=1).filter(broken)
        if not rows.is_empty():
            first = rows.select("row", "arm", "perturbation", "kind", "sample", "cluster").row(0)
            raise ValueError(
                f"{name}: {rule}; {rows.height} votes break this, first row {first[0]} "
                f"(arm, perturbation, kind, sample, cluster = {first[1:]}). {LIKE}"
            )
