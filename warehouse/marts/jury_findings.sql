-- One row per study, prompt, wave, mode and perturbation: what is concluded of the jury of all judges.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, statistic,
    shift, low, high, p_value, p_adjusted, minimum, finding, n, clusters, reason,
from jury_conclusions
where left_out is null
