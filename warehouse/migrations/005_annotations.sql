alter table vote_log add column label varchar;
alter table vote_log add column human boolean;
create table annotations (
    dataset varchar not null, item varchar not null, cluster varchar not null, aspect varchar,
    annotator varchar not null, prompt varchar, wave varchar not null, label varchar not null,
    value double, inconsistent boolean not null, votes bigint not null, human boolean not null,
    simulated boolean, study varchar not null, run varchar not null, saved_at timestamptz not null
);
