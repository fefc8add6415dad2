-- What statistics declare, and the seeds of what is drawn: known once results are computed again.
alter table estimates add column unit varchar;
alter table estimates add column null_value double;
alter table estimates add column floor varchar;
alter table estimates add column seed bigint;
alter table drifts add column floor varchar;
alter table drifts add column seed bigint;
