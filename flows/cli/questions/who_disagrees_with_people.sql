-- Which judge disagrees with people, and how often?
-- study: name of the study or calibration [quick]
select judge, prompt, wave, criterion, slice, kind, n, agreement, agreement_low, agreement_high, kappa, bias, bias_finding, simulated,
from mart.human_agreement
where study = $study
order by agreement, judge, prompt, wave, criterion, slice
