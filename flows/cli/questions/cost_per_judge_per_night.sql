-- What does a night cost? US dollars by day (UTC), judge and study; null where a price is unknown.
select
    (first_vote at time zone 'UTC')::date as night, study, judge, wave, votes, prompt_tokens, completion_tokens, cost_usd,
    simulated,
from mart.cost
order by night desc, study, judge, wave
