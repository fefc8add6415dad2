-- One row per study, judge, prompt and wave, and perturbation (null: the control arm): position bias.
select
    study, dataset, judge, prompt, wave, perturbation, simulated,
    max(estimate) filter (statistic = 'position_consistency') as position_consistency,
    max(low) filter (statistic = 'position_consistency') as low,
    max(high) filter (statistic = 'position_consistency') as high,
    max(estimate) filter (statistic = 'primacy') as primacy,
    max(estimate) filter (statistic = 'recency') as recency,
    max(estimate) filter (statistic = 'preference_fairness') as preference_fairness,
    max(n) filter (statistic = 'position_consistency') as n,
    max(dropped) filter (statistic = 'position_consistency') as dropped,
from estimates
where statistic in ('position_consistency', 'primacy', 'recency', 'preference_fairness')
group by all
