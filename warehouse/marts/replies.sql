-- One row per judge, prompt and wave: what replied, how fast and how long; a changed fingerprint alone is no alert.
with waves as (
    select
        b.judge, b.prompt, b.wave, count(*) as votes,
        list_sort(list(distinct v.model)) as models,
        list_sort(list(distinct v.fingerprint)) as fingerprints,
        median(v.seconds) as median_seconds,
        avg(length(v.raw)) as mean_characters,
        avg(v.completion_tokens) as mean_tokens,
        min(v.cast_at) as first_vote,
    from ballots as b
    join votes as v using (ballot_id)
    group by b.judge, b.prompt, b.wave
),
beside as (
    select
        *,
        lag(models) over wave_before as models_before,
        lag(fingerprints) over wave_before as fingerprints_before,
    from waves
    window wave_before as (partition by judge, prompt order by first_vote, wave)
)
select
    judge, prompt, wave, votes, models, fingerprints, median_seconds, mean_characters, mean_tokens,
    first_vote,
    case
        when models <> models_before then 'another model'
        when fingerprints <> fingerprints_before then 'another fingerprint'
    end as notice,
from beside
