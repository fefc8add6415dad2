"""The comparisons behind results, as pages of a list, and one of them with its texts and votes."""

from typing import Any, NamedTuple

import polars as pl

from schemas.judging import ARMS
from warehouse.evidence.selection import (
    BY_ANOTHER_NAME,
    NAMES,
    OF_LABELS,
    UNMEASURED,
    UNREAD,
    conditions,
)
from warehouse.store import Warehouse

STUDIES = """
    with results as (
        select study, dataset, judge, wave, 'pairs' as shown, count(*) as votes
        from vote_log group by all
        union all
        select study, dataset, judge, '', 'pairs', 0 from shifts group by all
        union all
        select study, dataset, judge, wave, 'single answers', count(distinct
            (prompt, wave, coalesce(sample, item), side, arm, perturbation, repeat))
        from ratings group by all
        union all
        select study, dataset, judge, '', null, 0 from differing_labels group by all
    ),
    persons as (
        select study, judge, true as human from vote_log where human
        union select study, judge, true from ratings where human
    ),
    ran as (
        select study, max(started_at) as last_run,
            case when bool_or(flow = 'audit') then 'audit'
                when bool_or(flow = 'measure') then 'measurement'
                when bool_or(flow = 'calibrate') then 'calibration' end as flow,
        from runs group by study
    )
    select study, concat_ws(' of ', any_value(flow), string_agg(distinct shown, ' and ')) as kind,
        string_agg(distinct dataset, ', ' order by dataset) as datasets,
        count(distinct judge) filter (human is null) as judges,
        count(distinct judge) filter (human) as people,
        coalesce(sum(votes) filter (human is null), 0)::bigint as votes,
        coalesce(sum(votes) filter (human), 0)::bigint as votes_of_people,
        list(distinct wave order by wave) filter (wave <> '') as waves,
        any_value(last_run) as last_run,
    from results left join persons using (study, judge) left join ran using (study)
    group by study order by study
"""
ROWS_PER_PAGE = 50
SAID = """
    concat_ws(chr(31), sample, judge, prompt, wave, coalesce(criterion, ''),
        coalesce(lpad(repeat::varchar, 6, '0'), ''))
"""
# Comparisons have no position of their own: rows are put in order by their key, and found by it.
ROWS = f"""
    with labelled as (
        select judge, prompt, wave, criterion, item, any_value(human_label) as people,
            any_value(judge_label) as labelled, any_value(texts) as texts,
            min("rank") as worst
        from differing_labels where {OF_LABELS}
        group by all
    ),
    unread as (
        select distinct {SAID} as said, perturbation
        from ({UNREAD}) where arm in ('control', 'experimental')
    ),
    studied as (from pairs semi join (from study_pairs where study = $study) using (pair_id)),
    found as (
        select
            *, {SAID} as said,
            concat_ws(chr(31), dataset, sample, coalesce(perturbation, ''), said) as place,
            left(md5(place), 16) as id,
        from mart.comparisons as c
        where study = $study
    )
"""
FURTHER = {
    "category": """sample in (
        select sample from vote_log where study = $study and category = $category
        union select coalesce(sample, item) from ratings
        where study = $study and category = $category
    )""",
    "search": """(
        contains(lower(sample), lower($search)) or sample in (
            select sample from studied
            where contains(lower(concat_ws(' ', question, anchor, target)), lower($search))
            union select item from labelled where contains(lower(texts), lower($search))
        )
    )""",
    "flipped": "flipped",
    "moved": "moved > 0",
    # An invalid reply on the control pair concerns every perturbation.
    "invalid": """(
        said in (select said from unread where perturbation is null)
        or (said, perturbation) in (
            select (said, perturbation) from unread where perturbation is not null
        )
    )""",
}
# A place is a text that sorts.
FURTHEST_FIRST = """* replace (
    lpad((row_number() over (order by moved desc, place))::varchar, 12, '0') as place
)"""
# As `voirdire show --disagree` has them.
WORST_FIRST = """* exclude (worst) replace (
    lpad((row_number() over (
        order by judge, prompt, wave, criterion, worst, place
    ))::varchar, 12, '0') as place
)"""
IS_LABELLED = """
    l.judge = c.judge and l.prompt = c.prompt and l.wave = c.wave and l.item = c.sample
    and l.criterion is not distinct from c.criterion
"""
WORST = f"(select l.worst from labelled as l where {IS_LABELLED})"

LIST = f"""
    select
        (select count(*) from chosen) as total, c.*, q.question, l.people, l.labelled, l.texts,
        coalesce({FURTHER["invalid"]}, false) as invalid,
    from (from chosen order by place limit {ROWS_PER_PAGE:d} offset $skipped) as c
    left join (
        select sample, any_value(left(question, 300)) as question from studied group by sample
    ) as q using (sample)
    left join labelled as l on {IS_LABELLED}
    order by place
"""
ITEMS = """
    select count(*) as items
    from (select distinct dataset, judge, prompt, wave, criterion, sample from chosen)
"""
"""What a calibration counts: a judge's label of an item, however many comparisons it is part of."""

