-- One row per study, statistic, prompt, wave, mode, perturbation and pair of judges: which is moved more.
with ranked as (
    select
        *, replace(statistic, '_contrast', '') as single,
        count(p_value) over (partition by study, dataset, prompt, wave, mode, perturbation, statistic)
            - row_number() over family + 1 as left_over,
    from estimates
    where statistic in ('mps_contrast', 'mps_sham_contrast', 'asr_contrast', 'mcnemar')
    window family as (
        partition by study, dataset, prompt, wave, mode, perturbation, statistic
        order by p_value nulls last, judge, subgroup
    )
),
singles as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, statistic as single, estimate
    from estimates
    where subgroup = ''
)
select
    r.study, r.dataset, r.judge, r.subgroup as other, r.prompt, r.wave, r.mode, r.perturbation,
    r.kind, r.simulated, r.statistic, r.estimate as contrast, r.low, r.high, r.p_value,
    case when r.p_value is not null then max(least(1, r.p_value * r.left_over)) over (
        partition by r.study, r.dataset, r.prompt, r.wave, r.mode, r.perturbation, r.statistic
        order by r.p_value nulls last, r.judge, r.subgroup
    ) end as p_holm,
    mine.estimate as judge_value, theirs.estimate as other_value,
    r.n, r.clusters, r.dropped, r.votes_per_pair, r.method, r.reason,
from ranked as r
left join singles as mine
    using (study, dataset, judge, prompt, wave, mode, perturbation, single)
left join singles as theirs
    on theirs.judge = r.subgroup
    and (theirs.study, theirs.dataset, theirs.prompt, theirs.wave, theirs.mode)
        = (r.study, r.dataset, r.prompt, r.wave, r.mode)
    and theirs.perturbation = r.perturbation and theirs.single = r.single
