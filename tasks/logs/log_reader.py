"""Recognise and read logs of other tools: one file, or a folder of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.frame import FrameError
from schemas.judging import VERSUS, VoteLog
from schemas.keys import file_digest
from tasks.agreement.label_kinds import AS_GIVEN, Declared
from tasks.agreement.pass_words import LARGEST_GRADE
from tasks.kit.printable import several
from tasks.logs.mapped_tables import read_mapped
from tasks.logs.questions import FolderQuestions, texts_of_questions, with_categories
from tasks.logs.ratings import require_one_chance, whole_number, with_passes
from tasks.logs.unreadable import UNREADABLE, with_unreadable
from tasks.readers.bounded import without_gz
from tasks.readers.duckdb_reader import LONG_ROW, RESAVE, opened
from tasks.readers.fastchat import parts_in
from tasks.readers.formats import COPIES, METADATA, TEXTS, Parts, recognise, runs_of
from tasks.readers.label_table import CHANCE
from tasks.readers.votes import RESERVED

TEXT_COLUMNS = pl.DataFrame(
    schema=dict.fromkeys(
        ("part", "category", "prompt", "criterion", "anchor_author", "target_author"), pl.String
    )
)
"""Columns of texts that a format need not have; an empty text is none."""
RATED_COLUMNS = pl.DataFrame(
    schema={"label": pl.String, "value": pl.Float64, "inconsistent": pl.Boolean, CHANCE: pl.Float64}
)
"""Further columns that ratings need not have."""
MOST_FILES = 10_000
LOG_SUFFIXES = {".json", ".jsonl", ".csv", ".tsv", ".txt", ".parquet", ".eval", ".zip"}
LONGEST = 1000
"""Maximum length of a name of a judge, model or item."""
MANY = 100_000
"""Rows above which intervals come from formulas only, without a bootstrap."""
NO_PROMPT, NO_PERSONS_PROMPT = "unknown", "none"
NO_JUDGE = "{} without the name of a judge or person"
NO_ITEM = "{} without an id of the rated item"
BAD_NAME = f"{{}} with a name that is reserved, contains {VERSUS!r}, or is too long"
VOTES, RATINGS = "votes", "ratings"
"""What is counted: a row of a file may hold several ratings."""
MAPPED = "mapped table"
TOO_LARGE = f"a number beyond {LARGEST_GRADE:.0f}, which is no grade"
AGAIN = "rows that repeat the id and content of an earlier row"
KNOWN = "`voirdire list formats` shows the formats that are recognised."


class Log(NamedTuple):
    """What files hold: votes with their order, and ratings."""

    name: str
    """Name of the file or folder, for messages."""
    titles: tuple[str, ...]
    """Titles of the formats of other tools; none of a file of votes."""
    files: int
    skipped: tuple[str, ...]
    """Files of the folder that were not recognised."""
    votes: DataFrame[VoteLog]
    ratings: DataFrame[Ratings]
    left_out: Counter[str]
    """Why rows are left out -> their number."""
    notes: tuple[str, ...]
    texts: pl.DataFrame
    """``item`` and ``texts``, a JSON object: what people saw of the items that they rated; in
    ``dataset``, or in all where it is null."""
    metadata: pl.DataFrame
    """``item, field, value``: what is known of items, by which results can be split."""
    rows: int
    """Rows of the files; where a file is one object, its samples or results."""
    verdicts: tuple[str, str] | None = None
    """Labels of the format for a pass and for a fail, if it has labels of its own."""
    declared: Declared = AS_GIVEN
    """How the user says that grades and labels are read."""
    category: str | None = None
    """Field of a mapped table that holds the category of an item."""


class NoLogError(ValueError):
    """No file of a folder is a log."""


def read_log(
    path: Path,
    people: str | None = None,
    mapping: Mapping[str, str] | None = None,
    slices: Sequence[str] = (),
) -> Log | None:
    """Read a log of another tool; None for a file that is in no known format.

    Parameters
    ----------
    path
        A file, or a folder whose recognised files belong together.
    people
        Pattern, such as ``expert_*``: only people whose names match it are kept.
    mapping
        Columns of a table in no known format -> dotted paths of its fields.
    slices
        Fields of such a table that are metadata of its items.

    Raises
    ------
    ValueError
        For a damaged file, a folder without a recognised file, or a pattern that nobody matches.
    """
    if path.is_dir():
        found, skipped = _folder(path, mapping, slices)
        if not found:
            raise NoLogError(f"{path.name}: no file of this folder is a log. {KNOWN}")
        found, skipped, files = _with_questions(path, found, skipped)
    else:
        read = _file(path, mapping, slices)
        if read is None:
            return None
        found, skipped, files = [read], [], 1
    left_out: Counter[str] = Counter()
    for parts in found:
        left_out.update(parts.left_out)
    name = path.resolve().name.split(".")[0] or path.name
    verdicts = {parts.verdicts for parts in found}
    log = Log(
        path.name,
        tuple(dict.fromkeys(parts.title for parts in found)),
        files,
        tuple(skipped),
        _votes(name, [p.votes for p in found if p.votes is not None], left_out),
        _ratings(name, [p.ratings for p in found if p.ratings is not None], left_out),
        +left_out,
        tuple(dict.fromkeys(note for parts in found for note in parts.notes)),
        _texts(name, [p.texts for p in found if p.texts is not None]),
        _metadata([p.metadata for p in found if p.metadata is not None]),
        sum(parts.rows for parts in found),
        verdicts.pop() if len(verdicts) == 1 else None,
        category=(mapping or {}).get("category"),
    )
    if log.votes.is_empty() and log.ratings.is_empty():
        _require_rows(log)
    return _only(name, log, people) if people else log


def log_of_votes(name: str, votes: DataFrame[VoteLog]) -> Log:
    """Return a file of votes as a log without ratings."""
    nothing = (Counter[str](), (), _texts(name, []), _metadata([]))
    return Log(name, (), 1, (), votes, Ratings.empty(), *nothing, votes.height)


def _require_rows(log: Log) -> None:
    """Refuse a log without a vote or rating, unless it is one of texts only."""
    titles = ", ".join(log.titles)
    if log.left_out:
        lost = ", ".join(f"{why} ({number})" for why, number in log.left_out.items())
        fields = "name the fields yourself, as in `--map item=ID --map label=L`"
        what, todo = (
            ("no row that can be used names its judge", "Write the judge's name in each row")
            if {*map(NO_JUDGE.format, (VOTES, RATINGS))} & {*log.left_out}
            else ("no row can be used, so there is nothing to measure", "Correct the rows")
        )
        raise ValueError(f"{log.name} ({titles}): {what}. Left out: {lost}. {todo}, or {fields}.")
    if log.texts.is_empty():
        raise ValueError(
            f"{log.name} is a log ({titles}) without samples: there is nothing to measure. Write "
            "it again with its samples, scores or votes."
        )


def _texts(name: str, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    empty = pl.DataFrame(schema=dict.fromkeys((*TEXTS, "part"), pl.String))
    rows = pl.concat([empty, *parts], how="diagonal")
    dataset = pl.when(pl.col("part").is_not_null()).then(pl.format("{}/{}", pl.lit(name), "part"))
    kept = rows.select(*TEXTS, dataset=dataset)
    return kept.unique(["item", "dataset"], keep="first", maintain_order=True)


def _metadata(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    rows = pl.concat([pl.DataFrame(schema=dict.fromkeys(METADATA, pl.String)), *parts])
    return rows.unique(maintain_order=True)


def is_long(log: Log) -> bool:
    """Tell whether a log has too many rows for bootstraps."""
    return log.votes.height + log.ratings.height > MANY


def _folder(
    path: Path, mapping: Mapping[str, str] | None, slices: Sequence[str]
) -> tuple[list[Parts], list[str]]:
    files = sorted(file for file in path.rglob("*") if file.is_file())
    if len(files) > MOST_FILES:
        raise ValueError(
            f"{path.name} has {len(files)} files; at most {MOST_FILES} are read. "
            "Name a smaller folder."
        )
    found, skipped, seen = [], [], set[str]()
    for file in files:
        read = None
        if file.stat().st_size and not _is_binary_file(file):
            read = _file(file, mapping, slices)
        if read is None:
            skipped.append(str(file.relative_to(path)))
        else:
            digest = file_digest(file)
            found.append(_all_copies(read) if digest in seen else read)
            seen.add(digest)
    return _by_task(_without_copies(found)), skipped


def _is_binary_file(file: Path) -> bool:
    """Tell whether a file is no log by its name, and no text: a picture or a database."""
    if without_gz(file).suffix.lower() in LOG_SUFFIXES:
        return False
    with file.open("rb") as source:
        return b"\0" in source.read(4096)


def _with_questions(
    path: Path, found: list[Parts], skipped: list[str]
) -> tuple[list[Parts], list[str], int]:
    """Add categories and texts from a folder's questions and answers, if there are any.

    Return what was read, the files that were not, and the number of those that were.
    """
    files = parts_in(path)
    questions = FolderQuestions.of(files)
    if questions is None:
        return found, skipped, len(found)
    known = [with_categories(parts, questions) for parts in found]
    note = f"{questions.summary}: categories of questions, texts of disagreements"
    texts = texts_of_questions(known, questions)
    first = known[0]
    known[0] = first._replace(notes=(*first.notes, note))
    if texts is not None:
        known.append(Parts(title=first.title, texts=texts))
    ours = {str(file.path.relative_to(path)) for file in files}
    return known, [name for name in skipped if name not in ours], len(found) + len(files)


def _all_copies(parts: Parts) -> Parts:
    """Leave out a file that is a copy of another, unless its rows are compared, or named after it.

    Formats whose rows hold all that they are about mark them with ``copy``.
    """
    frames = [rows for rows in (parts.votes, parts.ratings) if rows is not None]
    if any("copy" in rows.columns or rows["judge"].null_count() for rows in frames):
        return parts
    return parts._replace(votes=None, ratings=None, left_out={COPIES: parts.rows}, notes=())


def _without_copies(found: Sequence[Parts]) -> list[Parts]:
    """Leave out rows that an earlier file has too, and count them with the other copies."""
    seen, kept = pl.DataFrame(schema={"copy": pl.UInt64, "judge": pl.String}), []
    for parts in found:
        frames, left_out = [parts.votes, parts.ratings], Counter(parts.left_out)
        for place, rows in enumerate(frames):
            if rows is not None and "copy" in rows.columns:
                # Without a name in its rows a judge is called like the file.
                known = rows.select("copy", pl.col("judge").cast(pl.String)).unique()
                again = known.drop_nulls("copy").join(seen, on=[*seen.columns], how="semi")
                once = rows.join(again, on=[*seen.columns], how="anti", maintain_order="left")
                frames[place] = once
                left_out[COPIES] += again.height
                seen = pl.concat([seen, known]).unique()
        votes, ratings = frames
        kept.append(parts._replace(votes=votes, ratings=ratings, left_out=left_out))
    return kept


def _by_task(found: Sequence[Parts]) -> list[Parts]:
    """Put the task, and then the model, before the items of each file where files share an id.

    Where the outputs of files of one task and model differ, so does the run, which comes first;
    else they hold repeats of its items. A cluster is a task's, whatever the output that is rated.
    """
    for name, columns in (("task", ("item", "cluster")), ("model", ("item",))):
        ids = [
            parts.ratings.select(pl.col("item").cast(pl.String), of=pl.lit(of)).unique()
            for parts in found
            if (of := getattr(parts, name)) is not None and parts.ratings is not None
        ]
        if ids and pl.concat(ids).unique().drop_nulls()["item"].is_duplicated().any():
            found = [_named_after(parts, getattr(parts, name), columns) for parts in found]
    runs = runs_of([parts.outputs for parts in found])
    return [
        _named_after(parts, run if parts.outputs else None, ("item",))
        for parts, run in zip(found, runs, strict=True)
    ]


def _named_after(parts: Parts, name: str | None, columns: Sequence[str]) -> Parts:
    if name is None:
        return parts
    ratings, texts, metadata = (
        rows
        if rows is None
        else rows.with_columns(
            pl.format("{}/{}", pl.lit(name), column).alias(column)
            for column in columns
            if column in rows.columns
        )
        for rows in (parts.ratings, parts.texts, parts.metadata)
    )
    outputs = {f"{name}/{item}": text for item, text in parts.outputs.items()}
    return parts._replace(ratings=ratings, texts=texts, metadata=metadata, outputs=outputs)


def _file(path: Path, mapping: Mapping[str, str] | None, slices: Sequence[str]) -> Parts | None:
    """Read one file; None if it is in no known format."""
    with opened(path) as source:
        if source is None:
            return None
        try:
            if mapping:
                return read_mapped(source, dict(mapping), slices)._replace(title=MAPPED)
            if known := recognise(source):
                return known.read(source)._replace(title=known.title)
        except UnicodeEncodeError as error:  # half of a surrogate pair, which JSON can spell
            raise ValueError(
                f"{source.name} has text that is not valid UTF-8: {error}. Remove or correct it."
            ) from error
        if source.is_cut:
            source.problems.refuse("", LONG_ROW, RESAVE)
        return None


def _votes(name: str, frames: Sequence[pl.DataFrame], left_out: Counter[str]) -> DataFrame[VoteLog]:
    if not frames:
        return VoteLog.empty()
    rows = _named(name, frames, "sample", left_out)
    pair = ("dataset", "judge", "prompt", "sample", "shown_first")
    complete = rows.with_columns(arm=pl.lit("control"), wave=pl.lit(""), repeat=_repeat(rows, pair))
    return VoteLog.of(complete)


def _ratings(
    name: str, frames: Sequence[pl.DataFrame], left_out: Counter[str]
) -> DataFrame[Ratings]:
    if not frames:
        return Ratings.empty()
    rows = _named(name, [RATED_COLUMNS, *frames], "item", left_out)
    rows = with_unreadable(rows.with_columns(pl.col("label").str.strip_chars()))
    too_large = pl.col("invalid").is_null() & (pl.col("value").abs() > LARGEST_GRADE)
    rows = rows.with_columns(
        invalid=pl.when(too_large).then(pl.lit(TOO_LARGE)).otherwise(pl.col("invalid"))
    )
    require_one_chance(name, rows)
    key = ("dataset", "item", "criterion", "judge", "prompt")
    one = rows["criterion"].drop_nulls().n_unique() < 2
    valid = pl.col("invalid").is_null()
    unnamed = rows.select((valid & pl.col("label").is_null()).any()).item()
    complete = rows.with_columns(
        criterion=pl.lit(None, dtype=pl.String) if one else pl.col("criterion"),
        label=pl.when(valid)
        .then(pl.coalesce("label", whole_number("value")) if unnamed else "label")
        .when(pl.col("invalid") == UNREADABLE)
        .then("label"),
        value=pl.when(valid & pl.col("value").is_finite()).then("value"),
        inconsistent=pl.col("inconsistent").fill_null(value=False),
        wave=pl.lit(""),
        arm=pl.lit("control"),
    )
    complete = with_passes(complete.with_columns(repeat=_repeat(complete, key)))
    try:
        return Ratings.of(complete)
    except FrameError as error:
        raise ValueError(f"{name}: {error}") from error


def _repeat(rows: pl.DataFrame, key: Sequence[str]) -> pl.Expr:
    """Return numbers for the rows of each key; most logs need none, and it takes long."""
    if rows.select(key).is_duplicated().any():
        return pl.int_range(pl.len()).over(key)
    return pl.lit(0)


def _named(
    name: str, frames: Sequence[pl.DataFrame], item: str, left_out: Counter[str]
) -> pl.DataFrame:
    """Leave out rows without the needed names, and copies; add the dataset and the prompt."""
    rows = _unique(name, pl.concat([TEXT_COLUMNS, *frames], how="diagonal_relaxed"), left_out)
    judge, thing, authors = pl.col("judge"), pl.col(item), pl.col("anchor_author", "target_author")
    what = VOTES if item == "sample" else RATINGS
    strange = judge.is_in(RESERVED) | pl.any_horizontal(
        pl.col("judge", item, "anchor_author", "target_author").str.len_chars() > LONGEST,
        authors.str.contains(VERSUS, literal=True),
    )
    for why, broken in (
        (NO_JUDGE, judge.is_null() | (judge.str.strip_chars() == "")),
        (NO_ITEM, thing.is_null() | (thing == "")),
        (BAD_NAME, strange.fill_null(value=False)),
    ):
        kept = rows.filter(~broken)
        left_out[why.format(what)] += rows.height - kept.height
        rows = kept
    texts = pl.col(TEXT_COLUMNS.columns)
    rows = rows.with_columns(pl.when(texts != "").then(texts))
    nobody = pl.when("human").then(pl.lit(NO_PERSONS_PROMPT)).otherwise(pl.lit(NO_PROMPT))
    return rows.with_columns(
        dataset=pl.concat_str(pl.lit(name), "part", separator="/", ignore_nulls=True),
        cluster=pl.coalesce("cluster", item),
        prompt=pl.coalesce("prompt", nobody),
    )


def _unique(name: str, rows: pl.DataFrame, left_out: Counter[str]) -> pl.DataFrame:
    """Leave out copies of rows; the same id with other content is an error."""
    if "id" not in rows.columns:
        return rows
    has_id = pl.col("id").is_not_null()
    named = rows.filter(has_id)
    if named["id"].is_duplicated().any():
        named = named.unique(maintain_order=True)
    known = pl.concat([named, rows.filter(~has_id)])
    left_out[AGAIN] += rows.height - known.height
    ids = known["id"].drop_nulls()
    if (repeated := ids.filter(ids.is_duplicated())).len():
        raise ValueError(
            f"{name}: {several(repeated.n_unique(), 'id occurs', 'ids occur')} more than once with "
            f"different content, the first is {repeated[0]!r:.60}. Keep one row for each id."
        )
    return known.drop("id")


def _only(name: str, log: Log, people: str) -> Log:
    names = sorted(people_in(log))
    chosen = [name for name in names if fnmatchcase(name, people)]
    if not chosen:
        shown = ", ".join(names[:5]) or "nobody"
        raise ValueError(f"{name}: no person matches {people!r:.60}. People: {shown}.")
    kept = ~pl.col("human").fill_null(value=False) | pl.col("judge").is_in(chosen)
    votes, ratings = VoteLog.of(log.votes.filter(kept)), Ratings.of(log.ratings.filter(kept))
    return log._replace(votes=votes, ratings=ratings)


def people_in(log: Log) -> set[str]:
    """Return the names of the people in a log."""
    return {
        name for some in (log.votes, log.ratings) for name in some.filter("human")["judge"].unique()
    }
