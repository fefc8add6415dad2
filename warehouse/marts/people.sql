-- One row per study, judge who is a person, and arm and perturbation: votes, excluded votes, and why.
-- An invalid vote of the booth whose seconds are known came too fast. A measured file records neither the reason nor
-- the seconds, so both are null. Abstained is "Not familiar".
select study, dataset, judge, arm, perturbation, votes, counted, too_fast, not_familiar, median_seconds,
from voters