MOST_ALIKE = 100
SAMPLES = f"""
    with known as (
        select sample from mart.comparisons where study in $studies
        union select sample from vote_log where study in $studies
    )
    select
        sample,
        sample = $name or sample in {BY_ANOTHER_NAME.format(name="$name")} as found,
    from known where sample is not null
    order by found desc, jaro_winkler_similarity(sample, $name) desc, sample limit {MOST_ALIKE:d}
"""
CATEGORIES = """
    select distinct category from (
        select category from vote_log where study = $study
        union all select category from ratings where study = $study
    ) where category is not null order by category
"""
KINDS = f"""
    select
        exists(from shifts where study = $study) or exists(
            from ratings where study = $study and arm = 'experimental' and kind <> 'number'
        ) as flipped,
        exists(
            from ratings where study = $study and arm = 'experimental' and kind = 'number'
        ) as moved,
        exists(from verdicts where study = $study)
            or exists(from ratings where study = $study) as judged,
        exists(from differing_labels where study = $study) as calibrated,
        exists(from vote_log where study = $study and human)
            or exists(from ratings where study = $study and human) as voted_by_people,
        (
            select sum(n)::bigint from mart.human_agreement
            where study = $study and slice_column is null
        ) as labels,
        (
            select list(distinct wave order by wave) from differing_labels where {OF_LABELS}
        ) as labelled_waves
"""
RUNNING = """
    select coalesce(from_warehouse, 0) + coalesce(asked, 0) as cast, planned
    from runs where study = $study and state = 'running' order by started_at desc limit 1
"""
HERE = f"""
    , spot as (select coalesce(max(place) filter (id = $id), min(place)) as here from chosen),
    around as (
        select
            max(here) as here, count(*) as total, count(*) filter (place <= here) as number,
            arg_max(id, place) filter (place < here) as before,
            arg_min(id, place) filter (place > here) as after,
        from chosen, spot
    )
    select c.* exclude (place), total, number, before, after, l.people, l.labelled, l.texts
    from chosen as c join around on place = here
    left join labelled as l on {IS_LABELLED}
"""
"""The row with this id, else the first; and its neighbours among those that the filters leave."""

OTHERS = """
    select id, judge, prompt, wave, control, sham, experimental, flipped, simulated
    from found as c where {same} and id <> $id order by place
""".format(
    same=" and ".join(
        f"c.{name} is not distinct from ${name}"
        for name in ("dataset", "sample", "perturbation", "criterion", "repeat")
    )
)
TEXTS = """
    select pair_id, arm, question, anchor, target
    from pairs semi join (from study_pairs where study = $study) using (pair_id)
    where sample = $sample and (arm = 'control' or arm in ('experimental', 'sham')
        and perturbation = $perturbation)
    order by arm, pair_id
"""
ASKED = """
    study = $study and judge = $judge and prompt = $prompt and wave = $wave and sample = $sample
    and (arm in ('control', 'replicate', 'reworded') or perturbation = $perturbation)
"""
# A judge of single answers rates the anchor too, which no perturbation changes.
VOTES = f"""
    select arm, perturbation, shown_first, repeat, choice, rating, reply, model, seconds,
        prompt_tokens, completion_tokens, cost_usd, cast_at
    from mart.transcript where {ASKED}
        and (shown_first <> 'anchor alone' or $perturbation is null)
"""
# Votes that were collected elsewhere have no ballots, and so no replies.
CHOICES = f"""
    select arm, perturbation, shown_first, repeat, choice, null as rating
    from vote_log where {ASKED}
    union all
    select arm, perturbation, coalesce(side || ' ', '') || 'alone', repeat,
        if(invalid is null, 'rated', 'invalid'), label
    from (select * replace (coalesce(sample, item) as sample) from ratings) where {ASKED}
        and (side is distinct from 'anchor' or $perturbation is null)
"""


class Filters(NamedTuple):
    """Which comparisons of a study to list; null or false: all."""

    study: str
    judge: str | None = None
    prompt: str | None = None
    wave: str | None = None
    perturbation: str | None = None
    category: str | None = None
    sample: str | None = None
    """A sample, the ``pair_id`` of one of its pairs, or the id of its question."""
    search: str | None = None
    """Words in the sample's name, question or answers."""
    flipped: bool = False
    moved: bool = False
    invalid: bool = False
    disagree: bool = False

    @property
    def given(self) -> dict[str, Any]:
        """The filters that are set."""
        return {k: v for k, v in self._asdict().items() if v not in (None, False) and k != "study"}

    def query(self, selected: str, **more: Any) -> tuple[str, dict[str, Any]]:
        """Return a query on the rows that the filters leave, ``chosen``, with its parameters."""
        given = self.given
        further = (FURTHER[name] for name in given if name in FURTHER)
        where = " and ".join(["true", *conditions(given), *further])
        values = {k: v for k, v in given.items() if v is not True}
        columns, source = FURTHEST_FIRST if self.moved else "*", "found"
        if self.disagree:
            source = f"(select c.*, {WORST} as worst from found as c semi join labelled as l on "
            source += f"{IS_LABELLED})"
            columns = columns.replace("*", "* exclude (worst)", 1) if self.moved else WORST_FIRST
        chosen = f"chosen as (select {columns} from {source} where {where})"
        return f"{ROWS}, {chosen} {selected}", {"study": self.study, **values, **more}


