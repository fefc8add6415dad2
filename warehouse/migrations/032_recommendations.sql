-- Each judge has a recommendation; earlier results get theirs by `voirdire remeasure`.
create table recommendations (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null, mode
    varchar not null, simulated boolean, recommendation varchar not null, reasons varchar, undecided varchar,
    more_questions bigint, not_measured varchar, passed bigint not null, failed bigint not null,
    inconclusive bigint not null, study varchar not null, run varchar not null, saved_at timestamptz not
    null
);
