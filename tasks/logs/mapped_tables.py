"""A table whose columns the user maps: votes with their order, or ratings."""

import json
from collections.abc import Sequence

import polars as pl

from schemas.judging import CHOICES
from tasks.calibration.rated_labels import PEOPLE
from tasks.readers.duckdb_reader import Source
from tasks.readers.expressions import (
    NO_NUMBER,
    NO_ORDER,
    are_decimal_commas,
    as_number,
    as_text,
    why_no_number,
)
from tasks.readers.formats import Parts, texts_of, with_texts
from tasks.readers.label_table import CHANCE, probabilities

NAMES = ("judge", "item", "cluster", "criterion", "category", "prompt", "human")
VOTE = ("shown_first", "choice", "anchor_author", "target_author", "right")
RATING = ("label", "value", "human_label", "human_value")
TEXTS = ("question", "answer", "anchor", "target", "reference", "context")
NO_RATING = "no rating"
SPLITS = "`--slice` can split the agreement with people by fields of the table: {}"
MOST_OBJECTS = 1000
"""Most objects whose fields an error names."""
COLUMNS = (*NAMES, *VOTE, *RATING, CHANCE, *TEXTS)


def read_mapped(source: Source, mapping: dict[str, str], slices: Sequence[str] = ()) -> Parts:
    """Read a table by ``mapping``, column -> dotted path of its field.

    The fields that ``slices`` name are metadata of its items.

    ``shown_first`` and ``choice`` make a row a vote; otherwise ``label`` or ``value`` is the rating
    of a judge, and ``human_label`` or ``human_value`` people's in the same row. Without
    ``judge`` the judge is called by the path of its rating. ``label_chance`` is the probability
    that people were asked about the item. ``TEXTS`` are shown beside disagreements.
    """
    _check(source, mapping, slices)
    names = {c: p for c, p in mapping.items() if c not in {*RATING, *TEXTS}}
    found = source.fields(names, {c: p for c, p in mapping.items() if c in RATING})
    _require_values(source, mapping, found)
    if CHANCE in mapping:
        given = pl.when(pl.col(CHANCE) != "").then(CHANCE)
        found = found.with_columns(probabilities(source.name, found.select(given).to_series()))
    if "judge" not in mapping:
        rated = mapping.get("label") or mapping.get("value") or PEOPLE
        found = found.with_columns(judge=pl.lit(rated))
    human = (
        pl.col("human").str.to_lowercase() == "true" if "human" in mapping else pl.lit(value=False)
    )
    found = found.with_columns(human=human.fill_null(value=False))
    metadata = _metadata(source, mapping["item"], slices)
    if "choice" in mapping:
        return Parts(votes=_votes(found), metadata=metadata, rows=found.height)
    frames = [_ratings(found, "")] if {"label", "value"} & {*mapping} else []
    if {"human_label", "human_value"} & {*mapping}:
        people = found.with_columns(
            judge=pl.lit(PEOPLE), human=pl.lit(value=True), prompt=pl.lit(None)
        )
        of_people = _ratings(people, "human_")
        # An empty cell is an item that nobody has rated.
        frames.append(of_people.filter(pl.col("invalid").ne_missing(NO_RATING)))
    ratings = pl.concat(frames, how="diagonal_relaxed")
    texts = {column: path for column, path in mapping.items() if column in TEXTS}
    shown = _texts(source, mapping["item"], texts) if with_texts(source, ratings) else None
    of_pairs = {"anchor", "target", "anchor_author", "target_author"} & {*mapping}
    notes: tuple[str, ...] = (NO_ORDER,) if of_pairs else ()
    others = sorted(source.columns - {path.split(".")[0] for path in mapping.values()})
    if others and ratings["human"].n_unique() > 1:
        notes += (SPLITS.format(f"{', '.join(others):.200}"),)
    return Parts(ratings=ratings, texts=shown, metadata=metadata, notes=notes, rows=found.height)


def _metadata(source: Source, item: str, slices: Sequence[str]) -> pl.DataFrame | None:
    there = [name for name in slices if name.split(".")[0] in source.columns]
    if not there:  # "category" may be mapped to a field
        return None
    names = {f"slice_{at}": name for at, name in enumerate(there)}
    fields = source.fields({"item": item, **names}).unpivot(index="item", variable_name="field")
    given = fields.with_columns(pl.col("field").replace(names)).filter(pl.col("value") != "")
    return given.drop_nulls().unique(maintain_order=True)


