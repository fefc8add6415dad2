alter table vote_log add column anchor_author varchar;
alter table vote_log add column target_author varchar;
alter table vote_log add column anchor_length bigint;
alter table vote_log add column target_length bigint;
alter table vote_log add column anchor_markup bigint;
alter table vote_log add column target_markup bigint;
alter table vote_log add column human_score double;
alter table vote_log add column label_chance double;
