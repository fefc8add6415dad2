-- One row per study, judge, prompt, wave, sample, arm and perturbation: its votes, counted.
-- What became of a ballot is a number of three bits, and its repeat a place in masks, one for each
-- bit and order: votes of equal repeat meet without a join, and few sums are kept per row.
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
),
masked as (
    select
        study, dataset, judge, prompt, wave, sample, arm, perturbation,
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
        study, dataset, sample, 'control' as arm,
        any_value(anchor_author) as anchor_author,
        any_value(target_author) as target_author,
        max(anchor_length) as anchor_length,
        max(target_length) as target_length,
        max(anchor_markup) as anchor_markup,
        max(target_markup) as target_markup,
        max(human_score) as human_score,
        max(label_chance) as label_chance,
    from vote_log
    where arm = 'control'
    group by all
),
read as (
    select *,
        i12 | j12 | k12 as asked_12, j12 | k12 as cast_12,
        i21 | j21 | k21 as asked_21, j21 | k21 as cast_21,
        i12 & k12 & ~j12 as a12, j12 & k12 & ~i12 as t12, i12 & j12 & k12 as b12,
        i21 & k21 & ~j21 as a21, j21 & k21 & ~i21 as t21, i21 & j21 & k21 as b21,
    from masked
)
select
    study, dataset, judge, prompt, wave, sample, arm, perturbation, cluster, kind, simulated,
    (bit_count(asked_12) + bit_count(asked_21))::integer as planned,
    stopped,
    (bit_count(cast_12) + bit_count(cast_21))::integer as voted,
    (bit_count(j12 & ~i12 & ~k12) + bit_count(j21 & ~i21 & ~k21))::integer as invalid,
    (bit_count(i12 & j12 & ~k12) + bit_count(i21 & j21 & ~k21))::integer as abstain,
    (bit_count(k12 & ~i12 & ~j12) + bit_count(k21 & ~i21 & ~j21))::integer as ambiguous,
    cached, known,
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
from read left join compared using (study, dataset, sample, arm)