class ComparisonPage(NamedTuple):
    """A page of comparisons, and what the filters can be."""

    rows: list[dict[str, Any]]
    total: int
    items: int
    """How many labels of a judge on an item these comparisons are of."""
    names: dict[str, list[str]]
    """Judges, prompts, waves, perturbations and categories of the study."""
    kinds: dict[str, Any]
    """Whether there are verdicts that can be ``flipped``, grades that can be ``moved``, votes of
    judges (``judged``), and labels that differ from people's (``calibrated``); the number of
    ``labels`` of judges that were compared with people's, null if none was; and the waves whose
    labels differ, also in its calibrations (``labelled_waves``), null if none does; and whether
    people have voted (``voted_by_people``)."""
    running: dict[str, int] | None
    """Votes so far, and all, of a run that goes on; null if there is none."""


class Comparison(NamedTuple):
    """One comparison with all that is known of it."""

    row: dict[str, Any]
    texts: list[dict[str, Any]]
    votes: list[dict[str, Any]]
    others: list[dict[str, Any]]
    """What other judges, prompts and waves said of the same texts."""


def describe_studies(warehouse: Warehouse) -> list[dict[str, Any]]:
    """Return all studies with results: kind, datasets, judges, votes, their waves, last run."""
    return warehouse.query(STUDIES).to_dicts()


def studies_of(warehouse: Warehouse) -> list[str]:
    """Return the names of all studies with results."""
    return [study["study"] for study in describe_studies(warehouse)]


def unmeasured_waves(warehouse: Warehouse, study: str) -> list[str]:
    """Return the waves of a study that have votes but no results."""
    return warehouse.query(UNMEASURED, {"study": study})["wave"].to_list()


def samples_like(warehouse: Warehouse, name: str, *studies: str) -> list[str] | None:
    """Return the samples of studies whose names are most like one; null if they have this sample.

    ``name`` may also be the ``pair_id`` of one of its pairs, or the id of its question.
    """
    samples = warehouse.query(SAMPLES, {"studies": list(studies), "name": name})
    return None if samples["found"].any() else samples["sample"].to_list()


def names_of(warehouse: Warehouse, study: str) -> dict[str, list[str]]:
    """Return the judges, prompts (also without their digests), waves and perturbations of a study.

    Each list has the names that a filter may give.
    """
    names = _lists(warehouse.query(NAMES, {"study": study}))
    prompts = (name.partition("@")[0] for name in names["prompt"])
    return {**names, "prompt": list(dict.fromkeys([*names["prompt"], *prompts]))}


def _lists(names: pl.DataFrame) -> dict[str, list[str]]:
    known = names.to_dicts()[0].items()
    return {name: [each for each in values or () if each is not None] for name, values in known}


def list_comparisons(warehouse: Warehouse, filters: Filters, page: int) -> ComparisonPage:
    """Return a page of the comparisons that the filters leave, the first page being 0."""
    study = {"study": filters.study}
    rows, items, names, categories, kinds, running = warehouse.query_all(
        filters.query(LIST, skipped=page * ROWS_PER_PAGE),
        filters.query(ITEMS),
        (NAMES, study),
        (CATEGORIES, study),
        (KINDS, study),
        (RUNNING, study),
    )
    return ComparisonPage(
        rows.to_dicts(),
        rows["total"][0] if rows.height else 0,
        items["items"][0],
        {**_lists(names), "category": categories["category"].to_list()},
        kinds.row(0, named=True),
        next(iter(running.to_dicts()), None),
    )


def find_comparison(warehouse: Warehouse, filters: Filters, row_id: str) -> Comparison | None:
    """Return the comparison with this id, or the first that the filters leave; null if none."""
    found = warehouse.query(*filters.query(HERE, id=row_id)).to_dicts()
    if not found:
        return None
    row = found[0]

    def values(*names: str) -> dict[str, Any]:
        return {"study": filters.study, **{name: row[name] for name in names}}

    pair = values("sample", "perturbation")
    asked = {**pair, **values("judge", "prompt", "wave")}
    same = {**pair, **values("dataset", "criterion", "repeat", "id")}
    texts, votes, choices, others = warehouse.query_all(
        (TEXTS, pair), (VOTES, asked), (CHOICES, asked), (f"{ROWS} {OTHERS}", same)
    )
    said = sorted(
        (choices if votes.is_empty() else votes).to_dicts(),
        key=lambda vote: (ARMS.index(vote["arm"]), vote["shown_first"], vote["repeat"]),
    )
    return Comparison(row, texts.to_dicts(), said, others.to_dicts())
