-- One row per study, judge, criterion and item on which the judge and people differ, worst first.
-- Replies, and what was shown, come from the audited study; null for labels of a file.
with compared as (
    select study, arg_max(json_extract_string(parameters, 'study'), started_at) as audited
    from runs where flow = 'calibrate' group by study
)
select
    d.study, d.dataset, d.judge, d.prompt, d.wave, d.criterion, d."rank", d.item, d.human_label, d.judge_label, d.gap,
    d.people, d.human_share, d.texts, d.simulated, if(r.replies is not null, c.audited, null) as audited, r.question,
    r.anchor, r.target, r.replies, r.orders,
from differing_labels as d
left join compared as c using (study)
left join lateral (
    select
        any_value(question) as question, any_value(if(shown_first = 'target alone', null, anchor)) as anchor,
        any_value(target) as target, list(reply order by shown_first, repeat) as replies,
        list(shown_first order by shown_first, repeat) as orders,
    from mart.transcript as t
    where t.study = c.audited and (t.dataset = d.dataset or starts_with(d.dataset, t.dataset || ': '))
        and t.judge = d.judge and t.prompt = d.prompt and t.wave = d.wave and t.sample = d.item
        and t.arm = 'control' and t.shown_first <> 'anchor alone'
) as r on true
order by d.study, d.dataset, d.judge, d.prompt, d.wave, d.criterion, d."rank"
