-- One row per study, judge, prompt, wave, mode and perturbation: bounds of the ASR given invalid votes.
with bounds as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated,
        max(estimate) filter (statistic = 'asr_bounds') as asr,
        max(low) filter (statistic = 'asr_bounds') as asr_at_least,
        max(high) filter (statistic = 'asr_bounds') as asr_at_most,
        max(n) filter (statistic = 'asr_bounds') as n,
        max(estimate) filter (statistic = 'lost_over_sham') as lost_over_sham,
        max(low) filter (statistic = 'lost_over_sham') as lost_over_sham_low,
        max(high) filter (statistic = 'lost_over_sham') as lost_over_sham_high,
        max(p_value) filter (statistic = 'lost_over_sham') as lost_over_sham_p,
        max(estimate) filter (statistic = 'lost_over_control') as lost_over_control,
        max(low) filter (statistic = 'lost_over_control') as lost_over_control_low,
        max(high) filter (statistic = 'lost_over_control') as lost_over_control_high,
        max(p_value) filter (statistic = 'lost_over_control') as lost_over_control_p,
    from estimates
    where subgroup = '' and statistic in ('asr_bounds', 'lost_over_sham', 'lost_over_control')
    group by all
),
arms as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation,
        max(hits) filter (subgroup = 'experimental') as lost,
        max(estimate) filter (subgroup = 'experimental') as lost_experimental,
        max(estimate) filter (subgroup = 'sham') as lost_sham,
        max(estimate) filter (subgroup = 'control') as lost_control,
    from estimates
    where statistic = 'lost_rate'
    group by all
)
from bounds left join arms using (study, dataset, judge, prompt, wave, mode, perturbation)
