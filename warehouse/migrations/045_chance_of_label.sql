-- The probability that people were asked about a single answer.
alter table ratings add column label_chance double;
