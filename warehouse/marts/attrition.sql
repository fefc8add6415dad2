-- One row per study, judge, prompt, wave, mode and perturbation: what samples without a verdict hide.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated,
    max(estimate) filter (statistic = 'asr_bounds') as asr,
    max(low) filter (statistic = 'asr_bounds') as asr_at_least,
    max(high) filter (statistic = 'asr_bounds') as asr_at_most,
    max(n) filter (statistic = 'asr_bounds') as n,
    max(round((high - low) * n)::bigint) filter (statistic = 'asr_bounds') as lost,
    max(estimate) filter (statistic = 'differential_attrition') as differential_attrition,
    max(low) filter (statistic = 'differential_attrition') as low,
    max(high) filter (statistic = 'differential_attrition') as high,
    max(p_value) filter (statistic = 'differential_attrition') as p_value,
from estimates
where subgroup = '' and statistic in ('asr_bounds', 'differential_attrition')
group by all
