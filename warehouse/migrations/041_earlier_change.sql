-- An alert starts a new baseline for later waves: the gate says which change raised it.
alter table gates add column earlier_change varchar;
