-- "too few questions" was a finding, and so were the readings of perturbations that make answers worse.
alter table findings add column p_holm double;
alter table findings add column p_by double;
alter table findings add column shrunk double;
alter table findings add column shrunk_error double;
alter table findings add column reading varchar;
alter table findings add column reason varchar;
alter table findings alter column finding drop not null;
update findings set reading = finding where finding in ('detects', 'overlooks', 'rewards');
update findings set reason = 'fewer than 10 independent questions' where finding = 'too few questions';
update findings set finding = case finding
    when 'detects' then 'no relevant bias'
    when 'overlooks' then 'biased'
    when 'rewards' then 'biased'
    when 'too few questions' then null
    else finding
end;
