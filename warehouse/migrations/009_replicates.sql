alter table shifts add column replicate varchar;
alter table shifts add column has_replicate boolean default false;
alter table shifts alter column has_replicate set not null;
alter table shifts alter column has_replicate drop default;
