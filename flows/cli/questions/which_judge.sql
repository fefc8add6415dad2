-- Which judge should I use? A recommendation for each, with the reasons, the gravest first.
-- study: name of the study [quick]
select judge, prompt, wave, simulated, recommendation, reasons, undecided, more_questions
from mart.recommendations
where study = $study
order by
    list_position(['use', 'use with care', 'not enough data', 'do not use'], recommendation),
    failed, inconclusive, judge, prompt, wave
