-- One row per study, judge, prompt, wave, mode and perturbation (null: position): the table that an audit ends with.
with position as (
    select
        study, dataset, judge, prompt, wave, position_consistency, low as position_consistency_low, high as position_consistency_high
    from mart.position_bias
    where perturbation is null
)
select
    f.study, f.dataset, f.judge, f.prompt, f.wave, f.mode, f.perturbation, f.kind, f.simulated,
    f.statistic, f.unit, t.prompt_kind, e.n, f.estimate as shift, f.low, f.high, r.estimate as points, r.low as points_low, r.high as points_high, f.p_value, f.p_adjusted,
    f.control, f.control_low, f.control_high, f.control_p, f.sham_shift, f.sham_shift_low, f.sham_shift_high,
    f.detected, f.detected_low, f.detected_high, f.detected_by, f.detects_at,
    f.p_holm, f.p_by, f.e_value, f.e_rejected, f.shrunk,
    a.asr, a.asr_low, a.asr_high, a.sham_floor, a.sham_floor_low, a.sham_floor_high, a.dasr, a.dasr_low, a.dasr_high,
    a.random_baseline, e.votes_per_pair,
    p.position_consistency, p.position_consistency_low, p.position_consistency_high, f.finding, f.reason,
    f.shift_spread, f.shift_spread_low, f.shift_spread_high, f.moved_p, f.category_p,
    f.lost_difference, f.lost_over, f.lost_p, f.lost_finding, l.asr_at_least, l.asr_at_most,
from findings as f
left join (from estimates where subgroup = '') as e
    on e.study = f.study and e.dataset = f.dataset and e.judge = f.judge and e.prompt = f.prompt and e.wave = f.wave
    and e.mode = f.mode and e.perturbation is not distinct from f.perturbation and e.statistic = f.statistic
left join (from estimates where subgroup = '') as r
    on r.study = f.study and r.dataset = f.dataset and r.judge = f.judge and r.prompt = f.prompt and r.wave = f.wave
    and r.mode = f.mode and r.perturbation is not distinct from f.perturbation and f.unit = 'sd'
    and r.statistic = replace(f.statistic, '_sd', '')
left join mart.asr as a
    on a.study = f.study and a.dataset = f.dataset and a.judge = f.judge and a.prompt = f.prompt and a.wave = f.wave
    and a.mode = f.mode and a.perturbation = f.perturbation
left join position as p
    on p.study = f.study and p.dataset = f.dataset and p.judge = f.judge and p.prompt = f.prompt and p.wave = f.wave
left join (select prompt, kind as prompt_kind from prompts) as t on t.prompt = f.prompt
left join mart.attrition as l
    on l.study = f.study and l.dataset = f.dataset and l.judge = f.judge and l.prompt = f.prompt and l.wave = f.wave
    and l.mode = f.mode and l.perturbation = f.perturbation
