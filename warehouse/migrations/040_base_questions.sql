-- More questions decide drift only if its baseline has them.
alter table drifts add column base_questions bigint;
