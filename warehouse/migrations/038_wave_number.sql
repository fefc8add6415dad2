-- The names of waves do not tell their order.
alter table drifts add column wave_number bigint;
