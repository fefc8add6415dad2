-- Which judge should I use? A recommendation for each, with up to three reasons, the gravest first (mart.recommendations has all).
-- study: name of the study [the newest in mart.recommendations]
select
    judge, simulated, recommendation,
    array_to_string(list_slice(string_split(case
        when recommendation = 'not enough data' then concat_ws('; ', undecided, reasons)
        else concat_ws('; ', reasons, undecided)
    end, '; '), 1, 3), '; ') as reasons,
    more_questions, prompt, wave,
from mart.recommendations
where study = $study
order by
    list_position(['use', 'use with care', 'not enough data', 'do not use'], recommendation),
    failed, inconclusive, judge, prompt, wave
