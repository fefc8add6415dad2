-- One row per study, judge, prompt, wave, mode, perturbation and measure: what changed since the baseline, and whether it is an alert.
select
    study, dataset, judge, prompt, wave, wave_number, mode, perturbation, simulated, measure, epoch, base, base_questions,
    estimate as change, low, high, p_value, p_adjusted, e_value, e_rejected, level, minimum, detectable, n, clusters,
    state, reason,
from drifts
