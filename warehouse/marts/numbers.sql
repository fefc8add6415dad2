-- One row per estimate: every number with its family and all that it rests on.
-- votes and invalid_rate are of the judge's ballots on that perturbation, else on all; null for a jury. A seed is
-- there where something is drawn, or questions are taken in turn.
with
-- The change since the first wave is that since the baseline in the first epoch only, so where baselines are
-- known the changes since those stand in its place.
changes as (
    select
        d.study, d.run, 'drift' as family, d.measure as statistic, d.dataset, d.judge, d.prompt, d.wave, d.mode, d.perturbation,
        d.base as subgroup, e.unit, e.null_value, e.kind, d.simulated, d.estimate, d.low, d.high,
        if(d.low is null, null, .95) as level, e.boot_low, e.boot_high,
        e.standard_error, e.df, d.p_value, e.hits, d.n, d.clusters, e.dropped,
        coalesce(e.votes_per_pair, w.votes_per_pair) as votes_per_pair,
        case
            when d.measure in ('verdict_drift', 'text_drift', 'token_drift')
                then if(d.p_value is null, 'none', 'permutation of repeats within prompts')
            else coalesce(e.method, if(d.low is null, 'none', 'paired cluster t'))
        end as method,
        d.reason, d.floor, coalesce(d.seed, e.seed) as seed, d.p_adjusted as drift_p, d.epoch as drift_epoch,
    from drifts as d
    left join estimates as e
        on e.study = d.study and e.dataset = d.dataset and e.judge = d.judge and e.prompt = d.prompt
        and e.wave = d.wave and e.mode = d.mode and e.perturbation is not distinct from d.perturbation
        and e.statistic = d.measure and e.subgroup = d.base
    left join (
        select study, dataset, judge, prompt, wave, mode(votes_per_pair) as votes_per_pair
        from estimates where statistic = 'valid_rate' and perturbation is null
        group by all
    ) as w
        on w.study = d.study and w.dataset = d.dataset and w.judge = d.judge and w.prompt = d.prompt
        and w.wave = d.wave
),
measured as (
    select
        study, run, family, statistic, dataset, judge, prompt, wave, mode, perturbation, subgroup, unit, null_value, kind, simulated,
        estimate, low, high, level, boot_low, boot_high, standard_error, df, p_value, hits, n, clusters,
        dropped, votes_per_pair, method, reason, floor, seed, null::double as drift_p, null::bigint as drift_epoch,
    from estimates
    where statistic not in (
        'mps_drift', 'dasr_drift', 'position_drift', 'agreement_drift', 'verdict_drift'
    ) or (study, dataset, judge, prompt, wave) not in (
        select (study, dataset, judge, prompt, wave) from drifts
    )
    union all
    select * from changes
),
ballots as (
    select
        study, dataset, judge, prompt, wave, coalesce(perturbation, '') as about,
        max(hits) filter (statistic = 'valid_rate') as votes,
        max(estimate) filter (statistic = 'invalid_rate') as invalid_rate,
    from estimates
    where statistic in ('valid_rate', 'invalid_rate') and subgroup = ''
    group by all
),
-- Balanced: both orders of each pair are planned alike often, so that each cancels its own number.
designs as (
    select
        study, dataset, judge, prompt, wave,
        if(sum(if(shown_first = 'anchor', 1, -1) * hash(sample, arm, perturbation)::hugeint) = 0, 'balanced', 'random')
            as design,
    from vote_log
    group by all
),
-- The wave of a confirmed alert is the baseline of the next epoch.
epochs as (
    select study, dataset, judge, prompt, wave, max(epoch) as epoch
    from (
        select study, dataset, judge, prompt, wave, epoch + (state = 'alert')::integer as epoch from drifts
        union all
        select study, dataset, judge, prompt, base, epoch from drifts
    )
    group by all
),
audited as (select distinct study from runs where flow <> 'measure'),
-- Of a file of votes a prompt is but a name.
texts as (
    select study, prompt, left(sha256(concat_ws(chr(31), kind, verdict, system, "user")), 12) as prompt_digest
    from prompts, audited
),
adjusted as (
    select
        study, dataset, judge, prompt, wave, mode, coalesce(perturbation, '') as about, statistic, '' as subgroup,
        p_adjusted,
        if(kind = 'position', 'Benjamini-Hochberg, all judges', 'Benjamini-Hochberg, all cells (F1)') as adjustment,
        finding,
        p_holm, p_by, e_rejected, shrunk, shrunk_error,
    from findings
    union all by name
    select
        study, dataset, judge, prompt, wave, mode, perturbation as about, statistic, other as subgroup,
        p_holm as p_adjusted, 'Holm, all pairs of judges (F2)' as adjustment, finding,
    from mart.contrasts
    union all by name
    select
        study, dataset, judge, prompt, wave, mode, perturbation as about, statistic, '' as subgroup,
        p_adjusted, 'Benjamini-Hochberg, the jury''s perturbations' as adjustment, finding,
    from mart.jury_findings
),
told as (
    select
        *, coalesce(p_adjusted, drift_p) as p_told, coalesce(drift_epoch, epoch) as epoch_told,
        case
            when drift_p is not null then 'Holm, all cells of the wave (F4)'
            when p_adjusted is not null then adjustment
        end as adjusted_by,
        if(statistic in ('asr', 'asr_bounds', 'sham_floor', 'dasr'), excluded, null) as left_out,
    from (select *, coalesce(perturbation, '') as about from measured)
    left join ballots using (study, dataset, judge, prompt, wave, about)
    left join designs using (study, dataset, judge, prompt, wave)
    left join epochs using (study, dataset, judge, prompt, wave)
    left join adjusted using (study, dataset, judge, prompt, wave, mode, about, statistic, subgroup)
    left join (select study, dataset, judge, prompt, wave, excluded from mart.exclusions)
        using (study, dataset, judge, prompt, wave)
    left join (
        select
            run, code_version, if(flow = 'measure', null, parameters ->> '$.seed')::bigint as study_seed,
        from runs
    ) using (run)
    left join texts using (study, prompt)
)
select
    study, family, statistic, dataset, judge, nullif(subgroup, '') as subgroup, prompt, wave, mode,
    perturbation, kind, simulated, estimate, low, high, level, boot_low, boot_high, standard_error, df,
    p_value, p_told as p_adjusted, adjusted_by as adjustment, finding, p_holm, p_by, e_rejected, shrunk, shrunk_error,
    hits, n, clusters, dropped, votes_per_pair, votes, invalid_rate, design,
    floor, left_out as excluded, epoch_told as epoch,
    seed, study_seed, code_version, prompt_digest, method, reason, unit, null_value,
from told
