-- One row per study, judge, prompt, wave, mode and perturbation: verdicts turned, and turned anyway.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated,
    max(hits) filter (statistic = 'flips_up') as up,
    max(hits) filter (statistic = 'flips_down') as down,
    max(n) filter (statistic = 'flips_up') as n,
    max(estimate) filter (statistic = 'flip_direction') as direction,
    max(p_value) filter (statistic = 'flip_direction') as direction_p,
    max(estimate) filter (statistic = 'robustness_rate') as robustness_rate,
    max(estimate) filter (statistic = 'consistency_rate') as consistency_rate,
    max(estimate) filter (statistic = 'excess_flips') as excess_flips,
    max(low) filter (statistic = 'excess_flips') as low,
    max(high) filter (statistic = 'excess_flips') as high,
    max(p_value) filter (statistic = 'excess_flips') as p_value,
from estimates
where subgroup = '' and statistic in (
    'flips_up', 'flips_down', 'flip_direction', 'robustness_rate', 'consistency_rate', 'excess_flips'
)
group by all
