create table alt_tests (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not
    null, metric varchar not null, epsilon double not null, epsilon_kind varchar not null, asked
    boolean not null, test varchar not null, winning_rate double, passed boolean,
    advantage_probability double, low double, high double, level double, method varchar not
    null, human_advantage_probability double, tied double, annotators bigint not null, n bigint
    not null, dropped bigint not null, unreadable bigint not null, reason varchar, simulated
    boolean, study varchar not null, run varchar not null, saved_at timestamptz not null
);
create table advantages (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not
    null, metric varchar not null, epsilon double not null, epsilon_kind varchar not null, asked
    boolean not null, annotator varchar not null, n bigint not null, better bigint not null,
    worse bigint not null, advantage_probability double, low double, high double, level double,
    method varchar not null, human_advantage_probability double, tied double, test varchar,
    p_value double, p_value_t double, p_value_score double, p_adjusted double, rejected boolean,
    unreadable bigint not null, reason varchar, simulated boolean, study varchar not null, run
    varchar not null, saved_at timestamptz not null
);
