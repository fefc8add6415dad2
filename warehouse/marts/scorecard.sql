-- One row per study, judge, prompt, wave, mode, gate and perturbation (null: for the whole judge): passed or not.
-- With too few questions nothing is passed or failed (methods, sections 3 and 16).
select
    study, dataset, judge, prompt, wave, mode, gate, perturbation, simulated,
    finding, measure, drift_mode, drift_perturbation, criterion, value, low, high, tolerance, verdict, margin, effect_logits, sham_shift, no_reply,
    changed, earlier_change, too_few, more_questions, consequence, words, reason,
from gates
