-- One row per study, judge, prompt and wave: whether the judge is excluded from ASR tables, and why.
-- A rule needs the 95 % interval to lie beyond its limit, and enough questions; null: too few questions to decide.
select
    study, dataset, judge, prompt, wave, simulated, excluded, reasons,
    position_gap, position_gap_low, position_gap_high, position_gap_bound, position_gap_limit,
    tie_rate, tie_rate_low, tie_rate_high, tie_rate_bound, tie_rate_limit,
    invalid_rate, invalid_rate_low, invalid_rate_high, invalid_rate_bound, invalid_rate_limit,
from excluded_judges
