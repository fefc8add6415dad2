-- Rows of a file of schema 32, of which later migrations change some.
create temporary table shared as select
    'd' as dataset, 'ada' as judge, 'p' as prompt, 'w1' as wave, 'quick' as study, 'r1' as run, timestamptz '2026-11-01 00:00:00+00' as saved_at;

insert into runs by name select
    'r1' as run, 'audit' as flow, 'quick' as study, 'u' as user, 'u1' as process, '{}' as parameters, 'f' as fingerprint, 'c' as code_version,
    timestamptz '2026-11-01 00:00:00+00' as started_at, 'completed' as state;
insert into judges by name select 'ada' as judge, 'offline' as provider, 'm' as model, '{}' as params, '' as system, true as simulated, run, saved_at from shared;

-- Each pair of q/1 is asked twice; repeats of the replicate go on from those of its control. Of q/2 only the experimental pair was asked.
create temporary table asked as select * from (values
    -- ballot, pair, arm, sample, shown first, repeat of the ballot, repeat in the vote log, choice
    ('c0', 'control 1', 'control', 'q/1', 'anchor', 0, 0, 'first'),
    ('c1', 'control 1', 'control', 'q/1', 'target', 0, 0, 'second'),
    ('c2', 'control 1', 'control', 'q/1', 'anchor', 1, 1, 'tie'),
    ('n3', 'replicate 1', 'replicate', 'q/1', 'anchor', 2, 0, 'second'),
    ('n4', 'replicate 1', 'replicate', 'q/1', 'target', 2, 0, 'first'),
    ('n5', 'replicate 1', 'replicate', 'q/1', 'anchor', 3, 1, 'second'),
    ('x6', 'boast 2', 'experimental', 'q/2', 'anchor', 0, 0, 'first')
) as t (ballot_id, pair_id, arm, sample, shown_first, asked_as, repeat, choice);
-- A prompt that shows one answer: its side says which. The pair 'control 1' has such ballots too.
create temporary table rated as select * from (values
    ('g0', 'control 1', 'control', 'q/1', 'anchor', 0, 0, '7'),
    ('g1', 'control 1', 'control', 'q/1', 'target', 0, 0, '9'),
    ('g2', 'replicate 1', 'replicate', 'q/1', 'target', 1, 0, '8')
) as t (ballot_id, pair_id, arm, sample, side, asked_as, repeat, label);
insert into pairs by name select distinct
    dataset, pair_id, sample, sample as "cluster", arm, if(arm = 'experimental', 'boast', null) as perturbation,
    if(arm = 'experimental', 'promote', null) as kind, 'Why?' as question, 'one' as anchor, 'two' as target, run, saved_at
from asked, shared;
insert into study_pairs by name select distinct pair_id, study, run, saved_at from asked, shared;
insert into ballots by name
    select ballot_id, pair_id, judge, prompt, wave, shown_first, asked_as as repeat, run, saved_at from asked, shared
    union all by name
    select ballot_id, pair_id, judge, 'single' as prompt, wave, side as shown_first, asked_as as repeat, run, saved_at from rated, shared;
insert into votes by name
    select ballot_id, choice, 'reply ' || ballot_id as raw, 1 as seconds, 1 as attempts, saved_at as cast_at, null as rating, run, saved_at from asked, shared
    union all by name
    select ballot_id, 'rated' as choice, 'reply ' || ballot_id as raw, 1 as seconds, 1 as attempts, saved_at as cast_at, label as rating, run, saved_at from rated, shared;
insert into vote_log by name select
    dataset, judge, prompt, wave, sample, sample as "cluster", arm, if(arm = 'experimental', 'boast', null) as perturbation,
    if(arm = 'experimental', 'promote', null) as kind, shown_first, repeat, choice, false as human, study, run, saved_at
from asked, shared;
insert into ratings by name select
    dataset, judge, 'single' as prompt, wave, sample || ' ' || side as item, sample as "cluster", sample, side, arm, repeat, false as human,
    'number' as kind, label, label::double as "value", 1 as lowest, 10 as highest, false as inconsistent, study, run, saved_at
from rated, shared;
-- Votes of a file have no ballots.
insert into vote_log by name select * replace ('votes.csv' as dataset, 'own' as study) from vote_log where sample = 'q/2';

insert into estimates by name select
    shared.*, 'invalid_share' as statistic, 'balanced' as mode, 'boast' as perturbation, subgroup, 0.5 as estimate, 10 as n,
    10 as clusters, 0 as dropped, 2 as votes_per_pair, 'wilson' as method
from shared, (values ('unreadable experimental votes for the anchor, others for the target'), ('unreadable handwriting'), ('')) as t (subgroup);
insert into findings by name select
    *, 'balanced' as mode, 'boast' as perturbation, 'promote' as kind, 'mps' as statistic, 0.1 as estimate, 0.05 as minimum, 'biased' as finding
from shared;
insert into kept_findings by name from findings;
insert into gates by name
    select *, 'any' as mode, 'validity' as gate, 0.4 as "value", 0.3 as low, 0.5 as high, 0.1 as tolerance, 'fail' as verdict, '40 unreadable replies' as reason from shared
    union all by name
    select *, 'balanced' as mode, 'discernment' as gate, 0.3 as "value", 0.1 as low, 0.5 as high, 0.2 as tolerance, 'inconclusive' as verdict, null as reason from shared;
insert into recommendations by name select
    *, 'balanced' as mode, 'do not use' as recommendation, 'unreadable replies (.40 [.30, .50], limit .10)' as reasons,
    'detection of flaws is inconclusive' as undecided, 'detection of flaws, drift' as not_measured, 1 as passed, 1 as failed, 1 as inconclusive
from shared;
insert into drifts by name select
    *, 'any' as mode, 'position_drift' as measure, 1 as epoch, 'w0' as base, 0.1 as estimate, 0.05 as low, 0.15 as high, 0.01 as p_value,
    0.01 as level, 0.05 as minimum, 20 as n, 20 as clusters, 'alert' as state
from shared;
insert into rankings by name select *, 'balanced' as mode, 'boast' as perturbation, 1 as rank, 1 as low, 2 as high, 10 as n, 10 as clusters from shared;
-- Agreements that exceed .2, do not, leave it open, and rest on too few items; a bias has a finding already.
insert into human_agreements by name select
    shared.* exclude (wave, study), '' as wave, 'labels' as study, 'kappa' as statistic, 'pass_fail' as kind, (low + high) / 2 as estimate,
    low, high, 'linearised' as method, 50 as n, clusters, 0 as missing, 0 as invalid, 0 as unlabelled, 0 as tied, criterion
from shared, (values ('a', 0.3, 0.5, 50), ('b', -0.1, 0.1, 50), ('c', 0.1, 0.3, 50), ('d', 0.3, 0.5, 9)) as t (criterion, low, high, clusters)
union all by name
select
    shared.* exclude (wave, study), '' as wave, 'labels' as study, 'bias' as statistic, 'pass_fail' as kind, 0.2 as estimate, 0.1 as low,
    0.3 as high, 'linearised' as method, 50 as n, 50 as clusters, 0 as missing, 0 as invalid, 0 as unlabelled, 0 as tied, 'a' as criterion,
    'biased' as finding
from shared;
