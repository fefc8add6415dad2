-- One row per study, judge who is a person, and arm and perturbation: votes, what is left out of them, and why.
-- An invalid vote of the booth whose seconds are known came too fast. Why one in a measured file is invalid nobody
-- knows, nor its seconds: null there. Abstained is "Not familiar".
with log as (
    select *, study in (select study from runs where flow = 'measure') as filed from vote_log where human
),
timed as (
    select distinct
        p.dataset, p.sample, p.arm, p.perturbation, b.judge, b.shown_first, b.repeat,
        if(v.finish_reason = 'timed', v.seconds, null) as seconds,
    from votes as v
    join ballots as b using (ballot_id)
    join judges as j using (judge)
    join pairs as p using (pair_id)
    where j.provider = 'people'
)
select
    log.study, log.dataset, log.judge, log.arm, log.perturbation,
    count(*)::integer as votes,
    (count(*) filter (log.choice in ('first', 'second', 'tie')))::integer as counted,
    if(
        count(timed.judge) = 0, null,
        count(*) filter (log.choice = 'invalid' and timed.seconds is not null)
    )::integer as too_fast,
    (count(*) filter (log.choice = 'abstain'))::integer as not_familiar,
    median(timed.seconds) as median_seconds,
from log
left join timed
    on timed.dataset = log.dataset and timed.sample = log.sample and timed.arm = log.arm
    and timed.perturbation is not distinct from log.perturbation and timed.judge = log.judge
    and timed.shown_first = log.shown_first and timed.repeat = log.repeat and not log.filed
group by all
