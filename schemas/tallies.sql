-- One row per judge, prompt, wave, sample, arm and perturbation of a study: its votes, counted.
-- Order 12 shows the anchor first, 21 the target; a repeat in both orders is a match.
with ballots as (
    select *,
        shown_first = 'anchor' as straight,
        case choice
            when 'first' then if(straight, 'anchor', 'target')
            when 'second' then if(straight, 'target', 'anchor')
            else choice
        end as outcome,
    from vote_log
    where study = getvariable('study')
),
repeats as (
    select
        dataset, judge, prompt, wave, sample, arm, perturbation, repeat,
        any_value(cluster) as cluster, any_value(kind) as kind, any_value(label) as label,
        bool_and(simulated) as simulated, bool_or(human) as human,
        count(stopped) as stopped,
        count(*) filter (cached is not null and stopped is null) as known,
        count(*) filter (cached and stopped is null) as cached,
        bool_or(straight) as asked_12,
        bool_or(not straight) as asked_21,
        any_value(outcome) filter (straight) as vote_12,
        any_value(outcome) filter (not straight) as vote_21,
        coalesce(vote_12 in ('anchor', 'tie', 'target'), false) as valid_12,
        coalesce(vote_21 in ('anchor', 'tie', 'target'), false) as valid_21,
    from ballots
    group by all
),
counts as (
    select
        dataset, judge, prompt, wave, sample, arm, perturbation,
        any_value(cluster) as cluster, any_value(kind) as kind, any_value(label) as label,
        bool_and(simulated) as simulated, bool_or(human) as human,
        sum(stopped)::smallint as stopped,
        sum(known)::smallint as known,
        sum(cached)::smallint as cached,
        ((count(*) filter (vote_12 = 'invalid')) + (count(*) filter (vote_21 = 'invalid')))::smallint as invalid,
        ((count(*) filter (vote_12 = 'abstain')) + (count(*) filter (vote_21 = 'abstain')))::smallint as abstain,
        ((count(*) filter (vote_12 = 'ambiguous')) + (count(*) filter (vote_21 = 'ambiguous')))::smallint as ambiguous,
        (count(*) filter (asked_12))::smallint as planned_12,
        ((count(*) filter (asked_12)) + (count(*) filter (asked_21)))::smallint as planned,
        count(vote_12)::smallint as voted_12,
        count(vote_21)::smallint as voted_21,
        voted_12 + voted_21 as voted,
        (count(*) filter (vote_12 = 'anchor'))::smallint as anchor_12,
        (count(*) filter (vote_21 = 'anchor'))::smallint as anchor_21,
        (count(*) filter (vote_12 = 'tie'))::smallint as tie_12,
        (count(*) filter (vote_21 = 'tie'))::smallint as tie_21,
        (count(*) filter (vote_12 = 'target'))::smallint as target_12,
        (count(*) filter (vote_21 = 'target'))::smallint as target_21,
        (count(*) filter (asked_12 and asked_21))::smallint as matched,
        (count(*) filter (vote_12 is not null and vote_21 is not null))::smallint as matched_voted,
        (count(*) filter (vote_12 is not null and vote_21 is not null and not valid_12 and not valid_21))
            ::smallint as matched_invalid,
        (count(*) filter (asked_12 and asked_21 and valid_12 != valid_21))::smallint as alone,
        (count(*) filter (vote_12 = 'anchor' and vote_21 = 'anchor'))::smallint as both_anchor,
        (count(*) filter (vote_12 = 'tie' and vote_21 = 'tie'))::smallint as both_tie,
        (count(*) filter (vote_12 = 'target' and vote_21 = 'target'))::smallint as both_target,
        (count(*) filter (vote_12 = 'anchor' and vote_21 = 'target'))::smallint as first_first,
        (count(*) filter (vote_12 = 'target' and vote_21 = 'anchor'))::smallint as second_second,
        first_first + (count(*) filter (vote_12 = 'anchor' and vote_21 = 'tie' or vote_12 = 'tie' and vote_21 = 'target'))::smallint as primacy,
        second_second + (count(*) filter (vote_12 = 'target' and vote_21 = 'tie' or vote_12 = 'tie' and vote_21 = 'anchor'))::smallint as recency,
        both_anchor + both_tie + both_target as consistent,
        case any_value(label)
            when 'anchor' then both_anchor when 'tie' then both_tie when 'target' then both_target
        end as matched_right,
        bool_or(repeat = 0 and asked_12 and asked_21) as matched_once,
        any_value(case vote_12 when 'anchor' then -1 when 'tie' then 0 when 'target' then 1 end)
            filter (repeat = 0)::smallint as once_12,
        any_value(case vote_21 when 'anchor' then -1 when 'tie' then 0 when 'target' then 1 end)
            filter (repeat = 0)::smallint as once_21,
    from repeats
    group by all
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
        max(human_score) as human_score, max(label_chance) as label_chance,
        any_value(category) as category,
    from vote_log
    where study = getvariable('study') and arm = 'control'
    group by all
)
select * exclude (both_anchor)
from counts left join answers using (dataset, sample, arm)
