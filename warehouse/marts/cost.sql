-- One row per run, judge, prompt and wave: ballots cast, tokens and money (null where a price is unknown, and for people).
-- A vote shared by judges or prompts with identical requests is counted once, for the first of them.
with once as (
    select ballot_id, wave, min({'judge': judge, 'prompt': prompt}) as first from ballots group by ballot_id, wave
)
select
    v.run, r.study, b.first.judge as judge, b.first.prompt as prompt, b.wave, j.simulated, j.provider = 'people' as human,
    count(*) as votes,
    sum(v.prompt_tokens)::bigint as prompt_tokens,
    sum(v.completion_tokens)::bigint as completion_tokens,
    case when count(*) = count(v.cost_usd) then sum(v.cost_usd) end as cost_usd,
    median(v.seconds) as median_seconds,
    min(v.cast_at) as first_vote, max(v.cast_at) as last_vote,
from votes as v
join once as b using (ballot_id)
join judges as j on j.judge = b.first.judge
left join runs as r on r.run = v.run
group by all
