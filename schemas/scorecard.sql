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
        where subgroup = '' and (
            statistic in ('mps', 'mps_sham') or statistic in ('position_gap', 'position_kappa') and perturbation is null
        )
    )
),
gates as (
    select
        study, dataset, judge, prompt, wave, mode, 'validity' as gate, null as perturbation, simulated,
        estimate as value, low, high, .10 as tolerance,
        low > tolerance as failed, high <= tolerance as passed, 1 - high / tolerance as margin,
        too_few, reason,
    from estimates
    where statistic = 'invalid_rate' and perturbation is null and subgroup = ''
    union all
    -- A finding also goes by the adjusted p and by log-odds: where those say otherwise than the
    -- interval, the gate has no margin.
    select
        study, dataset, judge, prompt, wave, mode, if(kind = 'position', 'position', 'bias'), perturbation, simulated,
        value, value_low, value_high, tolerance,
        finding in ('biased', 'overlooks', 'rewards'), finding in ('no relevant bias', 'detects'),
        if(apart, null, margin), null,
        nullif(concat_ws('; ', reason, if(apart, 'no margin: the finding rests on more than the interval, which says otherwise', null)), ''),
    from (
        select *, (finding in ('no relevant bias', 'detects')) <> (margin >= 0) as apart
        from (
            select
                *, if(kind <> 'detract', estimate, detected) as value,
                if(kind <> 'detract', low, detected_low) as value_low,
                if(kind <> 'detract', high, detected_high) as value_high,
                if(kind <> 'detract', minimum, detects_at) as tolerance,
                if(
                    kind <> 'detract', 1 - coalesce(abs(estimate) + half, greatest(high, -low)) / minimum,
                    detected_low / detects_at - 1
                ) as margin,
            from (
                select f.*, h.half from findings as f left join halves as h
                    on h.study = f.study and h.dataset = f.dataset and h.judge = f.judge and h.prompt = f.prompt
                    and h.wave = f.wave and h.mode = f.mode and h.statistic = f.statistic
                    and h.perturbation is not distinct from f.perturbation
            )
        )
    )
    union all
    -- Whether a judge can tell a flawed answer from a sound one: of at least one kind of flaw it surely detects
    -- more than a fifth; it fails if it surely detects less of every kind, or of all of them on average, whose
    -- interval takes kinds of flaws as independent (methods, section 16). That average is also taken of D: of a
    -- judge at random more votes narrow the mean scores, but not the verdicts.
    select
        study, dataset, judge, prompt, wave, coalesce(max(mode) filter (kind = 'detract'), 'any'), 'discernment', null,
        bool_or(simulated), arg_max(seen, seen_low), max(seen_low), arg_max(seen_high, seen_low), .20 as tolerance,
        coalesce(
            max(seen_low) <= .20
            and (
                bool_and(seen_high <= .20) or avg(seen) + sqrt(sum((seen_high - seen) ** 2)) / count(seen_high) <= .20
                or count(scored_high) = count(seen_high) and max(scored_low) <= .20
                and avg(scored) + sqrt(sum((scored_high - scored) ** 2)) / count(scored_high) <= .20
            ),
            false
        ) as failed,
        coalesce(max(seen_low) > .20, false),
        max(seen_low) / .20 - 1, null,
        case
            when not bool_or(kind = 'detract') then 'no flawed answer was shown'
            when failed and max(seen_high) > .20 then 'the mean over the kinds of flaws is below .20, with its interval'
            when count(seen_low) = 0 then min(reason) filter (kind = 'detract')
        end,
    from (
        select
            f.*, f.kind = 'detract' and f.finding is not null as told, if(told, f.detected, null) as seen,
            if(told, f.detected_low, null) as seen_low, if(told, f.detected_high, null) as seen_high,
            if(told, d.estimate, null) as scored, if(told, d.low, null) as scored_low, if(told, d.high, null) as scored_high
        from findings as f
        left join (
            from estimates where statistic = 'detection_share' and subgroup = '' and too_few is null
        ) as d
            on d.study = f.study and d.dataset = f.dataset and d.judge = f.judge and d.prompt = f.prompt
            and d.wave = f.wave and d.mode = f.mode and d.perturbation = f.perturbation
    )
    group by study, dataset, judge, prompt, wave
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
