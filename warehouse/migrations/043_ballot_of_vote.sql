-- A vote was found again by its repeat, which studies with different repeats number differently.
alter table vote_log add column ballot_id varchar;
alter table ratings add column ballot_id varchar;
create temporary table found as
    select p.study, p.dataset, p.sample, p.arm, p.perturbation, b.judge, b.prompt, b.wave, b.shown_first,
        b.repeat - if(p.arm = 'replicate', min(b.repeat) over (partition by p.study, b.pair_id, b.judge, b.prompt, b.wave), 0) as repeat,
        b.ballot_id
    from (from pairs join (select study, pair_id from study_pairs) using (pair_id)) as p
    join ballots as b using (pair_id);
update vote_log as v set ballot_id = f.ballot_id from found as f
    where f.study = v.study and f.dataset = v.dataset and f.sample = v.sample and f.arm = v.arm
    and f.perturbation is not distinct from v.perturbation and f.judge = v.judge and f.prompt = v.prompt
    and f.wave = v.wave and f.shown_first = v.shown_first and f.repeat = v.repeat;
update ratings as v set ballot_id = f.ballot_id from found as f
    where f.study = v.study and f.dataset = v.dataset and f.sample = v.sample and f.arm = v.arm
    and f.perturbation is not distinct from v.perturbation and f.judge = v.judge and f.prompt = v.prompt
    and f.wave = v.wave and f.shown_first = v.side and f.repeat = v.repeat;
