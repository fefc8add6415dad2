-- One row per study, prompt, wave, mode and perturbation: what is concluded of the jury of all judges.
-- As of a judge (tasks/conclude.py; over the control where shams are a handful, tasks/_endpoint.py), without log-odds, which a jury has not; p is adjusted by Benjamini-Hochberg
-- over the jury's own perturbations of ten clusters or more.
with limits as (select 10 as fewest, 0.05::double as minimum, 0.05 as alpha),
counted as (
    select
        *,
        max(if(statistic = 'jury_mps_sham', clusters, null)) over cell as sham,
        max(if(statistic = 'jury_mps', clusters, null)) over cell as control,
    from estimates, limits
    where statistic in ('jury_mps', 'jury_mps_sham') and subgroup = ''
    window cell as (partition by study, dataset, judge, prompt, wave, mode, perturbation)
),
primaries as (
    select *
    from counted
    where statistic = if(
        sham is not null and (sham >= fewest or coalesce(control, 0) < fewest), 'jury_mps_sham', 'jury_mps'
    )
),
tested as (
    select *, if(clusters >= fewest, p_value, null) as own_p
    from primaries
),
ranked as (
    select
        *,
        count(own_p) over (partition by study, dataset, judge, prompt, wave, mode) as tests,
        row_number() over (
            partition by study, dataset, judge, prompt, wave, mode order by own_p nulls last, perturbation
        ) as place,
        greatest(clusters - 1, 1)::double as df,
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
                1.644853627 + 1.523769 / df + 1.420203 / df ** 2
                + 0.983002 / df ** 3 + 0.433876 / df ** 4
            ),
            greatest(high - estimate, estimate - low)
        ) as half,
    from ranked
),
told as (
    select
        *,
        estimate is not null and clusters >= fewest and coalesce(half, p_value) is not null as known,
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
        when estimate is not null and clusters < fewest then 'fewer than ' || fewest || ' independent questions'
        else coalesce(reason, 'no interval and no p-value')
    end as reason,
from read
