-- One row per study, prompt, wave, mode, perturbation (null: its verdicts on control pairs) and member left out (null: none): the jury of all judges.
with lone as (
    select
        study, dataset, judge as left_out, prompt, wave, mode, perturbation,
        -- over the control where shams are a handful (tasks/counting/primary_endpoint.py)
        if(
            bool_and(too_few is not null) filter (statistic = 'mps_sham')
                and bool_or(too_few is null) filter (statistic = 'mps'),
            max(estimate) filter (statistic = 'mps'), arg_max(estimate, statistic)
        ) as member_shift,
    from estimates
    where statistic in ('mps', 'mps_sham') and subgroup = ''
    group by all
),
-- What a vote of a judge costs in the mean; null where a price is unknown.
prices as (
    select
        p.dataset, b.judge, b.prompt, b.wave,
        case when count(*) = count(v.cost_usd) then avg(v.cost_usd) end as vote_usd,
    from votes as v join ballots as b using (ballot_id) join pairs as p using (pair_id)
    group by all
),
-- A formula is a member only where all are.
members as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation,
        votes_per_pair * vote_usd as verdict_usd,
    from (
        from estimates where statistic = 'mps' and subgroup = '' and n > 0
        qualify simulated is not true
            or bool_and(simulated is true) over (
                partition by study, dataset, prompt, wave, mode, perturbation
            )
    )
    left join prices using (dataset, judge, prompt, wave)
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
    max(estimate) filter (statistic = endpoint) as shift,
    max(low) filter (statistic = endpoint) as low,
    max(high) filter (statistic = endpoint) as high,
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
from (
    select
        *, subgroup as left_out,
        bool_or(statistic = 'jury_mps_sham') over cell
            and (
                bool_or(statistic = 'jury_mps_sham' and too_few is null) over cell
                or not bool_or(statistic = 'jury_mps' and too_few is null) over cell
            ) as shammed,
        if(shammed, 'jury_mps_sham', 'jury_mps') as endpoint,
    from estimates
    where starts_with(statistic, 'jury_')
    window cell as (partition by study, dataset, judge, prompt, wave, mode, perturbation, subgroup)
)
left join lone using (study, dataset, prompt, wave, mode, perturbation, left_out)
left join costs using (study, dataset, prompt, wave, mode, perturbation, left_out)
left join (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, '' as left_out, p_adjusted, finding,
        reason as why,
    from mart.jury_findings
) using (study, dataset, judge, prompt, wave, mode, perturbation, left_out)
group by all
