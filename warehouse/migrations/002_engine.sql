create table claims (ballot_id varchar not null, run varchar not null);
alter table judges add column system varchar default '';
alter table judges alter column system set not null;
alter table judges alter column system drop default;
alter table prompts add column verdict varchar default 'tag';
alter table prompts alter column verdict set not null;
alter table prompts alter column verdict drop default;
alter table votes add column dropped_params varchar;
alter table runs add column seen_at timestamptz;
