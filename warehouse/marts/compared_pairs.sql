-- One row per study, judge, prompt, wave, mode, perturbation and sample: its verdicts, texts and replies, control beside experimental.
-- Texts and replies are null for the votes of a measured file. A judge of single answers has a row per criterion and repeat.
with compared as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, kind, sample, null as criterion, null as repeat,
        null as rating_kind, control, sham, experimental, simulated
    from shifts
    union all
    select
        e.study, e.dataset, e.judge, e.prompt, e.wave, null, e.perturbation, e.perturbation_kind, e.sample, e.criterion, e.repeat,
        e.kind, c.label, s.label, e.label, e.simulated
    from ratings as e
    join ratings as c
        on c.arm = 'control' and c.study = e.study and c.dataset = e.dataset and c.judge = e.judge and c.prompt = e.prompt
        and c.wave = e.wave and c.sample = e.sample and c.side = e.side and c.criterion is not distinct from e.criterion
        and c.repeat = e.repeat
    left join ratings as s
        on s.arm = 'sham' and s.study = e.study and s.dataset = e.dataset and s.judge = e.judge and s.prompt = e.prompt
        and s.wave = e.wave and s.sample = e.sample and s.side = e.side and s.criterion is not distinct from e.criterion
        and s.repeat = e.repeat and s.perturbation = e.perturbation
    where e.arm = 'experimental'
),
shown as (
    select
        study, dataset, judge, prompt, wave, sample, arm, perturbation, any_value(question) as question,
        any_value(anchor) as anchor, any_value(target) as target,
        list(reply order by shown_first, repeat) as replies,
    from mart.transcript
    where arm in ('control', 'experimental')
    group by all
)
select
    p.*, q.category, c.question, c.anchor, c.target, e.target as perturbed, c.replies as control_replies,
    e.replies as experimental_replies,
from compared as p
left join shown as c
    on c.arm = 'control' and c.study = p.study and c.dataset = p.dataset and c.judge = p.judge and c.prompt = p.prompt
    and c.wave = p.wave and c.sample = p.sample
left join shown as e
    on e.arm = 'experimental' and e.study = p.study and e.dataset = p.dataset and e.judge = p.judge and e.prompt = p.prompt
    and e.wave = p.wave and e.sample = p.sample and e.perturbation = p.perturbation
left join (select distinct study, dataset, sample, category from vote_log) as q
    on q.study = p.study and q.dataset = p.dataset and q.sample = p.sample
