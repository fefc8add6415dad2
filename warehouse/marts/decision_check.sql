-- One row per study, judge, prompt, wave, mode, pair of models and perturbation: can it overturn the win?
with checked as (
    select
        study, dataset, judge, prompt, wave, mode, subgroup, perturbation, simulated,
        max(estimate) filter (statistic = 'bias_bound') as bias_bound,
        max(estimate) filter (statistic = 'tipping_shift') as tipping_shift,
        any_value(method) as rests_on, min(clusters) as clusters,
        max(too_few) as too_few,
    from estimates
    where statistic in ('bias_bound', 'tipping_shift')
    group by all
)
select
    c.* exclude (too_few), w.estimate as win_rate, w.low as win_rate_low, w.high as win_rate_high,
    abs(w.estimate - .5) as margin,
    case
        when w.low is null or c.bias_bound is null then 'unknown'
        when coalesce(c.too_few, w.too_few) is not null
            then 'no conclusion: ' || coalesce(c.too_few, w.too_few)
        when w.low <= .5 and w.high >= .5 then 'no conclusion: the interval holds .5'
        when c.bias_bound > abs(w.estimate - .5) then 'conclusion not robust to ' || c.perturbation
        else 'robust'
    end as conclusion,
from checked as c
join (from estimates where statistic = 'win_rate') as w
    using (study, dataset, judge, prompt, wave, subgroup)
