-- One row per study, prompt, wave, mode, perturbation and votes per pair: mean over all judges, and without those left out.
-- Intervals are of the mean over the same questions, so there are none where votes per pair are unequal: see reason.
with rates as (
    select
        study, dataset, prompt, wave, mode, perturbation, a.votes_per_pair, a.kind, bool_or(a.simulated) as simulated,
        count(asr) as judges,
        avg(asr) as asr,
        avg(sham_floor) as sham_floor,
        avg(dasr) as dasr,
        count(asr) filter (kept) as judges_kept,
        avg(asr) filter (kept) as asr_kept,
        avg(sham_floor) filter (kept) as sham_floor_kept,
        avg(dasr) filter (kept) as dasr_kept,
        string_agg(judge || ' (' || excluded_for || ')', ', ' order by judge) filter (not kept) as left_out,
    from mart.asr as a
    join panel_members using (study, dataset, judge, prompt, wave, mode, perturbation)
    where averaged
    group by all
),
means as (
    select
        study, dataset, prompt, wave, mode, perturbation, subgroup,
        max(estimate) filter (statistic = 'mean_shift') as shift,
        max(low) filter (statistic = 'mean_shift') as shift_low,
        max(high) filter (statistic = 'mean_shift') as shift_high,
        max(estimate) filter (statistic = 'mean_asr') as asr,
        max(low) filter (statistic = 'mean_asr') as asr_low,
        max(high) filter (statistic = 'mean_asr') as asr_high,
        max(estimate) filter (statistic = 'mean_sham_floor') as sham_floor,
        max(low) filter (statistic = 'mean_sham_floor') as sham_floor_low,
        max(high) filter (statistic = 'mean_sham_floor') as sham_floor_high,
        max(estimate) filter (statistic = 'mean_dasr') as dasr,
        max(low) filter (statistic = 'mean_dasr') as dasr_low,
        max(high) filter (statistic = 'mean_dasr') as dasr_high,
        max(n) filter (statistic = 'mean_asr') as n,
        max(clusters) filter (statistic = 'mean_asr') as clusters,
        max(reason) filter (statistic = 'mean_asr') as reason,
    from estimates
    where statistic in ('mean_shift', 'mean_asr', 'mean_sham_floor', 'mean_dasr')
    group by all
),
-- The mean of all is also that of those kept, unless some judge is left out.
kept as (
    from means where subgroup in ('', 'kept')
    qualify row_number() over (
        partition by study, dataset, prompt, wave, mode, perturbation order by subgroup desc
    ) = 1
)
select
    r.study, r.dataset, r.prompt, r.wave, r.mode, r.perturbation, r.votes_per_pair, r.kind, r.simulated,
    w.n, w.clusters, w.shift, w.shift_low, w.shift_high,
    r.judges,
    coalesce(w.asr, r.asr) as asr, w.asr_low, w.asr_high,
    coalesce(w.sham_floor, r.sham_floor) as sham_floor, w.sham_floor_low, w.sham_floor_high,
    coalesce(w.dasr, r.dasr) as dasr, w.dasr_low, w.dasr_high,
    r.judges_kept, k.shift as shift_kept, k.shift_low as shift_kept_low, k.shift_high as shift_kept_high,
    coalesce(k.asr, r.asr_kept) as asr_kept, k.asr_low as asr_kept_low, k.asr_high as asr_kept_high,
    coalesce(k.sham_floor, r.sham_floor_kept) as sham_floor_kept,
    k.sham_floor_low as sham_floor_kept_low, k.sham_floor_high as sham_floor_kept_high,
    coalesce(k.dasr, r.dasr_kept) as dasr_kept, k.dasr_low as dasr_kept_low, k.dasr_high as dasr_kept_high,
    r.left_out, coalesce(w.reason, k.reason) as reason,
from rates as r
left join (from means where subgroup = '') as w using (study, dataset, prompt, wave, mode, perturbation)
left join kept as k using (study, dataset, prompt, wave, mode, perturbation)
