-- Which judge should I use? A recommendation for each, with up to three reasons, the most serious first, and the number of others (mart.recommendations has all).
-- study: name of the study [all studies]
with why as (
    select *, string_split(case
        when recommendation = 'not enough data' then concat_ws('; ', undecided, reasons, drift)
        when recommendation = 'do not use' then reasons
        when recommendation = 'use' then concat_ws('; ', format('passes {} of {} gates', passed, passed + inconclusive), undecided, drift)
        else concat_ws('; ', reasons, undecided, drift)
    end, '; ') as every,
    from mart.recommendations where $study in (study, 'all studies')
)
select
    study, judge, recommendation,
    array_to_string(every[1:3], '; ') || if(len(every) > 3, format('; {} more reason{}', len(every) - 3, if(len(every) = 4, '', 's')), '') as reasons,
    more_questions, more_decide, simulated, prompt, wave,
from why
order by
    study, case recommendation when 'use' then 0 when 'do not use' then 2 else 1 end,
    failed, inconclusive, judge, prompt, wave
