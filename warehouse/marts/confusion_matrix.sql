-- One row per study, judge, criterion, label of people and label of the judge: how many items have both.
select
    study, dataset, judge, prompt, wave, criterion, human_label, judge_label, items, share_of_human_label,
    simulated,
from confusions
