-- One row per study, judge, prompt, wave, mode, gate and perturbation (null: of the whole judge): passed or not.
-- With too few questions nothing is passed or failed (methods, sections 3 and 16).
-- Half of the 90 % interval, which shows that a bias is not relevant: 1.6449 is the normal's
-- quantile, the rest Fisher's & Cornish's expansion of Student's (from ten questions on within .0001).
with halves as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, statistic,
        standard_error
            * (1.644854 + 1.523768 / freedom + 1.420182 / freedom ** 2 + .983002 / freedom ** 3) as half,
    from (
        from (select *, coalesce(df, clusters - 1) as freedom from estimates where too_few is null)
        where subgroup = '' and statistic in ('mps', 'mps_sham')
    )
),
gates as (
    -- PF is -2 PG where nobody ties, and |PG| .15 excludes a judge (methods, sections 5 and 15).
    select
        study, dataset, judge, prompt, wave, mode, 'position' as gate, null as perturbation, simulated,
        estimate as value, low, high, if(statistic = 'position_gap', .15, .30) as tolerance,
        greatest(low, -high) > tolerance as failed, greatest(high, -low) <= tolerance as passed,
        1 - greatest(high, -low) / tolerance as margin, too_few, reason,
    from estimates
    where subgroup = '' and perturbation is null
        and statistic in ('position_gap', 'preference_fairness')
    qualify row_number() over (
        partition by study, dataset, judge, prompt, wave, mode order by statistic
    ) = 1
    union all
    select
        study, dataset, judge, prompt, wave, mode, 'validity', null, simulated,
        estimate, low, high, .10 as tolerance,
        low > tolerance, high <= tolerance, 1 - high / tolerance, too_few, reason,
    from estimates
    where statistic = 'invalid_rate' and perturbation is null and subgroup = ''
    union all
    -- A finding also goes by the adjusted p and by log-odds: where those say otherwise than the
    -- interval, the gate has no margin.
    select
        study, dataset, judge, prompt, wave, mode, 'bias', perturbation, simulated,
        value, value_low, value_high, tolerance,
        finding in ('biased', 'overlooks', 'rewards'), finding in ('no relevant bias', 'detects'),
        if(apart, null, margin), null,
        nullif(concat_ws('; ', reason, if(apart, 'no margin: the finding rests on more than the interval, which says otherwise', null)), ''),
    from (
        select *, (finding in ('no relevant bias', 'detects')) <> (margin >= 0) as apart
        from (
            select
                *, if(kind = 'promote', estimate, detected) as value,
                if(kind = 'promote', low, detected_low) as value_low,
                if(kind = 'promote', high, detected_high) as value_high,
                if(kind = 'promote', minimum, detects_at) as tolerance,
                if(
                    kind = 'promote', 1 - coalesce(abs(estimate) + half, greatest(high, -low)) / minimum,
                    detected_low / detects_at - 1
                ) as margin,
            from findings left join halves using (study, dataset, judge, prompt, wave, mode, perturbation, statistic)
        )
    )
    union all
    -- What a judge loses of the agreement that people reach among themselves; eps .1 is the
    -- strictest of the alternative annotator test (methods, sections 8 and 9).
    select
        study, dataset, judge, prompt, wave, mode, 'agreement', null, simulated,
        1 - estimate, 1 - high, 1 - low, .10 as tolerance,
        1 - high > tolerance, 1 - low <= tolerance, 1 - (1 - low) / tolerance, too_few, reason,
    from estimates
    where statistic = 'ceiling_ratio' and perturbation is null
    union all
    -- The measure that comes closest to its minimum; canaries have none, and only raise alarm.
    select
        study, dataset, judge, prompt, wave, 'any', 'drift', null, bool_or(simulated),
        arg_max(estimate, reach), arg_max(low, reach), arg_max(high, reach),
        coalesce(arg_max(minimum, reach), max(minimum)),
        bool_or(state = 'alert'),
        bool_and(state in ('quiet', 'not measured'))
            and bool_and(minimum = 0 or coalesce(reach <= 1, false) and not few),
        least(1 - max(reach), if(bool_or(state = 'alert'), 0, null)),
        case when not bool_or(state = 'alert') then min(reason) filter (minimum > 0 and few) end,
        case
            when bool_or(state = 'suspect') then 'suspect: the next wave is to confirm it'
            when max(reach) is null then min(reason) filter (minimum > 0)
        end,
    from (
        -- too few questions are what leaves a change that has a p-value without a state
        select *, state = 'not measured' and p_value is not null as few, if(p_value is not null and minimum > 0, greatest(high, -low) / minimum, null) as reach
        from drifts
        semi join estimates using (study, dataset, judge, prompt, wave)
    )
    group by study, dataset, judge, prompt, wave
)
select
    study, dataset, judge, prompt, wave, mode, gate, perturbation, simulated,
    value, low, high, tolerance,
    case when too_few is not null then 'inconclusive' when failed then 'fail' when passed then 'pass' else 'inconclusive' end as verdict,
    margin, coalesce(reason, too_few) as reason,
from gates
