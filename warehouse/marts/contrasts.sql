-- One row per study, statistic, prompt, wave, mode, perturbation and pair of judges, or of prompts of a judge: difference between the two shifts.
-- Judges are compared with the same prompt (other_prompt = prompt), and each judge with another prompt (other = judge).
-- simulated: at least one of the two judges is simulated.
-- With too few questions p_holm is null, and the pair does not count for the others.
select
    study, dataset, judge, prompt, other, other_prompt, wave, mode, perturbation, kind, simulated, statistic,
    contrast, low, high, p_value, p_holm, minimum, finding, judge_value, other_value,
    n, clusters, dropped, votes_per_pair, method, reason,
from judge_pairs
