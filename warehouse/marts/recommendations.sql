-- One row per study, judge, prompt, wave and mode: whether to use the judge, and why (methods, section 17).
-- If a judge has not enough data, read undecided, then reasons; `voirdire sql --ask which_judge` shows both.
select
    study, dataset, judge, prompt, wave, mode, simulated, recommendation, reasons, undecided, drift,
    more_questions, more_decide, stays_open, too_few, unanswered, not_measured, passed, failed, inconclusive,
from judge_recommendations
