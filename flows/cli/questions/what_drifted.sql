-- What has changed since the baseline? A row for each change of a judge, the newest first: since the wave that made it suspect, with the measure that the gate shows; for a judge without a change, the result of the gate drift and the comparison behind it. If any study has two waves, studies without are left out, except with --set study=NAME.
-- study: name of the study [all studies]
-- days: how many days back [7]
with waves as (select judge, prompt, max(first_vote) as newest from mart.replies where wave <> '' group by all),
compared as (
    select
        d.*, r.first_vote, d.state in ('alert', 'suspect') as changed, g.verdict, concat_ws(' of ', d.measure, d.perturbation) as name,
        (d.mode = g.drift_mode and d.measure = g.measure and d.perturbation is not distinct from g.drift_perturbation) is true as gated,
        arg_max(d.wave, r.first_vote) filter (where d.state = 'suspect') over same as suspected,
    from mart.drift as d
    join mart.replies as r using (judge, prompt, wave)
    left join (from mart.scorecard where gate = 'drift') as g using (study, dataset, judge, prompt, wave)
    window same as (partition by d.study, d.dataset, d.judge, d.prompt, d.mode, d.measure, d.perturbation, d.epoch)
),
recent as (
    select *, list_sort(list(name) filter (where changed) over (partition by study, judge, prompt, epoch, wave)) as names,
    from compared where first_vote >= now() - to_days($days::integer)
),
-- Each judge's changes, one of an epoch; without any, of its newest wave the change closest to its limit, as in the gate.
shown as (
    select *, if(gated and not changed, verdict, state) as drift from recent
    qualify row_number() over (
        partition by study, judge, prompt, changed, if(changed, epoch, null)
        order by state = 'alert' desc, first_vote desc, gated desc, state <> 'quiet', name
    ) = 1 and (changed or not bool_or(changed) over (partition by study, judge, prompt))
)
select
    j.study, j.judge, coalesce(s.drift, 'not measured') as drift,
    case when s.changed then coalesce(s.suspected, s.wave) end as since,
    s.measure, s.perturbation, s.change, s.low, s.high,
    case
        when s.reason is not null then s.reason
        when s.changed then nullif(concat_ws('; ',
            if(s.low is null, format('0 is no change, 2 a complete one; adjusted p {:.4f}', s.p_adjusted), null),
            'also ' || nullif(array_to_string(list_filter(s.names, lambda x: x <> s.name), ', '), '')
        ), '')
        when s.drift = 'inconclusive' then 'no alert, but the interval reaches beyond the limit'
        when s.drift = 'pass' then 'no alert, and the intervals lie within the limits'
        when s.drift = 'quiet' then 'no comparison of this wave raised an alert'
        when s.drift is not null then null
        when w.newest < now() - to_days($days::integer) then format('no wave in the last {} days', $days)
        else 'needs two waves (audit --wave) with verdicts on the same questions'
    end as reason,
    s.wave, s.base, j.simulated, j.prompt,
from (select distinct study, judge, prompt, simulated from mart.recommendations where $study in (study, 'all studies')) as j
left join waves as w using (judge, prompt)
left join shown as s using (study, judge, prompt)
where $study <> 'all studies' or j.study in (select study from mart.drift) or not exists (from mart.drift)
order by
    s.changed is true desc, s.first_vote desc nulls last,
    list_position(['alert', 'suspect', 'fail', 'inconclusive', 'pass', 'quiet', 'not measured'], coalesce(s.drift, 'not measured')),
    j.study, j.judge, j.prompt, s.perturbation, s.measure
