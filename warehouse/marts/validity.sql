-- One row per study, judge, prompt and wave, and perturbation (null: all ballots): what became of ballots.
select
    study, dataset, judge, prompt, wave, perturbation, simulated,
    max(n) filter (statistic = 'valid_rate') as needed,
    max(hits) filter (statistic = 'valid_rate') as valid,
    max(hits) filter (statistic = 'invalid_rate') as invalid,
    max(hits) filter (statistic = 'abstain_rate') as abstain,
    max(hits) filter (statistic = 'ambiguous_rate') as ambiguous,
    max(hits) filter (statistic = 'missing_rate') as missing,
    max(hits) filter (statistic = 'cached_rate') as cached,
    coalesce(max(hits) filter (statistic = 'saved_rate'), 0) as not_needed,
from estimates
where statistic in (
    'saved_rate', 'valid_rate', 'invalid_rate', 'abstain_rate', 'ambiguous_rate', 'missing_rate', 'cached_rate'
)
group by all
