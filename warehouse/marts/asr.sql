-- One row per study, judge, prompt, wave, mode and perturbation: attack success rate beside its floor.
with wide as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, votes_per_pair,
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
    where perturbation is not null
    group by all
)
select * from wide
