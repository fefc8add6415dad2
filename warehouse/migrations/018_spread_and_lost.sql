-- Votes of an audit get the category of their question; votes of a file have one if the file says so.
alter table vote_log add column category varchar;
update vote_log set category = questions.category
from questions where questions.question_id = vote_log.cluster and questions.category is not null;
alter table findings add column shift_spread double;
alter table findings add column shift_spread_low double;
alter table findings add column shift_spread_high double;
alter table findings add column moved_p double;
alter table findings add column category_p double;
alter table findings add column lost_difference double;
alter table findings add column lost_over varchar;
alter table findings add column lost_p double;
alter table findings add column lost_finding varchar;
