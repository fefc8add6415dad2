-- One row per study, judge, prompt, wave, mode and perturbation: after how many samples one could have stopped.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated,
    max(estimate) filter (statistic = 'sequential_shift' and subgroup = '3/3') as shift,
    max(low) filter (statistic = 'sequential_shift' and subgroup = '3/3') as low,
    max(high) filter (statistic = 'sequential_shift' and subgroup = '3/3') as high,
    max(n) filter (statistic = 'e_value') as n,
    max(clusters) filter (statistic = 'e_value') as clusters,
    max(hits) filter (statistic = 'sequential_stop') as stop_by_looks,
    max(estimate) filter (statistic = 'sequential_stop') as share_by_looks,
    max(hits) filter (statistic = 'e_stop') as stop_by_evidence,
    max(estimate) filter (statistic = 'e_stop') as share_by_evidence,
    max(estimate) filter (statistic = 'e_value') as e_value,
    max(p_value) filter (statistic = 'e_value') as p_value,
    -- which of the columns are null, and why
    string_agg(distinct statistic || ': ' || reason, '; ' order by statistic || ': ' || reason)
        filter (estimate is null) as reason,
from estimates
where statistic in ('sequential_shift', 'sequential_stop', 'e_value', 'e_stop')
group by all
