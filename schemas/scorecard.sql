-- One row per study, judge, prompt, wave, mode, gate and perturbation (null: of the whole judge): passed or not.
-- Below so many questions nothing is passed or failed (methods, section 3).
with limits as (select 10 as fewest),
-- Half of the 90 % interval, which shows that a bias is not relevant: 1.6449 is the normal's
-- quantile, the rest Fisher's & Cornish's expansion of Student's (from ten questions on within .0001).
halves as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, statistic,
        standard_error * (1.644854 + 1.523768 / df + 1.420182 / df ** 2 + .983002 / df ** 3) as half,
    from (
        from (select *, clusters - 1 as df from estimates, limits where clusters >= fewest)
        where subgroup = '' and statistic in ('mps', 'mps_sham')
    )
),
gates as (
    -- PF is -2 PG where nobody ties, and |PG| .15 excludes a judge (methods, sections 5 and 15).
    select
        study, dataset, judge, prompt, wave, mode, 'position' as gate, null as perturbation, simulated,
        estimate as value, low, high, if(statistic = 'position_gap', .15, .30) as tolerance,
        greatest(low, -high) > tolerance as failed, greatest(high, -low) <= tolerance as passed,
        1 - greatest(high, -low) / tolerance as margin, clusters < fewest as few, reason,
    from estimates, limits
    where subgroup = '' and perturbation is null
        and statistic in ('position_gap', 'preference_fairness')
    qualify row_number() over (
        partition by study, dataset, judge, prompt, wave, mode order by statistic
    ) = 1
    union all
    select
        study, dataset, judge, prompt, wave, mode, 'validity', null, simulated,
        estimate, low, high, .10 as tolerance,
        low > tolerance, high <= tolerance, 1 - high / tolerance, clusters < fewest, reason,
    from estimates, limits
    where statistic = 'invalid_rate' and perturbation is null and subgroup = ''
    union all
    -- A finding also goes by the adjusted p and by log-odds: where those say otherwise than the
    -- interval, the gate has no margin.
    select
        study, dataset, judge, prompt, wave, mode, 'bias', perturbation, simulated,
        value, value_low, value_high, tolerance,
        finding in ('biased', 'overlooks', 'rewards'), finding in ('no relevant bias', 'detects'),
        if(apart, null, margin), false,
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
        1 - high > tolerance, 1 - low <= tolerance, 1 - (1 - low) / tolerance, clusters < fewest, reason,
    from estimates, limits
    where statistic = 'ceiling_ratio' and perturbation is null
    union all
    -- The measure that comes closest to its minimum; canaries have none, and only raise alarm.
    select
        study, dataset, judge, prompt, wave, 'any', 'drift', null, bool_or(simulated),
        arg_max(estimate, reach), arg_max(low, reach), arg_max(high, reach),
        coalesce(arg_max(minimum, reach), max(minimum)),
        bool_or(state = 'alert' and enough),
        bool_and(state in ('quiet', 'not measured'))
            and bool_and(minimum = 0 or coalesce(reach <= 1, false) and enough),
        least(1 - max(reach), if(bool_or(state = 'alert' and enough), 0, null)),
        bool_or(minimum > 0 and not enough) and not bool_or(state = 'alert' and enough),
        case
            when bool_or(state = 'suspect') then 'suspect: the next wave is to confirm it'
            when max(reach) is null then min(reason) filter (minimum > 0)
        end,
    from (
        select *, clusters >= fewest as enough, if(p_value is not null and minimum > 0, greatest(high, -low) / minimum, null) as reach
        from limits, drifts
        semi join estimates using (study, dataset, judge, prompt, wave)
    )
    group by study, dataset, judge, prompt, wave
)
select
    study, dataset, judge, prompt, wave, mode, gate, perturbation, simulated,
    value, low, high, tolerance,
    case when few then 'inconclusive' when failed then 'fail' when passed then 'pass' else 'inconclusive' end as verdict,
    margin, coalesce(reason, if(few, 'fewer than ' || fewest || ' independent questions', null)) as reason,
from gates, limits
