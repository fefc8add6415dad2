-- What has changed since the baseline? Alerts and suspicions of the waves of the last days.
-- days: how many days back [7]
select
    d.study, d.judge, d.prompt, d.wave, d.perturbation, d.measure, d.state, d.base, d.change, d.low, d.high, d.simulated,
    r.first_vote,
from mart.drift as d
join mart.replies as r using (judge, prompt, wave)
where d.state in ('alert', 'suspect') and r.first_vote >= now() - to_days($days::integer)
order by d.state, r.first_vote desc, d.study, d.judge, d.prompt, d.perturbation, d.measure
