-- One row per study, judge, prompt, wave, mode, perturbation and sample: its verdicts, control beside experimental, without texts.
-- A sample that nothing was done to has one row, with perturbation null; a calibration, one per disagreement, with the judge's
-- label as control. A judge of single answers has a row per criterion and repeat.
with rated as (
    select *, sample as shown from ratings where sample is not null
    union all
    -- A rating that was read from a log may be of an item alone.
    select *, item from ratings where sample is null
),
compared as (
    select
        study, dataset, judge, prompt, wave, mode, perturbation, kind, sample, null as criterion, null as repeat, null as rating_kind,
        control, sham, experimental, simulated,
    from shifts
    union all
    select
        study, dataset, judge, prompt, wave, mode, null, null, sample, null, null, null, verdict, null, null, simulated,
    from verdicts anti join shifts using (study, dataset, judge, prompt, wave, sample)
    where arm = 'control'
    union all
    select
        e.study, e.dataset, e.judge, e.prompt, e.wave, null, e.perturbation, e.perturbation_kind, e.sample, e.criterion, e.repeat,
        e.kind, c.label, s.label, e.label, e.simulated,
    from ratings as e
    join ratings as c
        on c.arm = 'control' and c.study = e.study and c.dataset = e.dataset and c.judge = e.judge and c.prompt = e.prompt
        and c.wave = e.wave and c.sample = e.sample and c.side = e.side and c.criterion is not distinct from e.criterion
        and c.repeat = e.repeat
    left join ratings as s
        on s.arm = 'sham' and s.study = e.study and s.dataset = e.dataset and s.judge = e.judge and s.prompt = e.prompt
        and s.wave = e.wave and s.sample = e.sample and s.side = e.side and s.criterion is not distinct from e.criterion
        and s.repeat = e.repeat and s.perturbation = e.perturbation
    where e.arm = 'experimental'
    union all
    select
        study, dataset, judge, prompt, wave, null, null, null, shown, criterion, repeat, kind, label, null, null, simulated,
    from rated as c
    anti join (from ratings where arm = 'experimental') as e
        on e.study = c.study and e.dataset = c.dataset and e.judge = c.judge and e.prompt = c.prompt and e.wave = c.wave
        and e.sample = c.sample
    where arm = 'control'
    union all
    select
        study, dataset, judge, prompt, wave, null, null, null, item, criterion, null, 'label', judge_label, null, null, simulated,
    from differing_labels
    anti join (select study from verdicts union select study from ratings) using (study)
)
select
    *,
    -- A changed grade is no changed verdict.
    if(rating_kind is distinct from 'number', control <> experimental, null) as flipped,
    if(rating_kind = 'number', abs(try_cast(experimental as double) - try_cast(control as double)), null) as moved,
from compared
