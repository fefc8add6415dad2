-- One row per estimate, with provenance.
-- votes and invalid_rate are of the judge's ballots on that perturbation, else on all; null for a jury.
-- seed: set if the method draws random numbers or a random order.
with changes as (
    select
        study, run, 'drift' as family, measure as statistic, dataset, judge, prompt, wave, mode, perturbation,
        base as subgroup, unit, null_value, kind, simulated, estimate, low, high, interval_level as level,
        boot_low, boot_high, standard_error, df, p_value, n, clusters, dropped, votes_per_pair, method, reason,
        floor, seed, epoch,
    from drifts
),
measured as (
    select e.*, w.epoch
    from estimates as e left join waves as w using (study, dataset, judge, prompt, wave)
    -- Changes since the baseline of an epoch stand in the place of those since the first wave.
    where e.family is distinct from 'drift' or w.since_baseline is distinct from true
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
        study, dataset, judge, prompt, wave, mode, perturbation as about, statistic,
        if(other_prompt = prompt, other, other || ' / ' || other_prompt) as subgroup,
        p_holm as p_adjusted, adjustment, finding, p_holm,
    from judge_pairs
    union all by name
    select
        study, dataset, judge, prompt, wave, mode, perturbation as about, statistic,
        coalesce(left_out, '') as subgroup, p_adjusted, adjustment, finding,
    from jury_conclusions
    union all by name
    select
        study, dataset, judge, prompt, wave, mode, coalesce(perturbation, '') as about, measure as statistic,
        base as subgroup, p_adjusted, adjustment,
    from drifts
    union all by name
    select
        study, dataset, judge, prompt, wave, mode, perturbation as about, statistic, category as subgroup,
        p_adjusted, adjustment,
    from category_shifts
)
select
    study, family, statistic, dataset, judge, nullif(subgroup, '') as subgroup, prompt, wave, mode,
    perturbation, kind, simulated, estimate, low, high, level, boot_low, boot_high, standard_error, df,
    p_value, p_adjusted, adjustment, finding, p_holm, p_by, e_rejected, shrunk, shrunk_error,
    hits, n, clusters, dropped, votes_per_pair, votes, invalid_rate, design,
    floor, excluded, epoch,
    seed, study_seed, code_version, prompt_digest, method, reason, unit, null_value,
from (select *, coalesce(perturbation, '') as about from measured) as m
left join ballots using (study, dataset, judge, prompt, wave, about)
left join (select study, dataset, judge, prompt, wave, design from waves) as w
    using (study, dataset, judge, prompt, wave)
left join concluded as c using (study, dataset, judge, prompt, wave, mode, about, statistic, subgroup)
left join (
    select run, code_version, (parameters ->> '$.seed')::bigint as study_seed from runs
) using (run)
left join texts using (study, prompt)
