-- One row per study, judge, prompt, wave and subgroup (a model, or a pair): win rates as corrected.
select
    study, dataset, judge, prompt, wave, simulated, subgroup,
    max(estimate) filter (statistic = 'win_rate_naive') as naive,
    max(low) filter (statistic = 'win_rate_naive') as naive_low,
    max(high) filter (statistic = 'win_rate_naive') as naive_high,
    max(estimate) filter (statistic = 'win_rate') as swap_averaged,
    max(low) filter (statistic = 'win_rate') as swap_averaged_low,
    max(high) filter (statistic = 'win_rate') as swap_averaged_high,
    max(estimate) filter (statistic = 'length_controlled') as length_controlled,
    max(low) filter (statistic = 'length_controlled') as length_controlled_low,
    max(high) filter (statistic = 'length_controlled') as length_controlled_high,
    max(estimate) filter (statistic = 'human_win_rate') as human,
    max(low) filter (statistic = 'human_win_rate') as human_low,
    max(high) filter (statistic = 'human_win_rate') as human_high,
    max(estimate) filter (statistic = 'ppi_win_rate') as ppi,
    max(low) filter (statistic = 'ppi_win_rate') as ppi_low,
    max(high) filter (statistic = 'ppi_win_rate') as ppi_high,
    max(estimate) filter (statistic = 'rogan_gladen') as rogan_gladen,
    max(low) filter (statistic = 'rogan_gladen') as rogan_gladen_low,
    max(high) filter (statistic = 'rogan_gladen') as rogan_gladen_high,
    max(estimate) filter (statistic = 'bt_strength') as strength,
    max(estimate) filter (statistic = 'style_controlled') as style_controlled,
    max(low) filter (statistic = 'style_controlled') as style_controlled_low,
    max(high) filter (statistic = 'style_controlled') as style_controlled_high,
    max(n) filter (statistic = 'win_rate') as n,
    max(clusters) filter (statistic = 'win_rate') as clusters,
    max(n) filter (statistic = 'human_win_rate') as labels,
    max(estimate) filter (statistic = 'effective_labels') as effective_labels,
    max(estimate) filter (statistic = 'labels_needed') as labels_needed,
    max(reason) filter (statistic = 'length_controlled') as length_reason,
    max(reason) filter (statistic = 'ppi_win_rate') as ppi_reason,
from estimates
where statistic in (
    'win_rate_naive', 'win_rate', 'length_controlled', 'human_win_rate', 'ppi_win_rate',
    'rogan_gladen', 'bt_strength', 'style_controlled', 'effective_labels', 'labels_needed'
)
group by all
