-- One row per study, judge and annotator left out, at the epsilon that was asked for.
select
    study, dataset, judge, prompt, wave, metric, epsilon, epsilon_kind, annotator, n, advantage_probability,
    low, high, level, method, human_advantage_probability, tied, test, p_value, p_value_t, p_value_score,
    p_adjusted, rejected, unreadable, reason, simulated,
from advantages
where asked
