-- Saved votes keep their count of all markup: which of it was what is not known of them.
alter table vote_log add column anchor_header bigint;
alter table vote_log add column target_header bigint;
alter table vote_log add column anchor_list bigint;
alter table vote_log add column target_list bigint;
alter table vote_log add column anchor_bold bigint;
alter table vote_log add column target_bold bigint;
