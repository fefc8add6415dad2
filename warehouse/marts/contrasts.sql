-- One row per study, statistic, prompt, wave, mode, perturbation and pair of judges: which is moved more.
-- Simulated if one of the two is a formula.
-- With too few questions p_holm is null, and the pair does not count for the others.
select
    study, dataset, judge, other, prompt, wave, mode, perturbation, kind, simulated, statistic,
    contrast, low, high, p_value, p_holm, minimum, finding, judge_value, other_value,
    n, clusters, dropped, votes_per_pair, method, reason,
from judge_pairs
