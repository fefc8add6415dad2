-- One row per study, judge who is a person, and arm and perturbation: votes, what is left out of them, and why.
-- Of a person an invalid vote is one that came too fast; abstained is "Not familiar".
with log as (from vote_log where human),
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
    (count(*) filter (log.choice = 'invalid'))::integer as too_fast,
    (count(*) filter (log.choice = 'abstain'))::integer as not_familiar,
    median(timed.seconds) as median_seconds,
from log
left join timed
    on timed.dataset = log.dataset and timed.sample = log.sample and timed.arm = log.arm
    and timed.perturbation is not distinct from log.perturbation and timed.judge = log.judge
    and timed.shown_first = log.shown_first and timed.repeat = log.repeat
group by all
