-- A mart has the name recommendations, so that `show tables` listed it twice.
alter table recommendations rename to judge_recommendations;
