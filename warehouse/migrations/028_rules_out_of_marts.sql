-- What marts decided or took from other rows is a column of the results.
alter table confusions add column share_of_human_label double default 1;
alter table confusions alter column share_of_human_label set not null;
alter table confusions alter column share_of_human_label drop default;
update confusions as c set share_of_human_label = c.items / t.items
from (
    select study, dataset, judge, prompt, wave, criterion, human_label, sum(items) as items
    from confusions group by all
) as t
where (c.study, c.dataset, c.judge, c.prompt, c.wave, c.human_label)
    = (t.study, t.dataset, t.judge, t.prompt, t.wave, t.human_label)
    and c.criterion is not distinct from t.criterion;

alter table waves add column since_baseline boolean default false;
alter table waves alter column since_baseline set not null;
alter table waves alter column since_baseline drop default;
update waves set since_baseline = (study, dataset, judge, prompt, wave) in (
    select (study, dataset, judge, prompt, wave) from drifts
);

alter table drifts add column kind varchar;
alter table drifts add column unit varchar;
alter table drifts add column null_value double;
alter table drifts add column boot_low double;
alter table drifts add column boot_high double;
alter table drifts add column standard_error double;
alter table drifts add column df double;
alter table drifts add column dropped bigint;
alter table drifts add column votes_per_pair bigint;
update drifts as d set
    kind = e.kind, unit = e.unit, null_value = e.null_value, boot_low = e.boot_low, boot_high = e.boot_high,
    standard_error = e.standard_error, df = e.df, dropped = e.dropped, votes_per_pair = e.votes_per_pair,
    seed = coalesce(d.seed, e.seed)
from estimates as e
where (e.study, e.dataset, e.judge, e.prompt, e.wave, e.mode, e.statistic, e.subgroup)
    = (d.study, d.dataset, d.judge, d.prompt, d.wave, d.mode, d.measure, d.base)
    and e.perturbation is not distinct from d.perturbation;

-- A file of votes is not drawn with a seed.
update runs set parameters = json_merge_patch(parameters, '{"seed": null}')::varchar where flow = 'measure';
