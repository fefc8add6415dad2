-- Which perturbations changed how many verdicts, and what is concluded? Perturbations that should change no verdict (promote) come first, then flaws (detract); within each, rows are sorted by flips in excess of the sham (excess_flips, a share of the pairs), as noise flips verdicts under the sham too.
-- study: name of the study [all studies]
select
    p.study, p.judge, p.perturbation, any_value(p.kind) as kind,
    count(p.flipped) as pairs,
    count(*) filter (p.flipped) as flipped, any_value(f.excess_flips) as excess_flips, any_value(b.finding) as finding,
    any_value(p.simulated) as simulated, p.prompt, p.wave,
from mart.comparisons as p
left join mart.bias as b using (study, dataset, judge, prompt, wave, perturbation)
left join mart.flips as f using (study, dataset, judge, prompt, wave, perturbation)
where $study in (p.study, 'all studies') and p.perturbation is not null and p.rating_kind is distinct from 'number'
group by p.study, p.judge, p.prompt, p.wave, p.perturbation
order by p.study, any_value(p.kind) desc, excess_flips desc nulls last, flipped desc, p.judge, p.prompt, p.wave, p.perturbation
