"""Evidence behind results: flipped verdicts, moved grades, invalid replies, changes, labels."""

from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import polars as pl

from flows.running.run_row import is_calibration, why_without_results
from flows.studies.repeated import audit_again
from flows.studies.study import SUFFIX
from schemas.keys import JUDGE
from tasks.evidence.unmeasured_waves import votes_alone
from tasks.validation.unknown_names import ALL_STUDIES, require_known, unknown
from warehouse.evidence.comparisons import names_of, samples_like, studies_of, unmeasured_waves
from warehouse.evidence.selection import OF_LABELS, UNREAD, conditions
from warehouse.path_checks import existing_path
from warehouse.store import Warehouse

KEY = (*JUDGE, "mode", "perturbation", "sample", "criterion", "repeat")
"""Columns that tell the rows of ``mart.comparisons`` apart, within a study."""


class EvidenceView(NamedTuple):
    """What to show: a mart, and rows without texts that the shown ones are chosen from."""

    mart: str
    chosen_from: str
    key: tuple[str, ...]
    sample: str = "sample"
    """The column of what was judged."""
    of_study: str = "study = $study"


COMPARED = "mart.comparisons where perturbation is not null"
WAVES_COMPARED = "mart.waves_compared where true"
VIEWS = {
    "all": EvidenceView("compared_pairs", COMPARED, KEY),
    "flipped": EvidenceView("flipped_pairs", f"{COMPARED} and flipped", KEY),
    "moved": EvidenceView("compared_pairs", f"{COMPARED} and moved > 0", KEY),
    "invalid": EvidenceView(
        "invalid_replies", "mart.invalid_replies where true", (*JUDGE, "sample", "ballot_id")
    ),
    "changed": EvidenceView(
        "waves_compared", WAVES_COMPARED + " and changed", (*JUDGE, "base", "sample", "ballot_id")
    ),
    "disagree": EvidenceView(
        "disagreements",
        "mart.disagreements where true",
        ("study", *JUDGE, "criterion", "item"),
        "item",
        OF_LABELS,
    ),
}
SEEN_TOGETHER = ("flipped", "moved", "invalid")
"""Views that are about the votes of judges, so that one leads to the other."""
AT_HAND = f"""
    select
        (
            select arg_max(judge, value) from gates
            where study = $study and wave = $wave and gate = 'validity' and verdict = 'fail'
        ) as fails_validity,
        (
            select min(judge) from gates
            where study = $study and wave = $wave and gate = 'drift' and verdict = 'fail'
        ) as has_changed,
        exists(from {COMPARED} and flipped and study = $study) as flipped,
        exists(from {COMPARED} and moved > 0 and study = $study) as moved,
        exists(from ({UNREAD}) where not human) as invalid,
"""
"""One row: the judge with too many invalid replies and the first that has changed since its
baseline, if any; whether there is evidence."""
# In a random order, the same each time: nobody picked the examples. For a judge and
# a person, those that differ most come first.
PLACE = "md5(concat_ws('/', judge, perturbation, sample))"
# Further repeats and criteria, or orders, of an answer come after all other answers.
NTH = """
    row_number() over (
        partition by dataset, judge, prompt, wave, perturbation, sample order by repeat, {}
    )
"""
AGAIN, REPLY_AGAIN = NTH.format("criterion, mode"), NTH.format("shown_first, arm, ballot_id")
DRAWN = f"{AGAIN}, {PLACE}, judge"
ORDER = {
    "changed": f"arm <> 'control', {REPLY_AGAIN}, {PLACE}, judge",
    "invalid": f"{REPLY_AGAIN}, {PLACE}, judge",
    "disagree": 'judge, prompt, wave, criterion, "rank"',
    "moved": f"moved desc, {DRAWN}",
}
# A judge of single answers rates the anchor too, which no perturbation changes.
REPLIES = """
    select dataset, judge, prompt, wave, sample, arm, perturbation, shown_first, repeat, choice,
        rating, reply, target
    from mart.transcript
    where study = $study and sample in $samples and judge in $judges
        and arm in ('control', 'experimental', 'sham') and shown_first <> 'anchor alone'
    order by arm, shown_first, repeat
"""
SAME = ["judge", "prompt", "wave", "sample"]
EXAMPLES = f"""
    select * exclude (again), {PLACE} as place, count(*) over cell as total
    from (
        select *, {AGAIN} as again from mart.compared_pairs
        where study = $study and (flipped or moved > 0)
    )
    where question is not null and wave = coalesce(
        (select max(wave) from mart.scorecard where study = $study and wave = $wave),
        (select max(wave) from mart.scorecard where study = $study)
    )
    window cell as (partition by dataset, judge, prompt, perturbation)
    qualify row_number() over (cell order by again, place, criterion) <= $most
    order by judge, prompt, dataset, perturbation, again, place, criterion
"""
"""Flipped pairs and moved grades of one wave, the one named or the last: up to ``$most`` of each
cell, drawn as above; ``total`` counts all."""
CONFIRMED = """
    select wave, base from drifts where study = $study and state = 'alert'
        and judge = coalesce($judge, judge)
    order by wave_number desc nulls last, wave desc limit 1
"""
"""The last confirmed change of one judge, or of all; its wave has been the baseline since."""
# Ballots without a reply are in the logs too.
VOTED = """
    select exists(from (
        select judge from vote_log where study = $study and choice is not null
        union all select judge from ratings
            where study = $study and coalesce(label, value::varchar, invalid) is not null
    ) where judge = coalesce($judge, judge))
"""
GRADES = f"""
    select
        count(*) filter (rating_kind is distinct from 'number') as verdicts,
        count(*) filter (moved is not null) as grades,
        count(*) filter (moved > 0) as moved,
        max(moved) as furthest,
    from {COMPARED}
"""
"""How many verdicts and grades are compared, how many grades moved, and how far at most."""


