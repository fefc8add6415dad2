-- One row per study, judge, prompt, wave, mode and detract perturbation: detection power.
select
    study, dataset, judge, prompt, wave, mode, perturbation, simulated,
    max(estimate) filter (statistic = 'detection_power') as detection_power,
    max(low) filter (statistic = 'detection_power') as low,
    max(high) filter (statistic = 'detection_power') as high,
    max(reason) filter (statistic = 'detection_power') as reason,
    max(estimate) filter (statistic = 'detection_gain') as detection_gain,
    max(low) filter (statistic = 'detection_gain') as gain_low,
    max(high) filter (statistic = 'detection_gain') as gain_high,
    max(p_value) filter (statistic = 'detection_gain') as p_value,
    max(estimate) filter (statistic = 'detection_share') as detection_share,
    max(low) filter (statistic = 'detection_share') as share_low,
    max(high) filter (statistic = 'detection_share') as share_high,
    max(n) filter (statistic = 'detection_gain') as n,
from estimates
where subgroup = '' and statistic in ('detection_gain', 'detection_power', 'detection_share')
group by all
