alter table shifts add column control_votes bigint;
alter table shifts add column sham_votes bigint;
alter table shifts add column replicate_votes bigint;
