-- What the verdicts of ranked judges measure was worded by queries only.
alter table rankings add column quantity varchar;
