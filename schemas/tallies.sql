-- One row per study, judge, prompt, wave, sample, arm and perturbation: its votes, counted.
-- A vote's repeat is a bit of a mask, so that votes of equal repeat meet without a join.
with valued as (
    select *,
        shown_first = 'anchor' as straight,
        1::bigint << repeat as bit,
        case
            when choice = 'tie' then 0
            when choice in ('first', 'second')
                then if((choice = 'first') = (shown_first = 'anchor'), -1, 1)
        end as x,
    from vote_log
),
masked as (
    select
        study, dataset, judge, prompt, wave, sample, arm, perturbation,
        any_value(cluster) as cluster, any_value(kind) as kind, bool_and(simulated) as simulated,
        count(*)::integer as planned,
        count(stopped)::integer as stopped,
        count(choice)::integer as voted,
        count(*) filter (choice = 'invalid')::integer as invalid,
        count(*) filter (choice = 'abstain')::integer as abstain,
        count(*) filter (choice = 'ambiguous')::integer as ambiguous,
        count(*) filter (cached and stopped is null)::integer as cached,
        count(*) filter (cached is not null and stopped is null)::integer as known,
        any_value(label) as label, bool_or(human) as human,
        bit_or(if(straight and choice is not null, bit, 0)) as cast_12,
        bit_or(if(not straight and choice is not null, bit, 0)) as cast_21,
        bit_or(if(straight, bit, 0)) as asked_12,
        bit_or(if(not straight, bit, 0)) as asked_21,
        bit_or(if(straight and x = -1, bit, 0)) as a12,
        bit_or(if(straight and x = 0, bit, 0)) as t12,
        bit_or(if(straight and x = 1, bit, 0)) as b12,
        bit_or(if(not straight and x = -1, bit, 0)) as a21,
        bit_or(if(not straight and x = 0, bit, 0)) as t21,
        bit_or(if(not straight and x = 1, bit, 0)) as b21,
        any_value(anchor_author) as anchor_author,
        any_value(target_author) as target_author,
        max(anchor_length) as anchor_length,
        max(target_length) as target_length,
        max(anchor_markup) as anchor_markup,
        max(target_markup) as target_markup,
        max(human_score) as human_score,
        max(label_chance) as label_chance,
    from valued
    group by all
)
select
    study, dataset, judge, prompt, wave, sample, arm, perturbation, cluster, kind, simulated,
    planned, stopped, voted, invalid, abstain, ambiguous, cached, known,
    bit_count(a12)::integer as anchor_12,
    bit_count(t12)::integer as tie_12,
    bit_count(b12)::integer as target_12,
    bit_count(a21)::integer as anchor_21,
    bit_count(t21)::integer as tie_21,
    bit_count(b21)::integer as target_21,
    bit_count(asked_12)::integer as planned_12,
    bit_count(asked_12 & asked_21)::integer as matched,
    bit_count(asked_12 & asked_21 & xor(a12 | t12 | b12, a21 | t21 | b21))::integer as alone,
    (bit_count(a12 & a21) + bit_count(t12 & t21) + bit_count(b12 & b21))::integer as consistent,
    bit_count(b12 & b21)::integer as both_target,
    bit_count(t12 & t21)::integer as both_tie,
    (bit_count(a12 & (t21 | b21)) + bit_count(t12 & b21))::integer as primacy,
    (bit_count(b12 & (t21 | a21)) + bit_count(t12 & a21))::integer as recency,
    bit_count(a12 & b21)::integer as first_first,
    bit_count(b12 & a21)::integer as second_second,
    asked_12 & asked_21 & 1 = 1 as matched_once,
    case when a12 & 1 = 1 then -1 when t12 & 1 = 1 then 0 when b12 & 1 = 1 then 1 end as once_12,
    case when a21 & 1 = 1 then -1 when t21 & 1 = 1 then 0 when b21 & 1 = 1 then 1 end as once_21,
    bit_count(cast_12)::integer as voted_12,
    bit_count(cast_21)::integer as voted_21,
    label,
    human,
    case label
        when 'anchor' then bit_count(a12 & a21)
        when 'tie' then bit_count(t12 & t21)
        when 'target' then bit_count(b12 & b21)
    end::integer as matched_right,
    bit_count(cast_12 & cast_21)::integer as matched_voted,
    bit_count(cast_12 & cast_21 & ~(a12 | t12 | b12 | a21 | t21 | b21))::integer as matched_invalid,
    anchor_author, target_author, anchor_length, target_length, anchor_markup, target_markup,
    human_score, label_chance,
from masked
