-- One row per study, prompt, wave, mode, perturbation (null: its verdicts on control pairs) and member left out (null: none): the jury of all judges.
with
-- What a vote of a judge costs in the mean; null where a price is unknown.
prices as (
    select
        p.dataset, b.judge, b.prompt, b.wave,
        case when count(*) = count(v.cost_usd) then avg(v.cost_usd) end as vote_usd,
    from votes as v join ballots as b using (ballot_id) join pairs as p using (pair_id)
    group by all
),
members as (
    select m.*, votes_per_pair * vote_usd as verdict_usd,
    from panel_members as m left join prices using (dataset, judge, prompt, wave)
    where juror
),
costs as (
    select
        study, dataset, prompt, wave, mode, perturbation, left_out,
        case when count(*) = count(m.verdict_usd) then sum(m.verdict_usd) end as cost_usd,
    from members as m
    join (
        select study, dataset, prompt, wave, mode, perturbation, judge as left_out from members
        union
        select study, dataset, prompt, wave, mode, perturbation, '' from members
    ) using (study, dataset, prompt, wave, mode, perturbation)
    where m.judge <> left_out
    group by all
)
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated,
    nullif(left_out, '') as left_out,
    any_value(shift) as shift,
    any_value(shift_low) as low,
    any_value(shift_high) as high,
    any_value(member_shift) as member_shift,
    max(estimate) filter (statistic = 'jury_mps') as mps,
    max(low) filter (statistic = 'jury_mps') as mps_low,
    max(high) filter (statistic = 'jury_mps') as mps_high,
    max(estimate) filter (statistic = 'jury_asr') as asr,
    max(low) filter (statistic = 'jury_asr') as asr_low,
    max(high) filter (statistic = 'jury_asr') as asr_high,
    max(estimate) filter (statistic = 'jury_sham_floor') as sham_floor,
    max(low) filter (statistic = 'jury_sham_floor') as sham_floor_low,
    max(high) filter (statistic = 'jury_sham_floor') as sham_floor_high,
    max(estimate) filter (statistic = 'jury_dasr') as dasr,
    max(low) filter (statistic = 'jury_dasr') as dasr_low,
    max(high) filter (statistic = 'jury_dasr') as dasr_high,
    max(estimate) filter (statistic = 'jury_sham_shift') as sham_shift,
    max(low) filter (statistic = 'jury_sham_shift') as sham_shift_low,
    max(high) filter (statistic = 'jury_sham_shift') as sham_shift_high,
    max(estimate) filter (statistic = 'jury_detection_gain') as detection_gain,
    max(low) filter (statistic = 'jury_detection_gain') as detection_gain_low,
    max(high) filter (statistic = 'jury_detection_gain') as detection_gain_high,
    max(estimate) filter (statistic = 'jury_detection_power') as detection_power,
    max(low) filter (statistic = 'jury_detection_power') as detection_power_low,
    max(high) filter (statistic = 'jury_detection_power') as detection_power_high,
    max(estimate) filter (statistic = 'jury_detection_share') as detection_share,
    max(low) filter (statistic = 'jury_detection_share') as detection_share_low,
    max(high) filter (statistic = 'jury_detection_share') as detection_share_high,
    max(estimate) filter (statistic = 'jury_size') as size,
    max(low) filter (statistic = 'jury_size') as size_low,
    max(high) filter (statistic = 'jury_size') as size_high,
    max(estimate) filter (statistic = 'jury_correlation') as correlation,
    max(low) filter (statistic = 'jury_correlation') as correlation_low,
    max(high) filter (statistic = 'jury_correlation') as correlation_high,
    max(estimate) filter (statistic = 'jury_flips_up') as up_rate,
    max(low) filter (statistic = 'jury_flips_up') as up_rate_low,
    max(high) filter (statistic = 'jury_flips_up') as up_rate_high,
    max(estimate) filter (statistic = 'jury_flips_down') as down_rate,
    max(low) filter (statistic = 'jury_flips_down') as down_rate_low,
    max(high) filter (statistic = 'jury_flips_down') as down_rate_high,
    max(estimate) filter (statistic = 'jury_flip_direction') as direction,
    max(low) filter (statistic = 'jury_flip_direction') as direction_low,
    max(high) filter (statistic = 'jury_flip_direction') as direction_high,
    max(estimate) filter (statistic = 'jury_robustness_rate') as robustness_rate,
    max(low) filter (statistic = 'jury_robustness_rate') as robustness_rate_low,
    max(high) filter (statistic = 'jury_robustness_rate') as robustness_rate_high,
    max(estimate) filter (statistic = 'jury_consistency_rate') as consistency_rate,
    max(low) filter (statistic = 'jury_consistency_rate') as consistency_rate_low,
    max(high) filter (statistic = 'jury_consistency_rate') as consistency_rate_high,
    max(estimate) filter (statistic = 'jury_excess_flips') as excess_flips,
    max(low) filter (statistic = 'jury_excess_flips') as excess_flips_low,
    max(high) filter (statistic = 'jury_excess_flips') as excess_flips_high,
    max(estimate) filter (statistic = 'jury_accuracy') as accuracy,
    max(low) filter (statistic = 'jury_accuracy') as accuracy_low,
    max(high) filter (statistic = 'jury_accuracy') as accuracy_high,
    max(estimate) filter (statistic = 'jury_position_consistency') as position_consistency,
    max(low) filter (statistic = 'jury_position_consistency') as position_consistency_low,
    max(high) filter (statistic = 'jury_position_consistency') as position_consistency_high,
    max(estimate) filter (statistic = 'jury_error_size') as error_size,
    max(low) filter (statistic = 'jury_error_size') as error_size_low,
    max(high) filter (statistic = 'jury_error_size') as error_size_high,
    max(estimate) filter (statistic = 'jury_error_correlation') as error_correlation,
    max(low) filter (statistic = 'jury_error_correlation') as error_correlation_low,
    max(high) filter (statistic = 'jury_error_correlation') as error_correlation_high,
    coalesce(
        max(n) filter (statistic = 'jury_mps'), max(n) filter (statistic = 'jury_position_consistency')
    ) as n,
    coalesce(
        max(clusters) filter (statistic = 'jury_mps'), max(clusters) filter (statistic = 'jury_position_consistency')
    ) as clusters,
    coalesce(
        max(dropped) filter (statistic = 'jury_mps'), max(dropped) filter (statistic = 'jury_position_consistency')
    ) as dropped,
    -- of the whole jury only
    any_value(p_adjusted) as p_adjusted,
    any_value(finding) as finding,
    coalesce(
        max(reason) filter (statistic = 'jury_mps'), any_value(why),
        max(reason) filter (statistic = 'jury_position_consistency')
    ) as reason,
    max(votes_per_pair) as votes_per_pair,
    -- of one verdict of all its members; null where a price is unknown
    any_value(cost_usd) as cost_usd,
from (select *, subgroup as left_out from estimates where starts_with(statistic, 'jury_')) as e
left join costs using (study, dataset, prompt, wave, mode, perturbation, left_out)
left join (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, coalesce(left_out, '') as left_out,
        shift, low as shift_low, high as shift_high, member_shift, p_adjusted, finding, reason as why,
    from jury_conclusions
) using (study, dataset, judge, prompt, wave, mode, perturbation, left_out)
group by all
