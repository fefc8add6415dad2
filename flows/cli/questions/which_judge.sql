-- Which judge should I use? Its gates that fail, and those that are undecided.
-- study: name of the study [quick]
select
    judge, prompt, wave, any_value(simulated) as simulated,
    count(*) filter (verdict = 'pass') as passed,
    string_agg(distinct gate, ', ' order by gate) filter (verdict = 'fail') as fails,
    string_agg(distinct gate, ', ' order by gate) filter (verdict = 'inconclusive') as undecided,
from mart.scorecard
where study = $study
group by judge, prompt, wave
order by count(*) filter (verdict = 'fail'), count(*) filter (verdict = 'inconclusive'), judge, prompt, wave
