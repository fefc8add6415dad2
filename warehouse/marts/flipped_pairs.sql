-- One row per study, judge, prompt, wave, mode, perturbation and sample on which the perturbation changed the verdict.
-- A pass/fail judge has a row per criterion and repeat; a changed grade is no changed verdict.
select * exclude (flipped, moved)
from mart.compared_pairs
where flipped
