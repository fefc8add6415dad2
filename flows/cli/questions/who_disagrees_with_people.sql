-- Which judge disagrees with people, and how often? First over all items, then by slice. `voirdire calibrate STUDY` makes these rows from labels of people, which come with the data or from `voirdire booth STUDY`. kappa_quadratic, with quadratic weights, is that of grades.
-- study: name of the study, or of a calibration [all studies]
select
    study, judge, coalesce(slice_column || ' ' || slice, 'all items') as items, criterion, n, agreement, agreement_low, agreement_high,
    if(kind = 'grade', null, kappa) as kappa, kappa_quadratic, bias, bias_finding, simulated, prompt, wave, kind,
from mart.human_agreement
where $study = 'all studies' or study in ($study, $study || '-people')
order by study, slice is not null, slice_column, slice, agreement, judge, prompt, wave, criterion
