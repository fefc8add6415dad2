-- Which pairs a study rests on was inferred from its votes, and the seed and recipe of its texts.
create table study_pairs (
    pair_id varchar not null, study varchar not null, run varchar not null,
    saved_at timestamptz not null
);
insert into study_pairs by name
with rows as (from vote_log where human is not true),
audits as (
    select study, cast(json_extract(parameters, '$.seed') as bigint) as seed from runs
    where flow = 'audit'
    qualify row_number() over (partition by study order by started_at desc) = 1
),
asked as (select distinct study, dataset, sample, arm, perturbation from rows),
judged as (
    select distinct r.study, b.pair_id from ballots as b
    join (select distinct study, judge, prompt, wave from rows) as r using (judge, prompt, wave)
),
saved as (select study, max(run) as run, max(saved_at) as saved_at from rows group by study)
select p.pair_id, s.study, s.run, s.saved_at
from pairs as p
join asked as q
    on q.dataset = p.dataset and q.sample = p.sample and q.arm = p.arm
    and q.perturbation is not distinct from p.perturbation
join audits as a on a.study = q.study
join judged as j on j.study = q.study and j.pair_id = p.pair_id
-- A recipe that another study brought since then is not what these votes are on.
join saved as s on s.study = q.study and p.saved_at <= s.saved_at
left join perturbed_answers as t
    on t.answer_id = p.sample and t.perturbation = p.perturbation and t.seed = a.seed
    and p.target = if(p.arm = 'sham', t.sham, t.perturbed)
where p.perturbation is null or t.recipe is not null
qualify row_number() over (
    partition by q.study, p.dataset, p.sample, p.arm, p.perturbation order by t.recipe desc
) = 1;
