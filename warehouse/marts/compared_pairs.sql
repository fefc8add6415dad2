-- One row per study, judge, prompt, wave, mode, perturbation and sample: its verdicts, texts and replies, control beside experimental.
-- Texts and replies are null for the votes of a measured file. A judge of single answers has no anchor, and a row per criterion and repeat.
with texts as (
    select
        study, dataset, sample, arm, perturbation, any_value(question) as question, any_value(anchor) as anchor,
        any_value(target) as target,
    from pairs join (select study, pair_id from study_pairs) using (pair_id)
    where arm in ('control', 'experimental')
    group by all
)
select
    p.*, q.category, c.question, if(p.rating_kind is null, c.anchor, null) as anchor, c.target, e.target as perturbed,
    r.control_replies, r.control_orders, r.experimental_replies, r.experimental_orders,
from (from mart.comparisons where perturbation is not null) as p
left join texts as c on c.arm = 'control' and c.study = p.study and c.dataset = p.dataset and c.sample = p.sample
left join texts as e
    on e.arm = 'experimental' and e.study = p.study and e.dataset = p.dataset and e.sample = p.sample
    and e.perturbation = p.perturbation
left join (
    -- Votes of people have no category.
    select study, dataset, sample, any_value(category) as category from vote_log group by all
) as q
    on q.study = p.study and q.dataset = p.dataset and q.sample = p.sample
left join lateral (
    select
        list(reply order by shown_first, repeat) filter (where arm = 'control') as control_replies,
        list(shown_first order by shown_first, repeat) filter (where arm = 'control') as control_orders,
        list(reply order by shown_first, repeat) filter (where arm = 'experimental') as experimental_replies,
        list(shown_first order by shown_first, repeat) filter (where arm = 'experimental') as experimental_orders,
    from mart.transcript as t
    where t.study = p.study and t.dataset = p.dataset and t.judge = p.judge and t.prompt = p.prompt and t.wave = p.wave
        and t.sample = p.sample and (t.perturbation is null or t.perturbation = p.perturbation)
        and t.arm in ('control', 'experimental') and t.shown_first <> 'anchor alone'
        and (p.repeat is null or t.repeat = p.repeat)
) as r on true
