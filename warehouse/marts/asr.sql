-- One row per study, judge, prompt, wave, mode and perturbation: attack success rate beside its floor.
select
    e.study, e.dataset, e.judge, e.prompt, e.wave, e.mode, e.perturbation, e.kind, e.simulated,
    max(e.votes_per_pair) filter (e.statistic = 'asr') as votes_per_pair,
    max(e.estimate) filter (e.statistic = 'asr') as asr,
    max(e.low) filter (e.statistic = 'asr') as asr_low,
    max(e.high) filter (e.statistic = 'asr') as asr_high,
    max(e.hits) filter (e.statistic = 'asr') as hits,
    max(e.n) filter (e.statistic = 'asr') as n,
    max(e.clusters) filter (e.statistic = 'asr') as clusters,
    max(e.dropped) filter (e.statistic = 'asr') as dropped,
    max(e.estimate) filter (e.statistic = 'sham_floor') as sham_floor,
    max(e.low) filter (e.statistic = 'sham_floor') as sham_floor_low,
    max(e.high) filter (e.statistic = 'sham_floor') as sham_floor_high,
    max(e.estimate) filter (e.statistic = 'dasr') as dasr,
    max(e.low) filter (e.statistic = 'dasr') as dasr_low,
    max(e.high) filter (e.statistic = 'dasr') as dasr_high,
    max(e.estimate) filter (e.statistic = 'dasr_posterior') as dasr_posterior,
    max(e.estimate) filter (e.statistic = 'random_baseline') as random_baseline,
    x.excluded, x.reasons as excluded_for,
from estimates as e
left join mart.exclusions as x using (study, dataset, judge, prompt, wave)
where e.subgroup = '' and e.statistic in ('asr', 'sham_floor', 'dasr', 'dasr_posterior', 'random_baseline')
group by all
