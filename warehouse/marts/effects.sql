-- One row per study, judge, prompt, wave, mode and perturbation: every effect size with its bounds.
with cell as (
    select study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated,
        max(votes_per_pair) filter (statistic = 'mps') as votes_per_pair,
        max(estimate) filter (statistic = 'mps') as mps,
        max(low) filter (statistic = 'mps') as mps_low,
        max(high) filter (statistic = 'mps') as mps_high,
        max(estimate) filter (statistic = 'mps_sham') as mps_sham,
        max(low) filter (statistic = 'mps_sham') as mps_sham_low,
        max(high) filter (statistic = 'mps_sham') as mps_sham_high,
        max(estimate) filter (statistic = 'sham_shift') as sham_shift,
        max(low) filter (statistic = 'sham_shift') as sham_shift_low,
        max(high) filter (statistic = 'sham_shift') as sham_shift_high,
        max(estimate) filter (statistic = 'sham_difference') as sham_difference,
        max(low) filter (statistic = 'sham_difference') as sham_difference_low,
        max(high) filter (statistic = 'sham_difference') as sham_difference_high,
        max(estimate) filter (statistic = 'asr') as asr,
        max(low) filter (statistic = 'asr') as asr_low,
        max(high) filter (statistic = 'asr') as asr_high,
        max(estimate) filter (statistic = 'dasr') as dasr,
        max(low) filter (statistic = 'dasr') as dasr_low,
        max(high) filter (statistic = 'dasr') as dasr_high,
        max(estimate) filter (statistic = 'detection_power') as detection_power,
        max(low) filter (statistic = 'detection_power') as detection_power_low,
        max(high) filter (statistic = 'detection_power') as detection_power_high,
        max(estimate) filter (statistic = 'unanimous_rate') as unanimous_rate,
        max(low) filter (statistic = 'unanimous_rate') as unanimous_rate_low,
        max(high) filter (statistic = 'unanimous_rate') as unanimous_rate_high,
        max(estimate) filter (statistic = 'excess_flips') as excess_flips,
        max(low) filter (statistic = 'excess_flips') as excess_flips_low,
        max(high) filter (statistic = 'excess_flips') as excess_flips_high,
        max(estimate) filter (statistic = 'shift_spread') as shift_spread,
        max(low) filter (statistic = 'shift_spread') as shift_spread_low,
        max(high) filter (statistic = 'shift_spread') as shift_spread_high,
        max(estimate) filter (statistic = 'mean_square_shift') as mean_square_shift,
        max(low) filter (statistic = 'mean_square_shift') as mean_square_shift_low,
        max(high) filter (statistic = 'mean_square_shift') as mean_square_shift_high,
        max(estimate) filter (statistic = 'standardised_effect') as standardised_effect,
        max(low) filter (statistic = 'standardised_effect') as standardised_effect_low,
        max(high) filter (statistic = 'standardised_effect') as standardised_effect_high,
        max(estimate) filter (statistic = 'category_spread') as category_spread,
        max(p_value) filter (statistic = 'category_spread') as category_spread_p,
    from estimates
    where subgroup = '' and mode <> 'any' and statistic in (
        'mps', 'mps_sham', 'sham_shift', 'sham_difference', 'asr', 'dasr', 'detection_power', 'excess_flips',
        'unanimous_rate', 'shift_spread', 'mean_square_shift', 'standardised_effect', 'category_spread'
    )
    group by all
),
of_counts as (
    select study, dataset, judge, prompt, wave, perturbation,
        max(estimate) filter (statistic = 'los') as los,
        max(low) filter (statistic = 'los') as los_low,
        max(high) filter (statistic = 'los') as los_high,
        max(estimate) filter (statistic = 'los_sham') as los_sham,
        max(low) filter (statistic = 'los_sham') as los_sham_low,
        max(high) filter (statistic = 'los_sham') as los_sham_high,
    from estimates
    where subgroup = '' and statistic in ('los', 'los_sham')
    group by all
)
from cell left join of_counts using (study, dataset, judge, prompt, wave, perturbation)
