-- One row per study and ballot whose reply has no verdict: what was shown, and the reply verbatim.
from mart.transcript
where choice in ('invalid', 'ambiguous', 'abstain')
