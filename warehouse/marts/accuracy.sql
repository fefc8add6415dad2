-- One row per study, judge, prompt and wave, and perturbation (null: the control arm): right verdicts.
select
    study, dataset, judge, prompt, wave, perturbation, simulated,
    max(estimate) filter (statistic = 'accuracy') as accuracy,
    max(low) filter (statistic = 'accuracy') as low,
    max(high) filter (statistic = 'accuracy') as high,
    max(hits) filter (statistic = 'accuracy') as hits,
    max(n) filter (statistic = 'accuracy') as n,
    max(estimate) filter (statistic = 'accuracy_12') as accuracy_12,
    max(estimate) filter (statistic = 'accuracy_21') as accuracy_21,
    max(estimate) filter (statistic = 'accuracy_valid') as accuracy_valid,
    max(estimate) filter (statistic = 'both_right') as both_right,
    max(estimate) filter (statistic = 'order_agreement') as order_agreement,
    max(estimate) filter (statistic = 'order_agreement_llmbar') as order_agreement_llmbar,
    max(estimate) filter (statistic = 'order_kappa') as order_kappa,
    max(estimate) filter (statistic = 'accuracy_before') as before,
    max(estimate) filter (statistic = 'accuracy_after') as after,
    max(estimate) filter (statistic = 'accuracy_change') as change,
    max(low) filter (statistic = 'accuracy_change') as change_low,
    max(high) filter (statistic = 'accuracy_change') as change_high,
from estimates
where subgroup = '' and statistic in (
    'accuracy', 'accuracy_12', 'accuracy_21', 'accuracy_valid', 'both_right', 'order_agreement',
    'order_agreement_llmbar', 'order_kappa', 'accuracy_before', 'accuracy_after', 'accuracy_change'
)
group by all
