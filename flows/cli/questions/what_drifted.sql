-- What has changed since the baseline? Alerts and suspicions of the waves of the last days; of other judges, the verdict of the gate and the change that it rests on.
-- study: name of the study [all studies]
-- days: how many days back [7]
with waves as (select judge, prompt, max(first_vote) as newest from mart.replies where wave <> '' group by all),
recent as (
    select
        d.*, r.first_vote, d.state in ('alert', 'suspect') as changed, g.verdict,
        (d.change = g.value and d.low = g.low and d.high = g.high) is true as gated,
    from mart.drift as d
    join mart.replies as r using (judge, prompt, wave)
    left join (from mart.scorecard where gate = 'drift') as g using (study, dataset, judge, prompt, wave)
    where r.first_vote >= now() - to_days($days::integer)
),
-- Each judge's changes or, without any, its newest wave: the change closest to its limit, as in the gate.
shown as (
    select *, if(gated and not changed, verdict, state) as drift from recent
    window judges as (partition by study, judge, prompt order by changed desc, first_vote desc, gated desc, state <> 'quiet', concat_ws(' of ', measure, perturbation))
    qualify changed or row_number() over judges = 1
)
select
    j.study, j.judge, j.simulated, coalesce(s.drift, 'not measured') as drift, s.measure, s.change, s.low, s.high,
    case
        when s.reason is not null then s.reason
        when s.changed and s.low is null then format('0 is no change, 2 a complete one; adjusted p {:.4f}', s.p_adjusted)
        when s.drift = 'inconclusive' then 'no alert, but the interval reaches beyond the limit'
        when s.drift = 'pass' then 'no alert, and the intervals lie within the limits'
        when s.drift = 'quiet' then 'no comparison of this wave raised an alert'
        when s.drift is not null then null
        when w.newest < now() - to_days($days::integer) then format('no wave in the last {} days', $days)
        else 'needs two waves (audit --wave) with verdicts on the same questions'
    end as reason,
    s.perturbation, s.minimum, s.wave, s.base, j.prompt, s.first_vote,
from (select distinct study, judge, prompt, simulated from mart.recommendations where $study in (study, 'all studies')) as j
left join waves as w using (judge, prompt)
left join shown as s using (study, judge, prompt)
order by
    list_position(['alert', 'suspect', 'fail', 'inconclusive', 'pass', 'quiet', 'not measured'], coalesce(s.drift, 'not measured')),
    s.first_vote desc, j.study, j.judge, j.prompt, s.perturbation, s.measure
