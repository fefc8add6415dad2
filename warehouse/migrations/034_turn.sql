-- The turn that is judged was only kept as a category.
alter table vote_log add column turn varchar;
alter table ratings add column turn varchar;
