-- "share detected of the kind detected best" had to be read twice.
update gates set
    measure = replace(
        replace(measure, 'share detected in mean scores (D) of the kind detected best', 'best share detected in mean scores (D) over kinds of flaws'),
        'share detected of the kind detected best', 'best share detected over kinds of flaws'),
    words = replace(
        replace(words, 'share detected in mean scores (D) of the kind detected best', 'best share detected in mean scores (D) over kinds of flaws'),
        'share detected of the kind detected best', 'best share detected over kinds of flaws');
update judge_recommendations set
    reasons = replace(
        replace(reasons, 'share detected in mean scores (D) of the kind detected best', 'best share detected in mean scores (D) over kinds of flaws'),
        'share detected of the kind detected best', 'best share detected over kinds of flaws'),
    summary = replace(
        replace(summary, 'share detected in mean scores (D) of the kind detected best', 'best share detected in mean scores (D) over kinds of flaws'),
        'share detected of the kind detected best', 'best share detected over kinds of flaws');
