-- One row per study, judge, prompt, wave, mode and perturbation: stopping points of the sequential tests.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated,
    -- of the last look, whose subgroup ('3/3' after '2/3') is the greatest
    arg_max_null(estimate, subgroup) filter (statistic = 'sequential_shift') as shift,
    arg_max_null(low, subgroup) filter (statistic = 'sequential_shift') as low,
    arg_max_null(high, subgroup) filter (statistic = 'sequential_shift') as high,
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
