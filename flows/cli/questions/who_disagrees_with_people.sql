-- Which judge disagrees with people, and how often?
-- study: name of the study, or of a calibration [the newest in mart.human_agreement]
select judge, prompt, wave, criterion, slice, kind, n, agreement, agreement_low, agreement_high, kappa, bias, bias_finding, simulated,
from mart.human_agreement
where study in ($study, $study || '-people')
order by agreement, judge, prompt, wave, criterion, slice
