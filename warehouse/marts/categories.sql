-- One row per study, judge, prompt, wave, mode, perturbation and category of questions: its shift.
-- unit: score for mean scores of comparisons, points or share for ratings of single answers.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, category,
    statistic, unit, estimate as category_shift, low, high, p_value, p_adjusted, adjustment,
    n, clusters, dropped, method, reason,
from category_shifts
