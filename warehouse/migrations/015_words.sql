-- What an answer's flaw does to a judge is a finding of its own; shifts over control and sham stand side by side.
-- Not by an update: DuckDB commits no transaction that updates rows of a table and then alters it.
alter table findings alter column finding set data type varchar using coalesce(reading, finding);
alter table findings drop column reading;
alter table findings add column control double;
alter table findings add column control_low double;
alter table findings add column control_high double;
alter table findings add column control_p double;
alter table findings add column sham_shift double;
alter table findings add column sham_shift_low double;
alter table findings add column sham_shift_high double;
alter table findings add column detected double;
alter table findings add column detected_low double;
alter table findings add column detected_high double;
alter table findings add column detected_by varchar;
alter table findings add column detects_at double;
