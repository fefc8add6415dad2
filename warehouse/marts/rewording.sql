-- One row per study, judge, prompt, wave, mode and variant (null: all) of the prompt: verdicts on control pairs that change in other words.
-- again_...: the same when control is asked again in the same words; excess: what the wording adds to that.
select
    study, dataset, judge, prompt, wave, mode, nullif(subgroup, '') as variant, simulated,
    max(estimate) filter (statistic = 'rewording_sensitivity') as changed,
    max(low) filter (statistic = 'rewording_sensitivity') as changed_low,
    max(high) filter (statistic = 'rewording_sensitivity') as changed_high,
    max(n) filter (statistic = 'rewording_sensitivity') as n,
    max(clusters) filter (statistic = 'rewording_sensitivity') as clusters,
    max(estimate) filter (statistic = 'rewording_score_change') as score_change,
    max(low) filter (statistic = 'rewording_score_change') as score_low,
    max(high) filter (statistic = 'rewording_score_change') as score_high,
    max(estimate) filter (statistic = 'repeat_sensitivity') as again_changed,
    max(low) filter (statistic = 'repeat_sensitivity') as again_low,
    max(high) filter (statistic = 'repeat_sensitivity') as again_high,
    max(estimate) filter (statistic = 'repeat_score_change') as again_score_change,
    max(low) filter (statistic = 'repeat_score_change') as again_score_low,
    max(high) filter (statistic = 'repeat_score_change') as again_score_high,
    max(estimate) filter (statistic = 'rewording_excess') as excess,
    max(low) filter (statistic = 'rewording_excess') as low,
    max(high) filter (statistic = 'rewording_excess') as high,
    max(p_value) filter (statistic = 'rewording_excess') as p_value,
    -- which of the columns are null, and why
    string_agg(distinct statistic || ': ' || reason, '; ' order by statistic || ': ' || reason)
        filter (estimate is null) as reason,
from estimates
where statistic in (
    'rewording_sensitivity', 'rewording_score_change', 'repeat_sensitivity', 'repeat_score_change',
    'rewording_excess'
)
group by all
