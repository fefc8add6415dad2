-- Shifts by category have p-values adjusted in one family; those of earlier results are adjusted by `remeasure`.
create table category_shifts (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null, mode
    varchar not null, perturbation varchar not null, category varchar not null, kind varchar, simulated
    boolean, statistic varchar not null, unit varchar, estimate double, low double, high double, p_value
    double, p_adjusted double, adjustment varchar, n bigint not null, clusters bigint not null, dropped
    bigint not null, method varchar not null, reason varchar, study varchar not null, run varchar not
    null, saved_at timestamptz not null
);
insert into category_shifts by name
select
    dataset, judge, prompt, wave, mode, perturbation, subgroup as category, kind, simulated, statistic, unit,
    estimate, low, high, p_value, n, clusters, dropped, method,
    coalesce(reason, 'not adjusted yet: run voirdire remeasure') as reason, study, run, saved_at,
from estimates
where statistic = 'category_shift';
