-- What does a night cost? US dollars by judge, study and wave; night_usd: sum of the night (UTC day) over all studies, with --set study= over that one; null where a price is unknown (mart.cost has tokens).
-- study: name of the study [all studies]
-- days: how many days back [30]
with nights as (
    select *, (first_vote at time zone 'UTC')::date as night from mart.cost
    where first_vote >= now() - to_days($days::integer) and $study in (study, 'all studies')
)
select
    night, study, judge, wave, votes, cost_usd,
    if(bool_and(cost_usd is not null) over same, sum(cost_usd) over same, null) as night_usd, simulated,
from nights
window same as (partition by night)
order by night desc, study, judge, wave
