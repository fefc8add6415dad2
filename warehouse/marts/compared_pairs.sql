-- One row per study, judge, prompt, wave, mode, perturbation and sample: its verdicts, texts and replies, control beside experimental.
-- Texts and replies are null for the votes of a measured file. A judge of single answers has a row per criterion and repeat.
with shown as (
    select
        study, dataset, judge, prompt, wave, sample, arm, perturbation, any_value(question) as question,
        any_value(anchor) as anchor, any_value(target) as target,
        list(reply order by shown_first, repeat) as replies,
    from mart.transcript
    where arm in ('control', 'experimental') and shown_first <> 'anchor alone'
    group by all
)
select
    p.*, q.category, c.question, c.anchor, c.target, e.target as perturbed, c.replies as control_replies,
    e.replies as experimental_replies,
from (from mart.comparisons where perturbation is not null) as p
left join shown as c
    on c.arm = 'control' and c.study = p.study and c.dataset = p.dataset and c.judge = p.judge and c.prompt = p.prompt
    and c.wave = p.wave and c.sample = p.sample
left join shown as e
    on e.arm = 'experimental' and e.study = p.study and e.dataset = p.dataset and e.judge = p.judge and e.prompt = p.prompt
    and e.wave = p.wave and e.sample = p.sample and e.perturbation = p.perturbation
left join (select distinct study, dataset, sample, category from vote_log) as q
    on q.study = p.study and q.dataset = p.dataset and q.sample = p.sample