class Evidence(NamedTuple):
    """Rows of a mart, the number of all that match, and the replies on the pairs of these rows."""

    rows: pl.DataFrame
    total: int
    replies: pl.DataFrame
    without_results: list[str]
    """Other waves that the study was asked in; their votes are there, their results are not."""
    others: dict[str, Any]
    """For changed replies: ``compared``, how many replies two waves have, and ``wave`` and
    ``base``, the waves of the last confirmed change, if there is one. For ``flipped``, ``moved``
    and ``invalid``: how many rows each of these views has, how many votes are without a verdict
    (``unread``, also where the reply is unknown), and for grades what :data:`GRADES` says. Empty
    for other views."""
    voted: bool = True
    """Whether the judge, or any of the study, has a vote; not looked up where there are rows."""


def find_evidence(
    study: str,
    what: str,
    path: Path | None,
    *,
    sample: str | None,
    most: int,
    **wanted: str | None,
) -> Evidence:
    """Return the evidence of a study that matches: where there is more, drawn at random.

    Disagreements are not drawn: the worst come first, judge by judge. Moved grades are sorted by
    how far they moved, and drawn among those that moved as far. ``what`` is one of
    :data:`VIEWS`; ``sample`` a sample, the ``pair_id`` of one of its pairs or the id of its
    question, or of disagreements an item; ``wanted`` are the judge, the judge prompt (one of the
    user's own also without its digest, in all its wordings), the perturbation and the wave.

    Raise ValueError if there is no such file, LookupError if it has no such study or other thing.
    """
    place = existing_path(path, study)
    warehouse = Warehouse(place)
    known = studies_of(warehouse)
    # A calibration in which nobody differs has no evidence.
    if study not in known and not is_calibration(study, warehouse):
        if why := why_without_results(study, warehouse):
            raise LookupError(why)
        raise unknown("study", study, known, ALL_STUDIES, where=f"in {place}")
    # Labels of items have no perturbation.
    without = "perturbation" if what == "disagree" else ""
    given = {n: value for n, value in wanted.items() if value is not None and n != without}
    if sample is not None:
        given["sample"] = sample
    view, values = VIEWS[what], {**given, "study": study}
    condition = " and ".join([view.of_study, *conditions(given, view.sample)])
    # The key tells apart what else is alike, as under several prompts.
    order = f"{ORDER.get(what, DRAWN)}, {', '.join(view.key)} limit {most:d}"
    chosen = warehouse.query(
        f"select {', '.join(view.key)}, count(*) over () as total from {view.chosen_from} and "
        f"{condition} order by {order}",
        values,
    )
    rows = _with_texts(warehouse, study, what, chosen)
    if rows.is_empty():
        _require_known(warehouse, study, given)
        if sample is not None:
            _require_sample(warehouse, study, what, sample)
    total = rows["total"][0] if rows.height else 0
    replies = _replies(warehouse, study, rows, what)
    elsewhere = unmeasured_waves(warehouse, study)
    others = _others(warehouse, what, condition, values)
    voted = bool(total) or find_voted(warehouse, study, given.get("judge"))
    return Evidence(rows.drop("total"), total, replies, elsewhere, others, voted)


