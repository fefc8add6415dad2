-- Which judge disagrees with people, and how far? The row `humans` is each person against the others. All items come first, then slices, the worst first: grades by the mean error, others by agreement. `voirdire calibrate STUDY` makes these rows. Grades have kappa_quadratic (kappa with quadratic weights); bias is judge minus people.
-- study: name of the study, or of a calibration [all studies]
with asked as (
    select *, kind = 'grade' as graded from mart.human_agreement
    where $study = 'all studies' or study in ($study, $study || '-people')
)
select
    study, judge, coalesce(slice_column || ' ' || slice, 'all items') as items, criterion,
    if(graded, mean_error, null) as mean_error, if(graded, mean_error_low, null) as mean_error_low,
    if(graded, mean_error_high, null) as mean_error_high,
    if(graded, null, coalesce(agreement, people_agreement)) as agreement,
    if(graded, null, coalesce(agreement_low, people_agreement_low)) as agreement_low,
    if(graded, null, coalesce(agreement_high, people_agreement_high)) as agreement_high,
    if(graded, null, round(kappa, 12) + 0) as kappa, if(graded, null, kappa_low) as kappa_low, if(graded, null, kappa_high) as kappa_high,
    round(kappa_quadratic, 12) + 0 as kappa_quadratic, kappa_quadratic_low, kappa_quadratic_high,
    round(bias, 12) + 0 as bias, bias_low, bias_high, bias_finding, n, simulated, prompt, wave, kind,
from asked
order by study, slice is not null, graded, if(graded, -mean_error, agreement) nulls last, judge, prompt, wave, criterion, slice_column, slice
