-- One row per study, judge, prompt, wave, mode, perturbation and arm: the share of its votes that are invalid.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, subgroup as arm,
    hits as lost, n as votes, estimate as lost_rate, low, high, clusters, method, reason,
from estimates
where statistic = 'lost_rate'
