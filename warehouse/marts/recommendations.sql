-- One row per study, judge, prompt, wave and mode: whether to use the judge, and why (methods, section 17).
-- summary says why in one text, with up to three reasons.
select
    study, dataset, judge, prompt, wave, mode, simulated, recommendation, list_order, summary, reasons, undecided, drift,
    more_questions, more_decide, stays_open, too_few, unanswered, not_measured, passed, failed, inconclusive,
from judge_recommendations
