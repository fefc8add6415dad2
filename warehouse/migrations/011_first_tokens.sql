alter table votes add column first_token varchar;
alter table votes add column first_probability double;
