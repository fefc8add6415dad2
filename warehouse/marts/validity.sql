-- One row per study, judge, prompt and wave, and perturbation (null: all ballots): outcomes of ballots.
select
    study, dataset, judge, prompt, wave, perturbation, simulated,
    max(n) filter (statistic = 'valid_rate') as needed,
    max(hits) filter (statistic = 'valid_rate') as valid,
    max(estimate) filter (statistic = 'valid_rate') as valid_rate,
    max(low) filter (statistic = 'valid_rate') as valid_rate_low,
    max(high) filter (statistic = 'valid_rate') as valid_rate_high,
    max(hits) filter (statistic = 'invalid_rate') as invalid,
    max(estimate) filter (statistic = 'invalid_rate') as invalid_rate,
    max(low) filter (statistic = 'invalid_rate') as invalid_rate_low,
    max(high) filter (statistic = 'invalid_rate') as invalid_rate_high,
    max(hits) filter (statistic = 'abstain_rate') as abstain,
    max(estimate) filter (statistic = 'abstain_rate') as abstain_rate,
    max(low) filter (statistic = 'abstain_rate') as abstain_rate_low,
    max(high) filter (statistic = 'abstain_rate') as abstain_rate_high,
    max(hits) filter (statistic = 'ambiguous_rate') as ambiguous,
    max(estimate) filter (statistic = 'ambiguous_rate') as ambiguous_rate,
    max(low) filter (statistic = 'ambiguous_rate') as ambiguous_rate_low,
    max(high) filter (statistic = 'ambiguous_rate') as ambiguous_rate_high,
    max(hits) filter (statistic = 'missing_rate') as missing,
    max(estimate) filter (statistic = 'missing_rate') as missing_rate,
    max(low) filter (statistic = 'missing_rate') as missing_rate_low,
    max(high) filter (statistic = 'missing_rate') as missing_rate_high,
    max(hits) filter (statistic = 'cached_rate') as cached,
    max(estimate) filter (statistic = 'cached_rate') as cached_rate,
    max(low) filter (statistic = 'cached_rate') as cached_rate_low,
    max(high) filter (statistic = 'cached_rate') as cached_rate_high,
    max(hits) filter (statistic = 'saved_rate') as not_needed,
    max(estimate) filter (statistic = 'saved_rate') as not_needed_rate,
    max(low) filter (statistic = 'saved_rate') as not_needed_rate_low,
    max(high) filter (statistic = 'saved_rate') as not_needed_rate_high,
    -- its repeats were always alike, so they were not asked
    (study, dataset, judge, prompt, wave) in (
        select (study, dataset, judge, prompt, wave) from vote_log where stopped = 'deterministic'
    ) as one_vote_per_order,
from estimates
where statistic in (
    'saved_rate', 'valid_rate', 'invalid_rate', 'abstain_rate', 'ambiguous_rate', 'missing_rate', 'cached_rate'
)
group by all
