-- One row per study, judge, prompt, wave, mode, pair of models and perturbation: can it overturn the win?
select
    study, dataset, judge, prompt, wave, mode, subgroup, perturbation, simulated,
    bias_bound, tipping_shift, rests_on, clusters, win_rate, win_rate_low, win_rate_high, margin, conclusion,
from win_checks
where perturbation is not null
