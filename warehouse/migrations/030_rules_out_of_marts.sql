-- What marts decided, or took from other rows, is a column of the results. DuckDB cannot change the values of a
-- table that the same transaction alters, so each table is made anew.
create table kept as
select *, items / sum(items) over (
    partition by study, dataset, judge, prompt, wave, criterion, human_label
) as share_of_human_label
from confusions;
drop table confusions;
create table confusions (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    criterion varchar, human_label varchar not null, judge_label varchar not null, items bigint not null,
    share_of_human_label double not null, simulated boolean, study varchar not null, run varchar not null,
    saved_at timestamptz not null
);
insert into confusions by name from kept;
drop table kept;

create table kept as
select *, (study, dataset, judge, prompt, wave) in (
    select (study, dataset, judge, prompt, wave) from drifts
) as since_baseline
from waves;
drop table waves;
create table waves (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null, design
    varchar not null, epoch bigint, since_baseline boolean not null, study varchar not null, run varchar not
    null, saved_at timestamptz not null
);
insert into waves by name from kept;
drop table kept;

create table kept as
select
    d.* replace (coalesce(d.seed, e.seed) as seed), e.kind, e.unit, e.null_value, e.boot_low, e.boot_high,
    e.standard_error, e.df, e.dropped, e.votes_per_pair,
from drifts as d
left join estimates as e
    on e.study = d.study and e.dataset = d.dataset and e.judge = d.judge and e.prompt = d.prompt
    and e.wave = d.wave and e.mode = d.mode and e.perturbation is not distinct from d.perturbation
    and e.statistic = d.measure and e.subgroup = d.base;
drop table drifts;
create table drifts (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null, mode
    varchar not null, perturbation varchar, measure varchar not null, epoch bigint not null, base varchar
    not null, estimate double, low double, high double, interval_level double, method varchar, p_value
    double, p_adjusted double, adjustment varchar, e_value double, e_rejected boolean, level double not
    null, minimum double not null, detectable double, n bigint not null, clusters bigint not null, state
    varchar not null, floor varchar, kind varchar, unit varchar, null_value double, boot_low double,
    boot_high double, standard_error double, df double, dropped bigint, votes_per_pair bigint, seed bigint,
    reason varchar, simulated boolean, study varchar not null, run varchar not null, saved_at timestamptz
    not null
);
insert into drifts by name from kept;
drop table kept;

-- A file of votes is not drawn with a seed.
update runs set parameters = json_merge_patch(parameters, '{"seed": null}')::varchar where flow = 'measure';
