-- What has changed since the baseline? Alerts and suspicions of the waves of the last days; of other judges, why there are none.
-- days: how many days back [7]
with waves as (select judge, prompt, count(*) as waves, max(first_vote) as newest from mart.replies where wave <> '' group by all),
recent as (
    select d.*, r.first_vote, d.state in ('alert', 'suspect') as changed
    from mart.drift as d
    join mart.replies as r using (judge, prompt, wave)
    where r.first_vote >= now() - to_days($days::integer)
),
-- Each judge's changes or, without any, its newest wave.
shown as (
    from recent
    window judges as (partition by study, judge, prompt order by changed desc, first_vote desc, state <> 'quiet')
    qualify changed or row_number() over judges = 1
)
select
    j.study, j.judge, j.simulated, coalesce(s.state, 'not measured') as state,
    case
        when s.state is not null then coalesce(s.reason, if(s.state = 'quiet', 'no comparison of this wave raised an alert', null))
        when coalesce(w.waves, 0) < 2 then format('needs 2 waves (audit --wave), has {}', coalesce(w.waves, 0))
        when w.newest < now() - to_days($days::integer) then format('no wave in the last {} days', $days)
        else 'no two waves with verdicts on the same questions'
    end as reason,
    s.wave, s.perturbation, s.measure, s.base, s.change, s.low, s.high, j.prompt, s.first_vote,
from (select distinct study, judge, prompt, simulated from mart.recommendations) as j
left join waves as w using (judge, prompt)
left join shown as s using (study, judge, prompt)
order by
    list_position(['alert', 'suspect', 'quiet', 'not measured'], coalesce(s.state, 'not measured')),
    s.first_vote desc, j.study, j.judge, j.prompt, s.perturbation, s.measure
