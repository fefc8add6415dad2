-- One row per study, judge, prompt, wave, mode, perturbation and category of questions: its mean shift.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, subgroup as category,
    estimate as category_shift, low, high, p_value, n, clusters, dropped, method, reason,
from estimates
where statistic = 'category_shift'
