-- Ratings read from replies, and context of questions; earlier votes compared pairs.
alter table votes add column rating varchar;
alter table questions add column context varchar;
