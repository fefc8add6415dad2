-- One row per study, judge, prompt, wave, mode, gate and perturbation (null: of the whole judge): passed or not.
with gates as (
    -- PF is -2 PG where nobody ties, and |PG| .15 excludes a judge (methods, sections 5 and 15).
    select
        study, dataset, judge, prompt, wave, mode, 'position' as gate, null as perturbation, simulated,
        estimate as value, low, high, if(statistic = 'position_gap', .15, .30) as tolerance,
        greatest(low, -high) > tolerance as failed, greatest(high, -low) <= tolerance as passed,
        1 - greatest(high, -low) / tolerance as margin, reason,
    from estimates
    where subgroup = '' and perturbation is null
        and statistic in ('position_gap', 'preference_fairness')
    qualify row_number() over (
        partition by study, dataset, judge, prompt, wave, mode order by statistic
    ) = 1
    union all
    select
        study, dataset, judge, prompt, wave, mode, 'validity', null, simulated,
        estimate, low, high, .10 as tolerance,
        low > tolerance, high <= tolerance, 1 - high / tolerance, reason,
    from estimates
    where statistic = 'invalid_rate' and perturbation is null and subgroup = ''
    union all
    select
        study, dataset, judge, prompt, wave, mode, 'bias', perturbation, simulated,
        estimate, low, high, minimum,
        finding = 'biased', finding = 'no relevant bias',
        if(kind = 'promote', 1 - greatest(high, -low) / minimum, -high / minimum - 1), reason,
    from findings
)
select
    study, dataset, judge, prompt, wave, mode, gate, perturbation, simulated,
    value, low, high, tolerance,
    case when failed then 'fail' when passed then 'pass' else 'inconclusive' end as verdict,
    margin, reason,
from gates
