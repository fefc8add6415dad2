-- Of too few questions more decide, so this gate does not stay open.
alter table judge_recommendations add column too_few varchar;
