-- One row per control pair of a study: what is known of its answers, the same for all judges.
select
    dataset, sample, 'control' as arm,
    any_value(anchor_author) as anchor_author,
    any_value(target_author) as target_author,
    max(anchor_length) as anchor_length,
    max(target_length) as target_length,
    max(anchor_header) as anchor_header,
    max(target_header) as target_header,
    max(anchor_list) as anchor_list,
    max(target_list) as target_list,
    max(anchor_bold) as anchor_bold,
    max(target_bold) as target_bold,
    max(anchor_markup) as anchor_markup,
    max(target_markup) as target_markup,
    max(human_score) as human_score,
    max(label_chance) as label_chance,
    any_value(category) as category,
from vote_log
where study = getvariable('study') and arm = 'control'
group by all
