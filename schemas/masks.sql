-- One row per judge, prompt, wave, sample, arm and perturbation of a study: its ballots in masks.
-- What became of a ballot is a number of three bits, i, j and k, and its repeat a place in masks,
-- one for each bit and order: so votes of equal repeat meet without a join. The six masks of ten
-- repeats stand in one word, ten bits each: i, j and k of the order that shows the anchor first
-- are worth 1, 1024 and 1048576. There are as many words as the last repeat needs (masks.py).
with coded as (
    select *,
        case choice
            when 'first' then if(shown_first = 'anchor', 1048577, 1049601)
            when 'second' then if(shown_first = 'anchor', 1049601, 1048577)
            when 'tie' then 1049600
            when 'invalid' then 1024
            when 'abstain' then 1025
            when 'ambiguous' then 1048576
            else 1
        end::bigint << (repeat % 10 + if(shown_first = 'anchor', 0, 30)) as place,
    from vote_log
    where study = getvariable('study')
)
select
    {keys},
    any_value(cluster) as cluster, any_value(kind) as kind, any_value(label) as label,
    bool_and(simulated) as simulated, bool_or(human) as human,
    count(stopped)::integer as stopped,
    count(*) filter (cached and stopped is null)::integer as cached,
    count(*) filter (cached is not null and stopped is null)::integer as known,
    {words},
from coded
group by all
