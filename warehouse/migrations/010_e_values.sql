alter table findings add column e_value double;
alter table findings add column e_rejected boolean;
alter table drifts add column e_value double;
alter table drifts add column e_rejected boolean;
