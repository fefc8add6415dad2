-- Conclusions beyond findings are tables now, which marts select from. Those of results that were saved before
-- are made by the next audit, or by `voirdire remeasure STUDY`.
create table excluded_judges (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    simulated boolean, excluded boolean, reasons varchar, position_gap double, position_gap_low double,
    position_gap_high double, position_gap_bound double, position_gap_limit double not null, tie_rate
    double, tie_rate_low double, tie_rate_high double, tie_rate_bound double, tie_rate_limit double not
    null, invalid_rate double, invalid_rate_low double, invalid_rate_high double, invalid_rate_bound
    double, invalid_rate_limit double not null, study varchar not null, run varchar not null, saved_at
    timestamptz not null
);
create table judge_pairs (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    other varchar not null, mode varchar not null, perturbation varchar not null, kind varchar,
    simulated boolean, statistic varchar not null, contrast double, low double, high double, p_value
    double, p_holm double, minimum double not null, finding varchar, judge_value double, other_value
    double, n bigint not null, clusters bigint not null, dropped bigint not null, votes_per_pair bigint
    not null, method varchar not null, reason varchar, study varchar not null, run varchar not null,
    saved_at timestamptz not null
);
create table jury_conclusions (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    mode varchar not null, perturbation varchar not null, kind varchar, simulated boolean, statistic
    varchar not null, shift double, low double, high double, p_value double, p_adjusted double, minimum
    double not null, finding varchar, n bigint not null, clusters bigint not null, reason varchar, study
    varchar not null, run varchar not null, saved_at timestamptz not null
);
create table gates (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    mode varchar not null, gate varchar not null, perturbation varchar, simulated boolean, value double,
    low double, high double, tolerance double, verdict varchar not null, margin double, reason varchar,
    study varchar not null, run varchar not null, saved_at timestamptz not null
);
