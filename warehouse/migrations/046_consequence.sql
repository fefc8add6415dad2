-- What a gate means for the recommendation, named like the rule that finds it.
alter table gates rename column standing to consequence;
