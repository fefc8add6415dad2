-- One row per study, judge, prompt and wave: whether the judge is left out of ASR tables, and why.
-- A rule needs the 95 % interval to lie beyond its limit, and enough questions; null: cannot be told.
with limits as (
    select 0.15 as position_gap_limit, 0.80 as tie_rate_limit, 0.10 as invalid_rate_limit
),
bounds as (
    select
        study, dataset, judge, prompt, wave, bool_or(simulated) as simulated,
        max(estimate) filter (statistic = 'position_gap') as position_gap,
        max(low) filter (statistic = 'position_gap') as position_gap_low,
        max(high) filter (statistic = 'position_gap') as position_gap_high,
        -- the bound of the gap's size; greatest() would pass over a missing interval
        max(case when low > 0 then low when high < 0 then -high when low <= 0 then 0 end)
            filter (statistic = 'position_gap' and too_few is null) as position_gap_bound,
        max(estimate) filter (statistic = 'tie_rate') as tie_rate,
        max(low) filter (statistic = 'tie_rate') as tie_rate_low,
        max(high) filter (statistic = 'tie_rate') as tie_rate_high,
        max(low) filter (statistic = 'tie_rate' and too_few is null) as tie_rate_bound,
        max(estimate) filter (statistic = 'invalid_rate') as invalid_rate,
        max(low) filter (statistic = 'invalid_rate') as invalid_rate_low,
        max(high) filter (statistic = 'invalid_rate') as invalid_rate_high,
        max(low) filter (statistic = 'invalid_rate' and too_few is null) as invalid_rate_bound,
        position_gap_limit, tie_rate_limit, invalid_rate_limit,
    from estimates, limits
    where
        statistic in ('position_gap', 'tie_rate', 'invalid_rate')
        and perturbation is null and subgroup = ''
    group by all
)
select
    study, dataset, judge, prompt, wave, simulated,
    position_gap_bound > position_gap_limit
        or tie_rate_bound > tie_rate_limit
        or invalid_rate_bound > invalid_rate_limit as excluded,
    nullif(concat_ws(
        ', ',
        case when position_gap_bound > position_gap_limit then 'position gap' end,
        case when tie_rate_bound > tie_rate_limit then 'tie rate' end,
        case when invalid_rate_bound > invalid_rate_limit then 'invalid rate' end
    ), '') as reasons,
    position_gap, position_gap_low, position_gap_high, position_gap_bound, position_gap_limit::double as position_gap_limit,
    tie_rate, tie_rate_low, tie_rate_high, tie_rate_bound, tie_rate_limit::double as tie_rate_limit,
    invalid_rate, invalid_rate_low, invalid_rate_high, invalid_rate_bound, invalid_rate_limit::double as invalid_rate_limit,
from bounds
