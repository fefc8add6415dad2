create table batches (
    batch varchar not null, judge varchar not null, provider varchar not null,
    provider_batch varchar, run varchar not null, state varchar not null, dropped_params varchar,
    error varchar, created_at timestamptz not null, ended_at timestamptz
);
create table batched_ballots (
    batch varchar not null, ballot_id varchar not null, run varchar not null,
    saved_at timestamptz not null
);
