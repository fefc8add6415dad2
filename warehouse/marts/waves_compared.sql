-- One row per study, ballot and baseline that drift compares its wave with: both replies verbatim, and whether the verdict changed.
-- Replies of the baseline are read from the tables, as a study has results of its last wave.
-- Some verdicts change whenever a judge is asked again, so one changed verdict is no drift.
with bases as (select distinct study, dataset, judge, prompt, wave, base from drifts)
select
    t.study, t.dataset, t.judge, t.prompt, t.wave, d.base, t.sample, t.arm, t.perturbation, t.shown_first, t.repeat,
    t.question, t.anchor, t.target, v.choice as choice_before, v.rating as rating_before, v.raw as reply_before,
    t.choice, t.rating, t.reply, v.choice <> t.choice or t.choice = 'rated' and v.rating is distinct from t.rating as changed,
    v.cast_at as cast_before, t.cast_at, t.simulated, t.pair_id, t.ballot_id,
from mart.transcript as t
join bases as d using (study, dataset, judge, prompt, wave)
join ballots as now on now.ballot_id = t.ballot_id and now.pair_id = t.pair_id
join ballots as b
    on b.pair_id = t.pair_id and b.judge = t.judge and b.prompt = t.prompt and b.wave = d.base
    and b.shown_first = now.shown_first and b.repeat = now.repeat
join votes as v on v.ballot_id = b.ballot_id