def find_voted(warehouse: Warehouse, study: str, judge: str | None) -> bool:
    """Tell whether votes of a judge, or of any judge or person, are saved for a study."""
    found: bool = warehouse.query(VOTED, {"study": study, "judge": judge}).item()
    return found


def _others(
    warehouse: Warehouse, what: str, condition: str, values: dict[str, Any]
) -> dict[str, Any]:
    """Count what the same filters leave of other evidence."""
    if what == "changed":
        query = f"select count(*) as compared from {WAVES_COMPARED} and {condition}"
        confirmed = warehouse.query(
            CONFIRMED, {name: values.get(name) for name in ("study", "judge")}
        )
        found = warehouse.query(query, values).row(0, named=True)
        return found | next(confirmed.iter_rows(named=True), {})
    if what not in SEEN_TOGETHER:
        return {}
    counted = ", ".join(
        f"(select count(*) from {VIEWS[name].chosen_from} and {condition}) as {name}"
        for name in ("flipped", "invalid")
    )
    unread = f"(select count(distinct vote) from ({UNREAD}) where {condition}) as unread"
    grades = f"({GRADES} and {condition})"
    return warehouse.query(f"select {counted}, {unread}, * from {grades}", values).row(
        0, named=True
    )


def _with_texts(warehouse: Warehouse, study: str, what: str, chosen: pl.DataFrame) -> pl.DataFrame:
    """Return the whole rows of the chosen ones: to read all texts takes a hundred times as long."""
    view = VIEWS[what]
    judges, ids = (chosen[name].unique().to_list() for name in ("judge", view.sample))
    rows = warehouse.query(
        f"from mart.{view.mart} "
        f"where {view.of_study} and judge in $judges and {view.sample} in $ids",
        {"study": study, "judges": judges, "ids": ids},
    )
    found = chosen.join(rows, on=view.key, how="left", nulls_equal=True, maintain_order="left")
    return found.select(*rows.columns, "total")


def _require_known(warehouse: Warehouse, study: str, given: dict[str, str]) -> None:
    names, wave = names_of(warehouse, study), given.get("wave")
    if wave is not None and wave in (unmeasured := unmeasured_waves(warehouse, study)):
        measured = [name for name in names["wave"] if name not in unmeasured]
        raise ValueError(
            votes_alone(study, wave, measured, audit_again(warehouse.path, study, wave))
        )
    require_known(given, names, "`voirdire sql` lists all", f"in study {study!r}")


def _require_sample(warehouse: Warehouse, study: str, what: str, name: str) -> None:
    own = study.removesuffix(SUFFIX)
    alike = samples_like(warehouse, name, own, f"{own}{SUFFIX}")
    if alike is not None:
        named = (
            "sample or item with differing labels"
            if what == "disagree"
            else "sample, pair_id or question"
        )
        everything = f"`voirdire browse {quote(own)}` lists all"
        raise unknown(named, name, alike, everything, where=f"in study {own!r}")


def _replies(warehouse: Warehouse, study: str, rows: pl.DataFrame, what: str) -> pl.DataFrame:
    if what in ("invalid", "changed") or rows.is_empty():
        return pl.DataFrame()
    if what == "disagree":
        study, rows = study.removesuffix(SUFFIX), rows.rename({"item": "sample"})
    samples, judges = (rows[name].unique().to_list() for name in ("sample", "judge"))
    found = warehouse.query(REPLIES, {"study": study, "samples": samples, "judges": judges})
    return found.join(rows.select(SAME).unique(), on=SAME, how="semi")
