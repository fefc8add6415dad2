create table drifts (
    dataset varchar not null, judge varchar not null, prompt varchar not null,
    wave varchar not null, mode varchar not null, perturbation varchar, measure varchar not null,
    epoch bigint not null, base varchar not null, estimate double, low double, high double,
    p_value double, p_adjusted double, level double not null, minimum double not null,
    detectable double, n bigint not null, clusters bigint not null, state varchar not null,
    reason varchar, simulated boolean, study varchar not null, run varchar not null,
    saved_at timestamptz not null
);
