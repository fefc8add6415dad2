"""Labels that a calibration compares: of a table, of two files, of a log, or of a study."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from flows.results.vote_summary import newer_line
from flows.studies.calibration import Calibration
from schemas.calibration import Ratings
from schemas.judging import VALID
from schemas.results import Annotations
from tasks.agreement.declared_labels import (
    described,
    readable_labels,
    report_unknown_items,
    require_same_form,
)
from tasks.agreement.label_kinds import Declared
from tasks.annotate import annotate, unread_pairs
from tasks.calibration.calibrate import labelled_by_files, labelled_by_votes
from tasks.calibration.label_values import Labelled, items_of, require_two_names
from tasks.calibration.rated_labels import PEOPLE, item_names, labels_of_ratings
from tasks.counting.positions import PLACES
from tasks.kit.printable import several
from tasks.logs.items import CATEGORY
from tasks.logs.labels import (
    labels_of_log,
    labels_with_file,
    log_or_votes,
    why_not_comparable,
)
from tasks.progress import current_status
from tasks.prompts import AT, is_known, label_of, without_digest
from tasks.readers.bounded import clip
from tasks.readers.formats import texts_of
from tasks.readers.label_table import EMPTY, SLICE, LabelColumns, read_items, read_label_table
from tasks.readers.labels import JUDGES, read_labels
from tasks.validation.unknown_names import ALL_STUDIES, unknown
from warehouse.path_checks import require_file
from warehouse.store import Warehouse

VOTERS = """
    select distinct judge from vote_log
    where study = ? and human and list_contains(?, choice)
"""
UNCOUNTED = """
    select
        sum(votes)::bigint as votes, sum(too_fast)::bigint as too_fast,
        sum(not_familiar)::bigint as not_familiar
    from voters where study = ? and arm = 'control' having sum(counted) = 0
"""
GIVEN = """
    select dataset, sample as item, any_value(cluster) as cluster, any_value(label) as label
    from vote_log where study = ? and arm = 'control' and label is not null group by all
"""
KNOWN = """
    select distinct
        p.sample as item, p.question, p.anchor, p.target,
        coalesce(v.category, r.category, q.category) as category
    from pairs p
    left join questions q on q.question_id = p.cluster
    left join (
        select sample, any_value(category) as category from vote_log where study = $study
        group by all
    ) v on v.sample = p.sample
    left join (
        select sample, any_value(category) as category from ratings where study = $study
        group by all
    ) r on r.sample = p.sample
    where p.arm = 'control' and p.pair_id in (select pair_id from study_pairs where study = $study)
    order by all
"""
PROMPTED = """
    select prompt from ratings where study = $study and not human
    union select prompt from vote_log where study = $study and not coalesce(human, false)
    order by prompt
"""
SPLIT_BY = """
    select distinct by_column from (
        select parameters ->> '$.category_column' as by_column from runs
        where study = ? and flow <> 'calibrate' and state like 'completed%'
        order by started_at desc limit 1
    ) where by_column is not null
"""
VOTED = """
    (
        select study from vote_log union select study from annotations
        union select study from ratings
    )
    except select study from runs where flow = 'calibrate' order by study
