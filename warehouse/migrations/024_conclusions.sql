-- Store conclusions as tables; fill them for existing results from what mart.numbers showed.
-- panel_members, win_checks, reply_changes and juries without a member are filled when a study is measured again.
alter table prompts add column digest varchar;
update prompts set digest = left(sha256(concat_ws(chr(31), kind, verdict, system, "user")), 12);

alter table estimates add column excluded boolean;
update estimates set excluded = x.excluded
from excluded_judges as x
where estimates.statistic in ('asr', 'asr_bounds', 'sham_floor', 'dasr')
    and x.study = estimates.study and x.dataset = estimates.dataset and x.judge = estimates.judge
    and x.prompt = estimates.prompt and x.wave = estimates.wave;

alter table findings add column adjustment varchar;
update findings set adjustment = if(
    kind = 'position', 'Benjamini-Hochberg, all judges', 'Benjamini-Hochberg, all cells (F1)'
) where p_adjusted is not null;

alter table judge_pairs add column adjustment varchar;
update judge_pairs set adjustment = 'Holm, all pairs of judges (F2)' where p_holm is not null;

alter table jury_conclusions add column left_out varchar;
alter table jury_conclusions add column member_shift double;
alter table jury_conclusions add column adjustment varchar;
update jury_conclusions set adjustment = 'Benjamini-Hochberg, the jury''s perturbations'
where p_adjusted is not null;

alter table drifts add column interval_level double;
alter table drifts add column method varchar;
alter table drifts add column adjustment varchar;
update drifts set
    interval_level = if(low is null, null, .95),
    adjustment = if(p_adjusted is null, null, 'Holm, all cells of the wave (F4)'),
    method = case
        when measure not in ('verdict_drift', 'text_drift', 'token_drift')
            then if(low is null, 'none', 'paired cluster t')
        when p_value is null then 'none'
        else 'permutation of repeats within prompts'
    end;
update drifts set method = e.method
from estimates as e
where drifts.measure not in ('verdict_drift', 'text_drift', 'token_drift')
    and e.study = drifts.study and e.dataset = drifts.dataset and e.judge = drifts.judge
    and e.prompt = drifts.prompt and e.wave = drifts.wave and e.mode = drifts.mode
    and e.perturbation is not distinct from drifts.perturbation
    and e.statistic = drifts.measure and e.subgroup = drifts.base;

create table waves (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    design varchar not null, epoch bigint,
    study varchar not null, run varchar not null, saved_at timestamptz not null
);
insert into waves by name
select asked.*, epochs.epoch, now() as saved_at
from (
    select
        study, any_value(run) as run, dataset, judge, prompt, wave,
        if(bool_and(even), 'balanced', 'random') as design
    from (
        select
            study, any_value(run) as run, dataset, judge, prompt, wave,
            count(*) filter (shown_first = 'anchor') = count(*) filter (shown_first = 'target') as even
        from vote_log
        group by study, dataset, judge, prompt, wave, sample, arm, perturbation
    )
    group by study, dataset, judge, prompt, wave
) as asked
left join (
    select study, dataset, judge, prompt, wave, max(epoch) as epoch
    from (
        select study, dataset, judge, prompt, wave, epoch + (state = 'alert')::integer as epoch from drifts
        union all
        select study, dataset, judge, prompt, base, epoch from drifts
    )
    group by study, dataset, judge, prompt, wave
) as epochs using (study, dataset, judge, prompt, wave);

create table panel_members (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    mode varchar not null, perturbation varchar not null, kind varchar, simulated boolean,
    votes_per_pair bigint, juror boolean not null, averaged boolean not null, kept boolean not null,
    study varchar not null, run varchar not null, saved_at timestamptz not null
);
create table win_checks (
    dataset varchar not null, judge varchar not null, prompt varchar not null, wave varchar not null,
    mode varchar not null, subgroup varchar not null, perturbation varchar, simulated boolean,
    bias_bound double, tipping_shift double, rests_on varchar, clusters bigint not null,
    win_rate double, win_rate_low double, win_rate_high double, margin double,
    won boolean, too_few varchar, robust boolean, conclusion varchar not null,
    study varchar not null, run varchar not null, saved_at timestamptz not null
);
create table reply_changes (
    judge varchar not null, prompt varchar not null, wave varchar not null, notice varchar not null,
    study varchar not null, run varchar not null, saved_at timestamptz not null
);

