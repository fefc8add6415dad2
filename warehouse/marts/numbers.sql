-- One row per estimate, with provenance.
-- votes and invalid_rate are of the judge's ballots on that perturbation, else on all; null for a jury.
-- seed: set if the method draws random numbers or a random order.
with
-- The change since the first wave is that since the baseline in the first epoch only, so where baselines are
-- known the changes since those stand in its place.
changes as (
    select
        d.study, d.run, 'drift' as family, d.measure as statistic, d.dataset, d.judge, d.prompt, d.wave, d.mode, d.perturbation,
        d.base as subgroup, e.unit, e.null_value, e.kind, d.simulated, d.estimate, d.low, d.high,
        d.interval_level as level, e.boot_low, e.boot_high,
        e.standard_error, e.df, d.p_value, e.hits, d.n, d.clusters, e.dropped,
        coalesce(e.votes_per_pair, w.votes_per_pair) as votes_per_pair,
        d.method, d.reason, d.floor, coalesce(d.seed, e.seed) as seed, d.p_adjusted, d.adjustment, d.epoch,
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
    from estimates
    where family is distinct from 'drift' or (study, dataset, judge, prompt, wave) not in (
        select (study, dataset, judge, prompt, wave) from drifts
    )
    union all by name
    from changes
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
audited as (select distinct study from runs where flow <> 'measure'),
-- A file of votes has only the prompt's name.
texts as (
    select study, prompt, digest as prompt_digest from prompts, audited
),
concluded as (
    select
        study, dataset, judge, prompt, wave, mode, coalesce(perturbation, '') as about, statistic, '' as subgroup,
        p_adjusted, adjustment, finding, p_holm, p_by, e_rejected, shrunk, shrunk_error,
    from findings
    union all by name
    select
        study, dataset, judge, prompt, wave, mode, perturbation as about, statistic, other as subgroup,
        p_holm as p_adjusted, adjustment, finding,
    from judge_pairs
    union all by name
    select
        study, dataset, judge, prompt, wave, mode, perturbation as about, statistic,
        coalesce(left_out, '') as subgroup, p_adjusted, adjustment, finding,
    from jury_conclusions
)
select
    study, family, statistic, dataset, judge, nullif(subgroup, '') as subgroup, prompt, wave, mode,
    perturbation, kind, simulated, estimate, low, high, level, boot_low, boot_high, standard_error, df,
    p_value, coalesce(m.p_adjusted, c.p_adjusted) as p_adjusted, coalesce(m.adjustment, c.adjustment) as adjustment,
    finding, p_holm, p_by, e_rejected, shrunk, shrunk_error,
    hits, n, clusters, dropped, votes_per_pair, votes, invalid_rate, design,
    floor, excluded, coalesce(m.epoch, w.epoch) as epoch,
    seed, study_seed, code_version, prompt_digest, method, reason, unit, null_value,
from (select *, coalesce(perturbation, '') as about from measured) as m
left join ballots using (study, dataset, judge, prompt, wave, about)
left join (select study, dataset, judge, prompt, wave, design, epoch from waves) as w
    using (study, dataset, judge, prompt, wave)
left join concluded as c using (study, dataset, judge, prompt, wave, mode, about, statistic, subgroup)
left join (
    select
        run, code_version, if(flow = 'measure', null, parameters ->> '$.seed')::bigint as study_seed,
    from runs
) using (run)
left join texts using (study, prompt)