"""


class Sources(NamedTuple):
    """Labels of each dataset, for comparison with people and for the alternative annotator test."""

    labelled: list[Labelled]
    for_test: list[Labelled]


def label_source(calibration: Calibration) -> str:
    """Name where labels of people come from, for messages."""
    file = calibration.table or calibration.humans or calibration.log
    return Path(file).name if file else f"study {calibration.study}"


def sources_of(calibration: Calibration, warehouse: Warehouse) -> Sources:
    """Return the labels to compare, from a table, from files or from votes in the warehouse.

    Raise ValueError if there are none, or a named column is missing; with the next step.
    """
    if calibration.study:
        require_file(
            warehouse.path,
            f"Run `voirdire audit {calibration.study}` first, or give files with --humans FILE "
            "--judges FILE.",
        )
    known = _items_of_file(calibration)
    sources = _sources_without_texts(calibration, warehouse, known)
    if known is not None:
        _compare_items(sources.labelled, known, calibration.items or "")
    else:
        known = _items_of_study(calibration, warehouse)
    if known is None:
        return sources
    labelled, for_test = sources
    if "cluster" in known.columns:
        for_test = [each._replace(items=known.select("item", "cluster")) for each in for_test]
    labelled = [each._replace(items=described(each.items, known)) for each in labelled]
    return Sources(labelled, for_test)


def _is_log(calibration: Calibration) -> bool:
    return bool(calibration.log) or (
        calibration.humans is not None and calibration.humans == calibration.judges
    )


def _items_of_file(calibration: Calibration) -> pl.DataFrame | None:
    """Return ``item``, ``texts``, slices and, if named, ``cluster`` of a file of items, if given.

    Slices that the file lacks are left out if a log may have them.
    """
    if not calibration.items:
        return None
    columns = LabelColumns(
        item=calibration.item_column,
        cluster=calibration.cluster_column,
        slices=tuple(calibration.slice_columns),
    )
    items = read_items(Path(calibration.items), columns, any_slices=_is_log(calibration))
    return items if calibration.cluster_column else items.drop("cluster")


def _items_of_study(calibration: Calibration, warehouse: Warehouse) -> pl.DataFrame | None:
    """Return ``item``, ``texts`` and slices as the study has them; None for labels of no study."""
    slices = tuple(calibration.slice_columns)
    if calibration.study is None:
        return None
    by = warehouse.query(SPLIT_BY, [calibration.study]).to_series().to_list() or [CATEGORY]
    if strange := [name for name in slices if name not in by]:
        if strange[0] == CATEGORY:
            todo = "To split by its categories, audit without --by"
        else:
            todo = f"To split by another column of your data, audit with --by {strange[0]:.60}"
        raise ValueError(
            f"--slice {strange[0]!r:.60}: the items of study {calibration.study!r} can be split by "
            f"{by[0]:.60} only. {todo} first (no vote is asked twice)."
        )
    rows = warehouse.query(KNOWN, {"study": calibration.study})
    texts = texts_of(
        (item, {"question": question, "anchor": anchor, "target" if anchor else "answer": target})
        for item, question, anchor, target, _ in rows.iter_rows()
    )
    category = pl.col(CATEGORY).replace("", None).fill_null(EMPTY)
    named = [category.alias(f"{SLICE}{name}") for name in dict.fromkeys(slices)]
    known = rows.unique("item", keep="first").select("item", *named)
    return texts.join(known, on="item", maintain_order="left")


def _compare_items(labelled: Sequence[Labelled], described: pl.DataFrame, file: str) -> None:
    """Say how many labelled items a file of items lacks; ValueError if it lacks them all."""
    items = pl.concat(each.items.select("item") for each in labelled).unique()
    lacking = items.join(described, on="item", how="anti")
    if lacking.is_empty():
        return
    name, example = Path(file).name, clip(lacking["item"].min())
    if lacking.height == items.height:
        raise ValueError(
            f"{name} describes none of the {several(items.height, 'labelled item')}: it has items "
            f"such as {clip(described['item'].min())}, the labels are about items such as "
            f"{example}. Name the column that holds the items of the labels with --item COLUMN."
        )
    current_status().tell(
        f"{name} does not describe {lacking.height} of {several(items.height, 'labelled item')}, "
        f"such as {example}."
    )


def _sources_without_texts(
    calibration: Calibration, warehouse: Warehouse, known: pl.DataFrame | None
) -> Sources:
    found = _of_log(calibration, known)
    if found is not None:
        return sources_as_declared(found, calibration.declared())
    if calibration.study and calibration.judges is None:
        ratings = warehouse.read(Ratings, among=pl.DataFrame({"study": [calibration.study]}))
        if not ratings.is_empty():
            return _sources_of_ratings(calibration, ratings)
    if calibration.table is None:
        labelled = labels_of(calibration, warehouse)
        return Sources(labelled, labelled)
    columns = LabelColumns(
        tuple(calibration.judge_columns),
        tuple(calibration.human_columns),
        calibration.item_column,
        calibration.cluster_column,
        calibration.criterion_column,
        tuple(calibration.slice_columns),
    )
    table = read_label_table(Path(calibration.table), columns)
    human = pl.col("human")
    humans, judges = (table.labels.filter(side).drop("human") for side in (human, ~human))
    one = labelled_by_files(calibration.name, humans, judges, table.items)
    return sources_as_declared([one], calibration.declared())


def sources_as_declared(labelled: list[Labelled], declared: Declared) -> Sources:
    """Return labels whose kinds may be declared as sources."""
    return Sources(labelled, [readable_labels(each, declared) for each in labelled])


def _of_log(calibration: Calibration, known: pl.DataFrame | None) -> list[Labelled] | None:
    """Return the labels of a log, alone or with a file of one side; else None."""
    if not _is_log(calibration):
        return None
    there = [] if known is None else known.columns
    slices = [name for name in calibration.slice_columns if f"{SLICE}{name}" not in there]
    path = Path(calibration.log or calibration.humans or "")
    log = log_or_votes(path, calibration.people, calibration.mapping, slices)
    how = (calibration.metric, slices, calibration.declared())
    if calibration.log:
        file = calibration.humans or calibration.judges
        if file is None or log is None:
            raise ValueError(f"{path.name} is no log, or no file is given with it.")
        one = labels_with_file(log, *how, Path(file), of_people=bool(calibration.humans))
        require_same_form(one, calibration.declared(), path.name)
        return [one]
    if log is None:
        return None
    found = labels_of_log(log, *how)
    if not found:
        raise ValueError(why_not_comparable(log))
    return found


def _sources_of_ratings(calibration: Calibration, ratings: DataFrame[Ratings]) -> Sources:
    people = read_labels(Path(calibration.humans)) if calibration.humans else None
    found = labels_of_ratings(ratings, people)
    if people is not None:
        named = [item_names(each.items["item"], _dataset(each)) for each in found]
        report_unknown_items(people, _names(named), calibration.humans or "", "the study")
    labelled = [each for each in found if not each.humans.is_empty()]
    if not labelled:
        graded = (ratings["kind"] == "number").all()
        columns = "human_grade" if graded else "human_label, human_grade"
        no_grades = " that are grades (pass and fail are none)" if graded else ""
        raise ValueError(
            f"the data of study {calibration.study!r} have no labels of people{no_grades}. Add a "
            f"column {columns} or human_CRITERION to the data and audit them again (no vote is "
            "asked twice), or give labels with --humans FILE."
        )
    for each in labelled:
        require_same_form(each, calibration.declared(), calibration.study or "")
    return sources_as_declared(labelled, calibration.declared())


def labels_of(calibration: Calibration, warehouse: Warehouse) -> list[Labelled]:
    """Return the labels of people and judges, from files or from votes in the warehouse.

    Raise ValueError if there is neither, or nobody is in it; with the next step.
    """
    humans = read_labels(Path(calibration.humans)) if calibration.humans else None
    judges = read_labels(Path(calibration.judges), JUDGES) if calibration.judges else None
    if humans is not None and judges is not None:
        return [labelled_by_files(calibration.name, humans, judges)]
    if calibration.study is None:
        sides = {"judges": (judges, "--judges FILE"), "people": (humans, "--humans FILE")}
        missing = {who: option for who, (labels, option) in sides.items() if labels is None}
        raise ValueError(
            f"labels of {' and '.join(missing)} are missing. Give {' '.join(missing.values())}, a "
            "FILE that has the labels of both, or the STUDY in the warehouse whose votes are the "
            "labels."
        )
    votes, newer = votes_of(calibration.study, warehouse), newer_votes(calibration, warehouse)
    given = votes.clear()
    if humans is None and not votes["human"].any():
        given = _given_labels(calibration.study, warehouse)
    voted = labelled_by_votes(pl.concat([votes, given], how="diagonal"), calibration.metric)
    named = [item_names(each.items["item"], each.dataset) for each in voted]
    given_files = (calibration.humans, calibration.judges)
    for labels, file in zip((humans, judges), given_files, strict=True):
        if labels is not None:
            report_unknown_items(labels, _names(named), file or "", "the study")
    if humans is None and given.is_empty():
        _require_labels(voted, calibration.study, newer, warehouse)
    return [_completed(each, humans, judges, calibration.study, newer) for each in voted]


def _dataset(labelled: Labelled) -> str:
    """Return the dataset of labels of a study, which are named after their prompt too."""
    return labelled.dataset.partition(": ")[0]


def _names(named: Sequence[Mapping[str, str]]) -> list[str]:
    return sorted({name for names in named for name in names})


def _given_labels(study: str, warehouse: Warehouse) -> DataFrame[Annotations]:
    """Return the labels that came with the data, attributed to one person."""
    rows = warehouse.query(GIVEN, [study])
    value = pl.col("label").replace_strict(PLACES, return_dtype=pl.Float64)
    return Annotations.of(
        rows.with_columns(
            aspect=pl.lit(None, pl.String),
            annotator=pl.lit(PEOPLE),
            prompt=pl.lit(None, pl.String),
            wave=pl.lit(""),
            value=value,
            inconsistent=pl.lit(value=False),
            votes=pl.lit(1),
            human=pl.lit(value=True),
            simulated=pl.lit(None, pl.Boolean),
        )
    )


def _require_labels(voted: list[Labelled], study: str, newer: str, warehouse: Warehouse) -> None:
    """Reject votes of people if none that counts is about an unperturbed pair."""
    if any(not each.humans.is_empty() for each in voted):
        return
    if uncounted := warehouse.query(UNCOUNTED, [study]).rows():
        [(votes, too_fast, not_familiar)] = uncounted
        why = [f"{too_fast} too fast"] * bool(too_fast)
        why += [f"{not_familiar} not familiar"] * bool(not_familiar)
        said = (
            f"none of the {several(votes, 'vote')} of people on unperturbed pairs of {study!r} "
            f"counts ({', '.join(why) or 'all invalid'})."
        )
    else:
        others = warehouse.query(VOTERS, [study, VALID])["judge"].sort()
        if others.is_empty():
            return
        said = (
            f"nobody voted on unperturbed pairs of {study!r}. {', '.join(others)} voted on "
            "perturbed pairs only."
        )
    step = f"{newer}." if newer else f"Collect more votes with `voirdire booth {study}`."
    raise ValueError(f"judges and people cannot be compared: {said} {step}")


def newer_votes(calibration: Calibration, warehouse: Warehouse) -> str:
    """Describe the votes of people that are not in the results yet; empty if there are none."""
    if calibration.humans or calibration.study is None:
        return ""
    return newer_line(calibration.study, warehouse)


def changed_prompts(calibration: Calibration, warehouse: Warehouse) -> str:
    """Name the judge prompts that have changed since judges were asked; empty if none has."""
    if calibration.judges or calibration.study is None:
        return ""
    used = warehouse.query(PROMPTED, {"study": calibration.study})["prompt"].to_list()
    names = {label: without_digest(label) for label in used}
    changed = [
        f"{label}, which is {label_of(names[label])} now"
        if is_known(names[label])
        else f"{label}, which is not there any more"
        for label in used
        if AT in label and not is_known(label)
    ]
    if not changed:
        return ""
    asked = [f" --prompt {name}" for name in dict.fromkeys(names.values()) if is_known(name)]
    line = f"The results are of an earlier version of the judge prompt: {'; '.join(changed)}"
    if asked:
        audit = f"`voirdire audit {calibration.study}{''.join(asked)}`"
        line += f". {audit} asks the judges with the present version"
    return line


def votes_of(study: str, warehouse: Warehouse) -> pl.DataFrame:
    """Return the labels of a study as annotations: from its votes, else saved under its name.

    ``unreadable`` marks pairs whose replies give no label, if votes are in the warehouse.
    """
    tallies = warehouse.tallies(study)
    if not tallies.is_empty():
        labels = annotate(tallies)  # type: ignore[arg-type]
        return pl.concat([labels, unread_pairs(tallies, labels)], how="diagonal_relaxed")
    saved = warehouse.read(Annotations, among=pl.DataFrame({"study": [study]}))
    if saved.is_empty():
        known = warehouse.query(VOTED)["study"].to_list()
        raise unknown("votes of study", study, known, ALL_STUDIES, where=f"in {warehouse.path}")
    return saved


def _completed(
    voted: Labelled,
    humans: pl.DataFrame | None,
    judges: pl.DataFrame | None,
    study: str,
    newer: str,
) -> Labelled:
    """Replace labels from votes by the labels of a file, where one is given.

    A file may call items by the ids of their questions.
    """
    names = item_names(voted.items["item"], voted.dataset)
    humans, judges = (
        each if each is None else each.with_columns(pl.col("item").replace(names))
        for each in (humans, judges)
    )
    if judges is not None:
        ours = labelled_by_files(voted.dataset, voted.humans, judges)
        voted = voted._replace(judges=ours.judges, who=ours.who)
    if humans is not None:
        voted = require_two_names(voted._replace(humans=humans))
    elif voted.humans.is_empty():
        if newer:
            raise ValueError(f"{newer}.")
        raise ValueError(
            f"study {study!r} has votes of models only, and its data have no column label (which "
            "answer is right: anchor, tie or target). Let people vote with `voirdire booth "
            f"{study}`, or give their labels with --humans FILE."
        )
    elif voted.who.is_empty():
        raise ValueError(
            f"study {study!r} has votes of people only. Run `voirdire audit {study}`, or give the "
            "judges' labels with --judges FILE."
        )
    return voted._replace(items=items_of((voted.humans, voted.judges), voted.items))
