-- Votes of an audit get the category of their question; votes of a file have one if the file says so.
alter table vote_log add column category varchar;
update vote_log set category = questions.category
from questions where questions.question_id = vote_log.cluster and questions.category is not null;
