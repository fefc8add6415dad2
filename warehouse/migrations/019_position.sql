-- Position bias is a finding of a judge, not of a perturbation.
alter table findings alter column perturbation drop not null;
