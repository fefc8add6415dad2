-- One row per study, prompt, wave, mode, perturbation (null: its verdicts on control pairs) and member left out (null: none): the jury of all judges.
with wide as (
    from (
        select
            study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, subgroup as left_out,
            statistic, estimate, low, high,
            max(votes_per_pair) over cell as votes_per_pair,
            -- of the shift, and in the control arm of the consistency: no cell has both
            max(n) filter (statistic in ('jury_mps', 'jury_position_consistency')) over cell as n,
            max(clusters) filter (statistic in ('jury_mps', 'jury_position_consistency')) over cell as clusters,
            max(dropped) filter (statistic in ('jury_mps', 'jury_position_consistency')) over cell as dropped,
            max(reason) filter (statistic = 'jury_position_consistency') over cell as of_consistency,
        from estimates where starts_with(statistic, 'jury_')
        window cell as (
            partition by study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, subgroup
        )
    )
    pivot (
        max(estimate) as estimate, max(low) as low, max(high) as high
        for statistic in (
            'jury_mps' as mps, 'jury_asr' as asr, 'jury_sham_floor' as sham_floor, 'jury_dasr' as dasr,
            'jury_sham_shift' as sham_shift, 'jury_detection_gain' as detection_gain,
            'jury_detection_power' as detection_power, 'jury_detection_share' as detection_share,
            'jury_size' as size, 'jury_correlation' as correlation, 'jury_flips_up' as up_rate,
            'jury_flips_down' as down_rate, 'jury_flip_direction' as direction,
            'jury_robustness_rate' as robustness_rate, 'jury_consistency_rate' as consistency_rate,
            'jury_excess_flips' as excess_flips, 'jury_accuracy' as accuracy,
            'jury_position_consistency' as position_consistency, 'jury_error_size' as error_size,
            'jury_error_correlation' as error_correlation
        )
        group by
            study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, left_out, votes_per_pair,
            n, clusters, dropped, of_consistency
    )
),
numbers as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, left_out,
        -- NAME_estimate, NAME_low and NAME_high as NAME, NAME_low and NAME_high
        columns('^(.+?)(?:_estimate|(_low|_high))$') as '\1\2',
        n, clusters, dropped, votes_per_pair, of_consistency,
    from wide
)
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, nullif(left_out, '') as left_out,
    shift, shift_low as low, shift_high as high, member_shift,
    numbers.* exclude (
        study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, left_out,
        votes_per_pair, of_consistency
    ),
    -- of the whole jury only
    p_adjusted, finding,
    if(perturbation is null, of_consistency, why) as reason,
    votes_per_pair,
    -- of one verdict of all its members; null where a price is unknown
    cost_usd,
from numbers
left join (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, coalesce(left_out, '') as left_out,
        shift, low as shift_low, high as shift_high, member_shift, p_adjusted, finding, cost_usd,
        reason as why,
    from jury_conclusions
) using (study, dataset, judge, prompt, wave, mode, perturbation, left_out)
