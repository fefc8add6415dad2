-- Texts called the gate discernment "detection of flaws", and invalid votes and replies "unreadable".
update gates set
    words = replace(replace(words, 'detection of flaws', 'discernment'), 'unreadable', 'invalid'),
    reason = replace(reason, 'unreadable', 'invalid');
update judge_recommendations set
    reasons = replace(reasons, 'unreadable', 'invalid'),
    undecided = replace(undecided, 'detection of flaws', 'discernment'),
    more_decide = replace(more_decide, 'detection of flaws', 'discernment'),
    stays_open = replace(stays_open, 'detection of flaws', 'discernment'),
    not_measured = replace(not_measured, 'detection of flaws', 'discernment');
update estimates set subgroup = replace(subgroup, 'unreadable', 'invalid')
where subgroup like 'unreadable experimental %';
