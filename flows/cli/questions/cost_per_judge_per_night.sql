-- What does a night cost? US dollars by study, judge and wave; night_usd: sum of the study's wave over its judges, or of the day (UTC) where votes have no wave; null where a price is unknown (mart.cost has runs and tokens).
-- study: name of the study [all studies]
-- days: how many days back [30]
with asked as (
    select *, if(wave = '', (first_vote at time zone 'UTC')::date, null) as alone from mart.cost
    where $study in (study, 'all studies')
),
nights as (
    select
        study, judge, wave, simulated, min((first_vote at time zone 'UTC')::date) as day, sum(votes)::bigint as votes,
        if(bool_and(cost_usd is not null), sum(cost_usd), null) as cost_usd,
    from asked
    group by study, judge, wave, simulated, alone
    having max(last_vote) >= now() - to_days($days::integer)
)
select
    min(day) over same as night, study, judge, wave, votes, cost_usd,
    if(bool_and(cost_usd is not null) over same, sum(cost_usd) over same, null) as night_usd, simulated,
from nights
window same as (partition by study, wave, if(wave = '', day, null))
order by night desc, study, wave desc, judge
