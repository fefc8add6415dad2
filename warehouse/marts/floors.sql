-- One row per study, judge, prompt, wave, mode and perturbation: noise floors of the attack success rate.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated,
    max(votes_per_pair) filter (statistic = 'random_baseline') as votes_per_pair,
    max(estimate) filter (statistic = 'sham_floor') as sham_floor,
    max(low) filter (statistic = 'sham_floor') as sham_low,
    max(high) filter (statistic = 'sham_floor') as sham_high,
    max(estimate) filter (statistic = 'replicate_floor') as replicate_floor,
    max(low) filter (statistic = 'replicate_floor') as replicate_low,
    max(high) filter (statistic = 'replicate_floor') as replicate_high,
    max(estimate) filter (statistic = 'prompt_sensitivity') as prompt_sensitivity,
    max(low) filter (statistic = 'prompt_sensitivity') as low,
    max(high) filter (statistic = 'prompt_sensitivity') as high,
    max(estimate) filter (statistic = 'random_baseline') as random_baseline,
    max(estimate) filter (statistic = 'random_baseline_coin') as random_baseline_coin,
from estimates
where subgroup = '' and statistic in (
    'sham_floor', 'replicate_floor', 'prompt_sensitivity', 'random_baseline', 'random_baseline_coin'
)
group by all