def _texts(source: Source, item: str, texts: dict[str, str]) -> pl.DataFrame | None:
    """Return the texts of all items; null without any."""
    if not texts:
        return None
    found = source.fields({"item": item, **texts})
    return texts_of(zip(found["item"], found.select(*texts).iter_rows(named=True), strict=True))


def _check(source: Source, mapping: dict[str, str], slices: Sequence[str]) -> None:
    for name in slices:
        if name.split(".")[0] not in {"category", *source.columns} or '"' in name:
            what = f"has no field {name!r:.60} to split by; it has "
            what += f"{', '.join(sorted(source.columns)):.400}"
            source.problems.add("", what, "Correct the name, or rename the field.")
    for column, path in mapping.items():
        if column not in COLUMNS:
            what = f"--map has no column {column!r:.60}; there are {', '.join(COLUMNS)}"
            source.problems.add("", what, "Correct the name.")
        elif path.split(".")[0] not in source.columns:
            shown = ", ".join(sorted(source.columns))
            found = f"it has {shown:.400}" if shown else "its first row is empty or not an object"
            what = f"has no field {path!r:.60} to map; {found}"
            todo = "Correct the path." if shown else "Write each row as an object with its fields."
            source.problems.add("", what, todo)
    votes = {"choice", "shown_first"} & {*mapping}
    if "item" not in mapping:
        source.problems.add("", "--map must name the column item", "Add --map item=PATH.")
    if CHANCE in mapping and votes:
        what = f"--map {CHANCE} is about ratings, and choice and shown_first make votes on pairs"
        source.problems.add("", what, "Leave it out.")
    if len(votes) == 1 or not (votes or {*RATING} & {*mapping}):
        what = "--map must name label or value, or both choice and shown_first"
        source.problems.add("", what, "Add one of them.")
    source.problems.check()


def _require_values(source: Source, mapping: dict[str, str], found: pl.DataFrame) -> None:
    """Refuse a dotted path that no row has, where the object around it has other fields."""
    for column, path in mapping.items():
        outer, _, last = path.rpartition(".")
        if not outer or column not in found.columns or found[column].count():
            continue
        texts = source.fields(raw={"outer": outer})["outer"].drop_nulls().head(MOST_OBJECTS)
        objects = [each for each in map(json.loads, texts) if isinstance(each, dict)]
        there = dict.fromkeys(name for each in objects for name in each)
        if there and last not in there:
            what = f"no row has the field {path!r:.60} to map; {outer!r:.60} has "
            what += f"{', '.join(there):.400}"
            source.problems.add("", what, "Correct the path.")
    source.problems.check()


def _votes(found: pl.DataFrame) -> pl.DataFrame:
    renamed = {"item": "sample"} | ({"right": "label"} if "right" in found.columns else {})
    cluster = "cluster" if "cluster" in found.columns else "item"
    choice = pl.when(pl.col("choice").is_in(CHOICES)).then("choice").otherwise(pl.lit("invalid"))
    return found.with_columns(cluster=cluster, choice=choice).rename(renamed)


def _ratings(found: pl.DataFrame, side: str) -> pl.DataFrame:
    value, label = f"{side}value", f"{side}label"
    number = as_number(value) if value in found.columns else pl.lit(None, dtype=pl.Float64)
    graded = label not in found.columns
    text = pl.lit(None, dtype=pl.String) if graded else as_text(label)
    text = pl.when(text.str.strip_chars() != "").then(text)
    cluster = "cluster" if "cluster" in found.columns else "item"
    rows = found.with_columns(_label=text, _value=number, cluster=cluster)
    given = pl.col(value if graded else label).str.strip_chars('" ')
    said = why_no_number(value if graded else label, NO_NUMBER if graded else NO_RATING)
    why = pl.when(given.fill_null("") == "").then(pl.lit(NO_RATING)).otherwise(said)
    lost = pl.col("_label").is_null() | are_decimal_commas(pl.col("_label"))
    return rows.select(
        pl.exclude(*RATING, "_label", "_value"),
        kind=pl.lit("number" if graded else "label"),
        label="_label",
        value="_value",
        invalid=pl.when(pl.col("_value").is_null() if graded else lost).then(why),
    )
