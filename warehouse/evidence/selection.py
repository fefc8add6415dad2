"""SQL conditions that select comparisons, replies and differing labels of a study; its waves."""

from collections.abc import Iterable

from schemas.judging import WITHOUT_VERDICT

OF_LABELS = """(
    study = $study or study in (
        select study from runs
        where flow = 'calibrate' and json_extract_string(parameters, 'study') = $study
    )
)"""
"""Labels may differ in the study itself, and in calibrations that compare its votes."""
NAMED = ("judge", "prompt", "wave", "perturbation")
OWN_ID = "if(starts_with(cluster, dataset || '/'), substr(cluster, length(dataset) + 2), cluster)"
"""The id of a question in the user's data: without the name of the dataset."""
BY_ANOTHER_NAME = f"""(
    select sample from pairs where {{name}} in (pair_id, cluster, {OWN_ID})
    union all
    select sample from vote_log where {{name}} in (cluster, {OWN_ID})
    union all
    select coalesce(sample, item) from ratings where {{name}} in (cluster, {OWN_ID})
)"""
"""Samples by the ``pair_id`` of one of their pairs or by their question, with or without the name
of its dataset."""
CONDITIONS = {
    **{name: f"{name} = ${name}" for name in NAMED},
    # A prompt of the user's own is named with or without the digest of its wording.
    "prompt": "$prompt in (prompt, split_part(prompt, '@', 1))",
    "sample": f"({{0}} = $sample or {{0}} in {BY_ANOTHER_NAME.format(name='$sample')})",
}
"""Filter -> condition; {0} is the column of what was judged."""
NAMES = f"""
    select list(distinct judge order by judge) as judge,
        list(distinct prompt order by prompt) as prompt,
        list(distinct wave order by wave) as wave,
        list(distinct perturbation order by perturbation) as perturbation
    from (
        select judge, prompt, wave, perturbation from mart.comparisons where study = $study
        union all select judge, prompt, wave, null from differing_labels where {OF_LABELS}
    )
"""
WITHOUT_VOTES = "failed > 0 and asked + from_warehouse = 0"
"""Whether no ballot of a run has a vote; it replaced no results."""
ASKED = f"""(
    select parameters->>'wave' as wave, min(started_at) as began from runs
    where study = $study and flow = 'audit' and starts_with(state, 'completed')
        and ({WITHOUT_VOTES}) is not true
    group by wave
)"""
"""The waves of a study that were asked to the end, maybe with gaps, and have votes."""
UNMEASURED = f"""
    select wave from {ASKED} where wave <> ''
    except
    select wave from (
        select study, wave from estimates union all select study, wave from shifts
    ) where study = $study
    order by wave
"""
"""The waves with votes but no results."""
NEWER = f"""
    select wave from {ASKED} where began > (select began from {ASKED} where wave = $wave)
    order by began
"""
"""The waves of a study that began after one of its waves, the newest last."""
UNREAD = f"""
    select study, judge, prompt, wave, perturbation, sample, null as criterion, null as repeat, arm,
        coalesce(human, false) as human,
        concat_ws(chr(31), dataset, judge, prompt, wave, sample, arm, perturbation, shown_first,
            repeat) as vote,
    from vote_log where study = $study and choice in {(*WITHOUT_VERDICT,)}
    union all
    select study, judge, prompt, wave, perturbation, coalesce(sample, item), criterion, repeat, arm,
        human,
        concat_ws(chr(31), dataset, judge, prompt, wave, coalesce(sample, item), arm, perturbation,
            side, repeat),
    from ratings where study = $study and invalid is not null
"""
"""Votes without a verdict, also those that were collected elsewhere, without their replies.

A vote with several criteria has a row for each."""


def conditions(given: Iterable[str], sample: str = "sample") -> list[str]:
    """Return the conditions of the filters that are given; ``sample`` is its column."""
    return [CONDITIONS[name].format(sample) for name in given if name in CONDITIONS]
