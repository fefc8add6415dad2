-- One row per study, judge, criterion and item on which the judge and people differ, worst first.
select
    study, dataset, judge, prompt, wave, criterion, "rank", item, human_label, judge_label, gap, people,
    human_share, texts, simulated,
from differing_labels
order by study, dataset, judge, prompt, wave, criterion, "rank"
