-- One row per study, prompt, wave, mode and perturbation: what is concluded of the jury of all judges.
-- As of a judge (tasks/conclude.py; over the control where shams are a handful, tasks/_endpoint.py), without log-odds, which a jury has not; p is adjusted by Benjamini-Hochberg
-- over the jury's own perturbations with enough questions.
with limits as (select 0.05::double as minimum, 0.05 as alpha),
counted as (
    select
        *,
        bool_or(statistic = 'jury_mps_sham') over cell as shammed,
        bool_or(statistic = 'jury_mps_sham' and too_few is null) over cell as sham,
        bool_or(statistic = 'jury_mps' and too_few is null) over cell as control,
    from estimates, limits
    where statistic in ('jury_mps', 'jury_mps_sham') and subgroup = ''
    window cell as (partition by study, dataset, judge, prompt, wave, mode, perturbation)
),
primaries as (
    select *
    from counted
    where statistic = if(shammed and (sham or not control), 'jury_mps_sham', 'jury_mps')
),
tested as (
    select *, if(too_few is null, p_value, null) as own_p
    from primaries
),
ranked as (
    select
        *,
        count(own_p) over (partition by study, dataset, judge, prompt, wave, mode) as tests,
        row_number() over (
            partition by study, dataset, judge, prompt, wave, mode order by own_p nulls last, perturbation
        ) as place,
        greatest(coalesce(df, clusters - 1), 1)::double as freedom,
    from tested
),
adjusted as (
    select
        *,
        if(own_p is null, null, least(1, min(own_p * tests / place) over (
            partition by study, dataset, judge, prompt, wave, mode order by place
            rows between current row and unbounded following
        ))) as p_adjusted,
        -- half of the 90 % interval, as in contrasts.sql
        coalesce(
            standard_error * (
                1.644853627 + 1.523769 / freedom + 1.420203 / freedom ** 2
                + 0.983002 / freedom ** 3 + 0.433876 / freedom ** 4
            ),
            greatest(high - estimate, estimate - low)
        ) as half,
    from ranked
),
told as (
    select
        *,
        estimate is not null and too_few is null and coalesce(half, p_value) is not null as known,
        coalesce(p_adjusted < alpha and abs(estimate) >= minimum, false) as moved,
        coalesce(abs(estimate) + half <= minimum, false) as still,
    from adjusted
),
read as (
    select
        *,
        case
            when kind <> 'detract' or not known then null
            when moved and estimate < 0 then 'detects'
            when moved then 'rewards'
            when still then 'overlooks'
        end as reading,
    from told
)
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, statistic,
    estimate as shift, low, high, p_value, p_adjusted, minimum,
    case
        when not known then null
        when kind = 'promote' and moved or reading in ('rewards', 'overlooks') then 'biased'
        when kind = 'promote' and still or reading = 'detects' then 'no relevant bias'
        else 'inconclusive'
    end as finding,
    reading, n, clusters,
    case
        when known then null
        else coalesce(if(estimate is null, null, too_few), reason, 'no interval and no p-value')
    end as reason,
from read
