alter table estimates add column subgroup varchar default '';
alter table estimates alter column subgroup set not null;
alter table estimates alter column subgroup drop default;
alter table estimates add column boot_low double;
alter table estimates add column boot_high double;
