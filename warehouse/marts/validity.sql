-- One row per study, judge, prompt and wave, and perturbation (null: all ballots): what became of ballots.
select
    study, dataset, judge, prompt, wave, perturbation, simulated,
    max(n) as planned,
    max(hits) filter (statistic = 'valid_rate') as valid,
    max(hits) filter (statistic = 'invalid_rate') as invalid,
    max(hits) filter (statistic = 'abstain_rate') as abstain,
    max(hits) filter (statistic = 'ambiguous_rate') as ambiguous,
    max(hits) filter (statistic = 'missing_rate') as missing,
    max(hits) filter (statistic = 'cached_rate') as cached,
from estimates
where statistic in (
    'valid_rate', 'invalid_rate', 'abstain_rate', 'ambiguous_rate', 'missing_rate', 'cached_rate'
)
group by all
