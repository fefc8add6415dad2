-- What does a night cost? US dollars by study, wave and judge, the newest first. The row `all` sums over judges. A night is a wave, or a UTC day for votes without a wave. A cost is null where a price is unknown (mart.cost has runs, tokens and the votes of people).
-- study: name of the study [all studies]
-- days: how many days back [30]
with asked as (
    -- What a judge was asked in one run is of one day, also if it was asked with several prompts until after midnight.
    select *, if(wave = '', (min(first_vote) over (partition by run, judge, wave) at time zone 'UTC')::date, null) as alone
    from mart.cost
    where $study in (study, 'all studies') and not human
),
nights as (
    select
        study, wave, alone, judge, bool_and(simulated) as simulated, min((first_vote at time zone 'UTC')::date) as day,
        min(first_vote) as began, max(last_vote) as latest, sum(votes)::bigint as votes, if(bool_and(cost_usd is not null), sum(cost_usd), null) as cost_usd,
    from asked
    group by grouping sets ((study, wave, alone, judge), (study, wave, alone))
)
select
    min(day) over same as night, study, wave, coalesce(judge, 'all') as judge, votes, cost_usd, simulated,
from nights
window same as (partition by study, wave, alone)
qualify max(latest) over same >= now() - to_days($days::integer)
-- A wave whose ballots were asked again keeps the place of its beginning.
order by night desc, min(began) over same desc, study, wave desc, nights.judge nulls first
