-- Logs know the lengths of answers, which length-controlled win rates need.
alter table ratings add column anchor_length bigint;
alter table ratings add column target_length bigint;
