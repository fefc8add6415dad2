-- One row per judge, prompt and wave: models that replied, latency and reply length.
-- A changed fingerprint alone is no alert.
-- notice compares a wave with the one before; it is null until a study with waves is measured.
select
    b.judge, b.prompt, b.wave, count(*) as votes,
    list_sort(list(distinct v.model)) as models,
    list_sort(list(distinct v.fingerprint)) as fingerprints,
    median(v.seconds) as median_seconds,
    avg(length(v.raw)) as mean_characters,
    avg(v.completion_tokens) as mean_tokens,
    min(v.cast_at) as first_vote,
    any_value(c.notice) as notice,
from ballots as b
join votes as v using (ballot_id)
left join (select judge, prompt, wave, any_value(notice) as notice from reply_changes group by all) as c
    using (judge, prompt, wave)
group by all
