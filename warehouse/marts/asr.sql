-- One row per study, judge, prompt, wave, mode and perturbation: attack success rate beside its floor.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated,
    max(votes_per_pair) filter (statistic = 'asr') as votes_per_pair,
    max(estimate) filter (statistic = 'asr') as asr,
    max(low) filter (statistic = 'asr') as asr_low,
    max(high) filter (statistic = 'asr') as asr_high,
    max(hits) filter (statistic = 'asr') as hits,
    max(n) filter (statistic = 'asr') as n,
    max(dropped) filter (statistic = 'asr') as dropped,
    max(estimate) filter (statistic = 'sham_floor') as sham_floor,
    max(estimate) filter (statistic = 'dasr') as dasr,
    max(low) filter (statistic = 'dasr') as dasr_low,
    max(high) filter (statistic = 'dasr') as dasr_high,
    max(estimate) filter (statistic = 'random_baseline') as random_baseline,
from estimates
where statistic in ('asr', 'sham_floor', 'dasr', 'random_baseline')
group by all
