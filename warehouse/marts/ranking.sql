-- One row per study, judge, prompt, wave, mode and perturbation: rank with interval, and tier.
-- n and clusters count the samples shared by all ranked judges. A rank without an interval is null: reason says why.
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, quantity,
    rank, low, high, tier, n, clusters, reason,
from rankings
