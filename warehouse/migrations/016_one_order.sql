alter table verdicts add column shown_first varchar;
alter table shifts add column shown_first varchar;
