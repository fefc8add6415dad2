-- Which judge should I use? A recommendation for each, with up to three reasons, the most serious first, and the number of others (mart.recommendations has all).
-- study: name of the study [all studies]
select
    study, judge, recommendation,
    -- Results of an earlier version have no summary.
    coalesce(summary, nullif(concat_ws('; ', reasons, undecided), '')) as reasons,
    more_questions, more_decide, simulated, prompt, wave,
from mart.recommendations
where $study in (study, 'all studies')
order by study, list_order, failed, inconclusive, judge, prompt, wave
