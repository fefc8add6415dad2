alter table estimates add column df double;
alter table estimates add column too_few varchar;
-- Degrees of freedom of saved results are unknown until they are computed again; their clusters are not.
update estimates set too_few = 'fewer than 10 independent questions' where clusters < 10;
