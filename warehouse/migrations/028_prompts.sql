-- Pairs of judges name the prompt of the other: two prompts of one judge are compared as well.
create table pairs_with_prompts (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    other varchar not null, other_prompt varchar not null, mode varchar not null,
    perturbation varchar not null, kind varchar, simulated boolean, statistic varchar not null,
    contrast double, low double, high double, p_value double, p_holm double, adjustment varchar,
    minimum double not null, finding varchar, judge_value double, other_value double,
    n bigint not null, clusters bigint not null, dropped bigint not null,
    votes_per_pair bigint not null, method varchar not null, reason varchar, study varchar not null,
    run varchar not null, saved_at timestamptz not null
);
insert into pairs_with_prompts by name select *, prompt as other_prompt from judge_pairs;
drop table judge_pairs;
alter table pairs_with_prompts rename to judge_pairs;
