-- One row per study, judge, prompt, wave, mode and variant (null: all) of the prompt: verdicts on control pairs, or ratings of answers, that change in other words.
-- again_...: the same when control is asked again in the same words; excess and rating_excess: what the wording adds to that.
select
    study, dataset, judge, prompt, wave, mode, nullif(subgroup, '') as variant, simulated,
    max(estimate) filter (statistic = 'rewording_sensitivity') as changed,
    max(low) filter (statistic = 'rewording_sensitivity') as changed_low,
    max(high) filter (statistic = 'rewording_sensitivity') as changed_high,
    max(n) filter (statistic in ('rewording_sensitivity', 'rating_rewording_change')) as n,
    max(clusters) filter (statistic in ('rewording_sensitivity', 'rating_rewording_change')) as clusters,
    max(estimate) filter (statistic = 'rewording_score_change') as score_change,
    max(low) filter (statistic = 'rewording_score_change') as score_low,
    max(high) filter (statistic = 'rewording_score_change') as score_high,
    max(estimate) filter (statistic = 'repeat_sensitivity') as again_changed,
    max(low) filter (statistic = 'repeat_sensitivity') as again_low,
    max(high) filter (statistic = 'repeat_sensitivity') as again_high,
    max(estimate) filter (statistic = 'repeat_score_change') as again_score_change,
    max(low) filter (statistic = 'repeat_score_change') as again_score_low,
    max(high) filter (statistic = 'repeat_score_change') as again_score_high,
    max(unit) filter (statistic = 'rating_rewording_change') as rating_unit,
    max(estimate) filter (statistic = 'rating_rewording_shift') as rating_shift,
    max(low) filter (statistic = 'rating_rewording_shift') as rating_shift_low,
    max(high) filter (statistic = 'rating_rewording_shift') as rating_shift_high,
    max(p_value) filter (statistic = 'rating_rewording_shift') as rating_shift_p,
    max(estimate) filter (statistic = 'rating_rewording_change') as rating_change,
    max(low) filter (statistic = 'rating_rewording_change') as rating_change_low,
    max(high) filter (statistic = 'rating_rewording_change') as rating_change_high,
    max(estimate) filter (statistic = 'rating_repeat_change') as again_rating_change,
    max(low) filter (statistic = 'rating_repeat_change') as again_rating_change_low,
    max(high) filter (statistic = 'rating_repeat_change') as again_rating_change_high,
    max(estimate) filter (statistic = 'rewording_excess') as excess,
    max(low) filter (statistic = 'rewording_excess') as low,
    max(high) filter (statistic = 'rewording_excess') as high,
    max(p_value) filter (statistic = 'rewording_excess') as p_value,
    max(estimate) filter (statistic = 'rating_rewording_excess') as rating_excess,
    max(low) filter (statistic = 'rating_rewording_excess') as rating_excess_low,
    max(high) filter (statistic = 'rating_rewording_excess') as rating_excess_high,
    max(p_value) filter (statistic = 'rating_rewording_excess') as rating_excess_p,
    -- which of the columns are null, and why
    string_agg(distinct statistic || ': ' || reason, '; ' order by statistic || ': ' || reason)
        filter (estimate is null) as reason,
from estimates
where statistic in (
    'rewording_sensitivity', 'rewording_score_change', 'repeat_sensitivity', 'repeat_score_change',
    'rewording_excess', 'rating_rewording_shift', 'rating_rewording_change', 'rating_repeat_change',
    'rating_rewording_excess'
)
group by all
