-- An alert starts a new baseline, to which later waves are compared: the gate says which change that was.
alter table gates add column earlier_change varchar;
