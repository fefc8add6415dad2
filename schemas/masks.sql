-- One row per judge, prompt, wave, sample, arm and perturbation of a study: its ballots in masks.
-- What became of a ballot is a number of three bits, and its repeat a place in masks, one for each
-- bit and order: so votes of equal repeat meet without a join, and few sums are kept per row.
with coded as (
    select *,
        shown_first = 'anchor' as straight,
        1::bigint << repeat as bit,
        case choice
            when 'first' then if(shown_first = 'anchor', 5, 7)
            when 'second' then if(shown_first = 'anchor', 7, 5)
            when 'tie' then 6
            when 'invalid' then 2
            when 'abstain' then 3
            when 'ambiguous' then 4
            else 1
        end as code,
    from vote_log
    where study = getvariable('study')
),
masked as (
    select
        dataset, judge, prompt, wave, sample, arm, perturbation,
        any_value(cluster) as cluster, any_value(kind) as kind, any_value(label) as label,
        bool_and(simulated) as simulated, bool_or(human) as human,
        count(stopped)::integer as stopped,
        count(*) filter (cached and stopped is null)::integer as cached,
        count(*) filter (cached is not null and stopped is null)::integer as known,
        bit_or(if(straight and code & 1 > 0, bit, 0)) as i12,
        bit_or(if(straight and code & 2 > 0, bit, 0)) as j12,
        bit_or(if(straight and code & 4 > 0, bit, 0)) as k12,
        bit_or(if(not straight and code & 1 > 0, bit, 0)) as i21,
        bit_or(if(not straight and code & 2 > 0, bit, 0)) as j21,
        bit_or(if(not straight and code & 4 > 0, bit, 0)) as k21,
    from coded
    group by all
),
compared as (
    select
        dataset, sample, 'control' as arm,
        any_value(anchor_author) as anchor_author,
        any_value(target_author) as target_author,
        max(anchor_length) as anchor_length,
        max(target_length) as target_length,
        max(anchor_markup) as anchor_markup,
        max(target_markup) as target_markup,
        max(human_score) as human_score,
        max(label_chance) as label_chance,
    from vote_log
    where study = getvariable('study') and arm = 'control'
    group by all
)
from masked
left join compared using (dataset, sample, arm)
