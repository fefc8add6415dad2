-- One row per study and ballot whose reply has no verdict: what was shown, the reply verbatim, and why it is none.
with reasons as (
    select
        study, dataset, judge, prompt, wave, sample, arm, perturbation, side || ' alone' as shown_first, repeat,
        array_to_string(list_sort(list(distinct concat(criterion || ': ', invalid))), '; ') as reason
    from ratings
    where invalid is not null and sample is not null
    group by all
)
select t.*, r.reason
from mart.transcript as t
left join reasons as r
    on r.study = t.study and r.dataset = t.dataset and r.judge = t.judge and r.prompt = t.prompt
    and r.wave = t.wave and r.sample = t.sample and r.arm = t.arm
    and r.perturbation is not distinct from t.perturbation and r.shown_first = t.shown_first
    and r.repeat = t.repeat
where t.choice in ('invalid', 'ambiguous', 'abstain')
