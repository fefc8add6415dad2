alter table estimates add column df double;
alter table estimates add column too_few varchar;
-- Degrees of freedom of saved results are unknown until they are computed again; their clusters are not.
alter table estimates alter column too_few set data type varchar
    using if(clusters < 10, 'fewer than 10 independent questions', null);
