-- One row per judge, prompt, wave, sample, arm and perturbation of a study: its votes, counted.
-- Order 12 shows the anchor first, 21 the target. The repeats with the same outcome in one order
-- are a set, each repeat a bit of an integer of 127 bits, or of fewer where these hold all repeats
-- (`tallies_query`), so `&` finds the repeats that two sets share. The plain form, a first aggregate
-- with a row per repeat, misses the limit of memory: it takes 2 054 MB for ten million votes, where
-- 2 000 are allowed. It also takes twice the CPU time in this aggregate (1.46 seconds per million
-- votes instead of 0.74, and with fewer bits 0.57).
with ballots as (
    select *,
        shown_first = 'anchor' as straight,
        case choice
            when 'first' then if(straight, 'anchor', 'target')
            when 'second' then if(straight, 'target', 'anchor')
            else choice
        end as outcome,
        1::hugeint << repeat::hugeint as bit,
    from vote_log
    where study = getvariable('study')
),
sets as (
    select
        dataset, judge, prompt, wave, sample, arm, perturbation,
        any_value(cluster) as cluster, any_value(kind) as kind, any_value(label) as label,
        bool_and(simulated) as simulated, bool_or(human) as human,
        count(stopped)::smallint as stopped,
        (count(*) filter (cached is not null and stopped is null))::smallint as known,
        (count(*) filter (cached and stopped is null))::smallint as cached,
        (count(*) filter (outcome = 'invalid'))::smallint as invalid,
        (count(*) filter (outcome = 'abstain'))::smallint as abstain,
        (count(*) filter (outcome = 'ambiguous'))::smallint as ambiguous,
        bit_or(if(straight, bit, 0)) as asked_12,
        bit_or(if(straight, 0, bit)) as asked_21,
        bit_or(if(straight and outcome is not null, bit, 0)) as cast_12,
        bit_or(if(not straight and outcome is not null, bit, 0)) as cast_21,
        bit_or(if(straight and outcome = 'anchor', bit, 0)) as anchors_12,
        bit_or(if(not straight and outcome = 'anchor', bit, 0)) as anchors_21,
        bit_or(if(straight and outcome = 'tie', bit, 0)) as ties_12,
        bit_or(if(not straight and outcome = 'tie', bit, 0)) as ties_21,
        bit_or(if(straight and outcome = 'target', bit, 0)) as targets_12,
        bit_or(if(not straight and outcome = 'target', bit, 0)) as targets_21,
    from ballots
    group by all
),
counts as (
    select
        * exclude (
            asked_12, asked_21, cast_12, cast_21,
            anchors_12, anchors_21, ties_12, ties_21, targets_12, targets_21
        ),
        bit_count(asked_12)::smallint as planned_12,
        planned_12 + bit_count(asked_21)::smallint as planned,
        bit_count(cast_12)::smallint as voted_12,
        bit_count(cast_21)::smallint as voted_21,
        voted_12 + voted_21 as voted,
        bit_count(anchors_12)::smallint as anchor_12,
        bit_count(anchors_21)::smallint as anchor_21,
        bit_count(ties_12)::smallint as tie_12,
        bit_count(ties_21)::smallint as tie_21,
        bit_count(targets_12)::smallint as target_12,
        bit_count(targets_21)::smallint as target_21,
        anchors_12 | ties_12 | targets_12 as valid_12,
        anchors_21 | ties_21 | targets_21 as valid_21,
        bit_count(asked_12 & asked_21)::smallint as matched,
        bit_count(cast_12 & cast_21)::smallint as matched_voted,
        bit_count(cast_12 & cast_21 & ~(valid_12 | valid_21))::smallint as matched_invalid,
        bit_count(asked_12 & asked_21 & xor(valid_12, valid_21))::smallint as alone,
        bit_count(anchors_12 & anchors_21)::smallint as both_anchor,
        bit_count(ties_12 & ties_21)::smallint as both_tie,
        bit_count(targets_12 & targets_21)::smallint as both_target,
        bit_count(anchors_12 & targets_21)::smallint as first_first,
        bit_count(targets_12 & anchors_21)::smallint as second_second,
        first_first + bit_count((anchors_12 & ties_21) | (ties_12 & targets_21))::smallint as primacy,
        second_second + bit_count((targets_12 & ties_21) | (ties_12 & anchors_21))::smallint as recency,
        both_anchor + both_tie + both_target as consistent,
        case label
            when 'anchor' then both_anchor when 'tie' then both_tie when 'target' then both_target
        end as matched_right,
        asked_12 & asked_21 & 1 = 1 as matched_once,
        case 1 when anchors_12 & 1 then -1 when ties_12 & 1 then 0 when targets_12 & 1 then 1 end
            ::smallint as once_12,
        case 1 when anchors_21 & 1 then -1 when ties_21 & 1 then 0 when targets_21 & 1 then 1 end
            ::smallint as once_21,
    from sets
),
-- What is known of the answers of control pairs, the same for all judges.
answers as (
    select
        dataset, sample, 'control' as arm,
        any_value(anchor_author) as anchor_author, any_value(target_author) as target_author,
        max(anchor_length) as anchor_length, max(target_length) as target_length,
        max(anchor_header) as anchor_header, max(target_header) as target_header,
        max(anchor_list) as anchor_list, max(target_list) as target_list,
        max(anchor_bold) as anchor_bold, max(target_bold) as target_bold,
        max(anchor_markup) as anchor_markup, max(target_markup) as target_markup,
        max(human_score) filter (human is not true) as given_score,
        max(human_score) filter (human) as voted_score,
        max(label_chance) filter (human is not true) as given_chance,
        max(label_chance) filter (human) as voted_chance,
        any_value(category) as category,
    from vote_log
    where study = getvariable('study') and arm = 'control'
    group by all
)
-- People's opinion in the data takes precedence over votes of people, with which people themselves are not compared.
select
    * exclude (
        valid_12, valid_21, both_anchor, given_score, voted_score, given_chance, voted_chance
    ),
    if(human, given_score, coalesce(given_score, voted_score)) as human_score,
    if(human, given_chance, coalesce(given_chance, voted_chance)) as label_chance,
from counts left join answers using (dataset, sample, arm)
