-- One row per study, judge, prompt, wave, mode and perturbation: its rank, how far it is known, and its tier.
-- n and clusters are those that all ranked judges share. A rank without an interval is not shown: reason says why.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated,
    max(estimate) filter (statistic = 'rank' and low is not null) as rank,
    max(low) filter (statistic = 'rank') as low,
    max(high) filter (statistic = 'rank') as high,
    string_agg(subgroup, '' order by estimate) filter (statistic = 'tier') as tier,
    max(n) filter (statistic = 'rank') as n,
    max(clusters) filter (statistic = 'rank') as clusters,
    max(reason) filter (statistic = 'rank') as reason,
from estimates
where statistic in ('rank', 'tier')
group by all
