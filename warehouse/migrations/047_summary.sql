-- Queries and texts worded recommendations each in their own way, and found the change that a gate shows by its number.
alter table judge_recommendations add column summary varchar;
alter table judge_recommendations add column list_order bigint;
alter table gates add column drift_mode varchar;
alter table gates add column drift_perturbation varchar;
