-- One row per ballot with a reply behind the results of a study: what the judge was shown, and its reply verbatim.
-- Results describe the last wave; the votes of earlier ones are in the tables ballots and votes.
-- The votes of a measured file have no rows here: their texts are unknown.
with asked as (
    select
        study, dataset, judge, prompt, wave, sample, arm, perturbation, shown_first, repeat, simulated, human, ballot_id
    from vote_log
    union all
    select distinct
        study, dataset, judge, prompt, wave, sample, arm, perturbation, side || ' alone', repeat, simulated, human,
        ballot_id
    from ratings
)
select
    a.study, a.dataset, a.judge, a.prompt, a.wave, a.sample, a.arm, a.perturbation, p.kind, a.shown_first, a.repeat,
    p.question, p.anchor, p.target, v.choice, v.rating, v.raw as reply, v.model, v.seconds, v.prompt_tokens,
    v.completion_tokens, v.cost_usd, v.cast_at, a.human, a.simulated, p.pair_id, ballot_id,
from asked as a
join (from pairs join (select study, pair_id from study_pairs) using (pair_id)) as p
    on p.study = a.study and p.dataset = a.dataset and p.sample = a.sample and p.arm = a.arm
    and p.perturbation is not distinct from a.perturbation
join votes as v using (ballot_id)
