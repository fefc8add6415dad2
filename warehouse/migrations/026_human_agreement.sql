-- Tables of a judge's agreement with people; earlier calibrations did not measure it.
create table human_agreements (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not
    null, criterion varchar, slice_column varchar, slice varchar, statistic varchar not null, kind
    varchar not null, estimate double, low double, high double, level double, method varchar not
    null, df double, hits bigint, n bigint not null, clusters bigint not null, missing bigint not
    null, invalid bigint not null, unlabelled bigint not null, tied bigint not null, p_value double,
    p_adjusted double, adjustment varchar, finding varchar, reason varchar, simulated boolean, study
    varchar not null, run varchar not null, saved_at timestamptz not null
);
create table confusions (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not
    null, criterion varchar, human_label varchar not null, judge_label varchar not null, items
    bigint not null, simulated boolean, study varchar not null, run varchar not null, saved_at
    timestamptz not null
);
create table differing_labels (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not
    null, criterion varchar, rank bigint not null, item varchar not null, human_label varchar not
    null, judge_label varchar not null, gap double not null, people bigint not null, human_share
    double not null, texts varchar not null, simulated boolean, study varchar not null, run varchar
    not null, saved_at timestamptz not null
);
