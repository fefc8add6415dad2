-- Which judge disagrees with people, and how often? First over all items, then by slice. Without labels of people there are no rows: `voirdire booth STUDY` collects votes, `voirdire calibrate` compares labels.
-- study: name of the study, or of a calibration [all studies]
select
    study, judge, coalesce(slice_column || ' ' || slice, 'all items') as items, criterion, n, agreement, agreement_low, agreement_high, kappa, bias,
    bias_finding, simulated, prompt, wave, kind,
from mart.human_agreement
where $study = 'all studies' or study in ($study, $study || '-people')
order by study, slice is not null, slice_column, slice, agreement, judge, prompt, wave, criterion
