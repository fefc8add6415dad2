-- One row per perturbation, recipe, seed and reason: answers that were dropped, and shams that failed.
with reasons as (
    select perturbation, recipe, seed, question_id, 'perturbed answer' as what, failure as reason
    from perturbed_answers
    union all
    select perturbation, recipe, seed, question_id, 'sham' as what, sham_failure as reason
    from perturbed_answers
    where failure is null
)
select
    dataset, perturbation, recipe, seed, what, reason, count(*) as items,
from reasons join questions using (question_id)
where reason is not null
group by all
