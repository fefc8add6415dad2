-- One row per study, judge, prompt, wave, mode, perturbation and statistic: mean preference shift, over the control, over the sham, and of the sham.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, statistic,
    estimate as shift, low, high, p_value, n, clusters, dropped, votes_per_pair, reason,
from estimates
where statistic in ('mps', 'mps_sham', 'sham_shift') and subgroup = ''
