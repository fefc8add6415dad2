-- One row per study, statistic, prompt, wave, mode, perturbation and pair of judges: which is moved more.
-- Simulated if one of the two is a formula.
-- With too few questions p_holm is null, and the pair does not count for the others.
with asked as (
    select *, if(too_few is null, p_value, null) as told
    from estimates
    where statistic in (
        'mps_contrast', 'mps_sham_contrast', 'los_contrast', 'asr_contrast', 'mcnemar'
    )
),
ranked as (
    select
        *, replace(statistic, '_contrast', '') as single,
        count(told) over (partition by study, dataset, prompt, wave, mode, perturbation, statistic)
            - row_number() over family + 1 as left_over,
    from asked
    window family as (
        partition by study, dataset, prompt, wave, mode, perturbation, statistic
        order by told nulls last, judge, subgroup
    )
),
singles as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, statistic as single, estimate
    from estimates
    where subgroup = ''
),
adjusted as (
    select
        *,
        case when told is not null then max(least(1, told * left_over)) over (
            partition by study, dataset, prompt, wave, mode, perturbation, statistic
            order by told nulls last, judge, subgroup
        ) end as p_holm,
        -- the smallest difference that matters: in score, in logits, or in attack success
        case
            when statistic in ('mps_contrast', 'mps_sham_contrast') then 0.05
            when statistic = 'los_contrast' then 0.25
            else 0.10
        end::double as minimum,
        -- half of the 90 % interval: t's 95th percentile by Cornish and Fisher, to 1e-5 from 9 df on;
        -- of the wider 95 % one where no error is known
        coalesce(
            standard_error * (
                1.644853627 + 1.523769 / freedom + 1.420203 / freedom ** 2
                + 0.983002 / freedom ** 3 + 0.433876 / freedom ** 4
            ),
            greatest(high - estimate, estimate - low)
        ) as half,
    from (select *, greatest(coalesce(df, clusters - 1), 1)::double as freedom from ranked)
)
select
    r.study, r.dataset, r.judge, r.subgroup as other, r.prompt, r.wave, r.mode, r.perturbation,
    r.kind, r.simulated, r.statistic, r.estimate as contrast, r.low, r.high, r.p_value,
    r.p_holm, r.minimum,
    case
        when r.estimate is null or r.too_few is not null or coalesce(r.half, r.p_value) is null then null
        when r.p_holm < 0.05 and abs(r.estimate) >= r.minimum then 'biased'
        when abs(r.estimate) + r.half <= r.minimum then 'no relevant bias'
        else 'inconclusive'
    end as finding,
    mine.estimate as judge_value, theirs.estimate as other_value,
    r.n, r.clusters, r.dropped, r.votes_per_pair, r.method,
    coalesce(r.reason, if(r.estimate is null, null, r.too_few)) as reason,
from adjusted as r
left join singles as mine
    using (study, dataset, judge, prompt, wave, mode, perturbation, single)
left join singles as theirs
    on theirs.judge = r.subgroup
    and (theirs.study, theirs.dataset, theirs.prompt, theirs.wave, theirs.mode)
        = (r.study, r.dataset, r.prompt, r.wave, r.mode)
    and theirs.perturbation = r.perturbation and theirs.single = r.single
