-- One row per study, prompt, wave, mode and perturbation: what is concluded of the jury of all judges.
-- As of a judge (tasks/conclude.py; over the control where shams are a handful, tasks/counting/primary_endpoint.py), without log-odds, which a jury has not; p is adjusted by Benjamini-Hochberg
-- over the jury's own perturbations with enough questions.
with limits as (select 0.05::double as minimum, 0.05 as alpha, 0.5 as detects, 0.2 as overlooks, 0.1 as floor),
asked as (
    select study, max(detects_at) as detects_at from findings group by all
),
beside as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation,
        max(estimate) filter (statistic = 'jury_mps') as over_control,
        max(p_value) filter (statistic = 'jury_mps') as control_p,
        max(estimate) filter (statistic = 'jury_sham_shift') as sham_shift,
        max(low) filter (statistic = 'jury_sham_shift') as sham_low,
        max(high) filter (statistic = 'jury_sham_shift') as sham_high,
        max(estimate) filter (statistic = 'jury_sham_floor') as sham_floor,
        max(low) filter (statistic = 'jury_detection_power') as power_low,
        max(high) filter (statistic = 'jury_detection_power') as power_high,
        bool_or(too_few is null) filter (statistic = 'jury_detection_power') as power_enough,
        max(low) filter (statistic = 'jury_detection_share') as share_low,
        max(high) filter (statistic = 'jury_detection_share') as share_high,
    from estimates
    where subgroup = '' and starts_with(statistic, 'jury_')
    group by all
),
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
known as (
    select
        *,
        estimate is not null and too_few is null and coalesce(half, p_value) is not null as known,
        coalesce(p_adjusted < alpha and abs(estimate) >= minimum, false) as moved,
        coalesce(abs(estimate) + half <= minimum, false) as still,
        coalesce(sham_floor >= floor and power_enough, false) and power_low is not null as stable,
        if(stable, power_low, share_low) as detected_low,
        if(stable, power_high, share_high) as detected_high,
        statistic <> 'jury_mps_sham' or coalesce(sign(over_control) = sign(estimate) and control_p < alpha, false) as agrees,
        coalesce(sham_low > 0 or sham_high < 0, false) as sham_moves,
    from adjusted
    left join beside using (study, dataset, judge, prompt, wave, mode, perturbation)
    left join asked using (study)
),
told as (
    select
        *,
        case
            when not known then null
            when kind = 'promote' then case when moved then 'biased' when still then 'no relevant bias' end
            when moved and estimate > 0 then 'rewards'
            when detected_low >= coalesce(detects_at, detects) then 'detects'
            when detected_high < overlooks then 'overlooks'
            when detected_low > 0 then 'detects some'
        end as first_word,
        coalesce(first_word in ('biased', 'rewards'), false) and not agrees as unconfirmed,
    from known
)
select
    study, dataset, judge, prompt, wave, mode, perturbation, kind, simulated, statistic,
    estimate as shift, low, high, p_value, p_adjusted, minimum,
    if(known, if(unconfirmed, 'inconclusive', coalesce(first_word, 'inconclusive')), null) as finding,
    n, clusters,
    case
        when unconfirmed and sham_moves then 'the sham itself moves this judge'
        when unconfirmed then 'not confirmed over the control'
        when first_word = 'no relevant bias' and sham_moves and abs(sham_shift) >= minimum / 2
            and statistic = 'jury_mps_sham'
            then 'beyond what any such edit does'
        when known then null
        else coalesce(if(estimate is null, null, too_few), reason, 'no interval and no p-value')
    end as reason,
from told
