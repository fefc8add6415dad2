-- One row per study, judge, prompt, wave, mode and perturbation: verdict flips, and flips under the sham.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated,
    max(hits) filter (statistic = 'flips_up') as up,
    max(hits) filter (statistic = 'flips_down') as down,
    max(n) filter (statistic = 'flips_up') as n,
    max(estimate) filter (statistic = 'flips_up') as up_rate,
    max(low) filter (statistic = 'flips_up') as up_low,
    max(high) filter (statistic = 'flips_up') as up_high,
    max(estimate) filter (statistic = 'flips_down') as down_rate,
    max(low) filter (statistic = 'flips_down') as down_low,
    max(high) filter (statistic = 'flips_down') as down_high,
    max(estimate) filter (statistic = 'flip_direction') as direction,
    max(low) filter (statistic = 'flip_direction') as direction_low,
    max(high) filter (statistic = 'flip_direction') as direction_high,
    max(p_value) filter (statistic = 'flip_direction') as direction_p,
    max(estimate) filter (statistic = 'robustness_rate') as robustness_rate,
    max(low) filter (statistic = 'robustness_rate') as robustness_rate_low,
    max(high) filter (statistic = 'robustness_rate') as robustness_rate_high,
    max(estimate) filter (statistic = 'consistency_rate') as consistency_rate,
    max(low) filter (statistic = 'consistency_rate') as consistency_rate_low,
    max(high) filter (statistic = 'consistency_rate') as consistency_rate_high,
    max(estimate) filter (statistic = 'excess_flips') as excess_flips,
    max(low) filter (statistic = 'excess_flips') as low,
    max(high) filter (statistic = 'excess_flips') as high,
    max(p_value) filter (statistic = 'excess_flips') as p_value,
from estimates
where subgroup = '' and statistic in (
    'flips_up', 'flips_down', 'flip_direction', 'robustness_rate', 'consistency_rate', 'excess_flips'
)
group by all
