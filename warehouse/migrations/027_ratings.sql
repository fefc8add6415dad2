-- Ratings of single answers, and the unit of each finding; earlier studies had none.
create table ratings (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not
    null, item varchar not null, cluster varchar not null, criterion varchar, sample varchar,
    side varchar, arm varchar not null, perturbation varchar, perturbation_kind varchar, repeat
    bigint not null, human boolean not null, kind varchar not null, label varchar, value
    double, lowest double, highest double, weight double, passes_at double, human_value double,
    inconsistent boolean not null, invalid varchar, cached boolean, simulated boolean, category
    varchar, correct varchar, anchor_author varchar, target_author varchar, anchor_header bigint,
    target_header bigint, anchor_list bigint, target_list bigint, anchor_bold bigint,
    target_bold bigint, study varchar not null, run varchar not null, saved_at timestamptz not
    null
);
alter table findings add column unit varchar;
alter table kept_findings add column unit varchar;
