-- Store conclusions as tables: ranks, means over judges, votes of people, findings without excluded judges.
-- They are filled when a study is measured again. Results saved before the upgrade lack them, so the time of
-- the upgrade is kept.
alter table meta add column upgraded_at timestamptz;
update meta set upgraded_at = now();

alter table jury_conclusions add column cost_usd double;

create table kept_findings (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    mode varchar not null, perturbation varchar, kind varchar not null, statistic varchar not null,
    estimate double, low double, high double, minimum double not null, control double, control_low double,
    control_high double, control_p double, sham_shift double, sham_shift_low double, sham_shift_high double,
    p_value double, p_adjusted double, adjustment varchar, p_holm double, p_by double, e_value double,
    e_rejected boolean, shrunk double, shrunk_error double, finding varchar, detected double,
    detected_low double, detected_high double, detected_by varchar, shift_spread double,
    shift_spread_low double, shift_spread_high double, moved_p double, category_p double,
    lost_difference double, lost_over varchar, lost_p double, lost_finding varchar, detects_at double,
    reason varchar, simulated boolean, study varchar not null, run varchar not null,
    saved_at timestamptz not null
);
create table panel_means (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    mode varchar not null, perturbation varchar not null, votes_per_pair bigint not null,
    statistic varchar not null, without_excluded boolean not null, kind varchar, simulated boolean,
    judges bigint not null, left_out varchar, estimate double, low double, high double, n bigint,
    clusters bigint, reason varchar, study varchar not null, run varchar not null,
    saved_at timestamptz not null
);
create table rankings (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    mode varchar not null, perturbation varchar not null, kind varchar, simulated boolean, rank double,
    low double, high double, tier varchar, n bigint not null, clusters bigint not null, reason varchar,
    study varchar not null, run varchar not null, saved_at timestamptz not null
);
create table voters (
    dataset varchar not null, judge varchar not null, arm varchar not null, perturbation varchar,
    votes bigint not null, too_fast bigint, not_familiar bigint not null, median_seconds double,
    counted bigint not null, study varchar not null, run varchar not null, saved_at timestamptz not null
);
