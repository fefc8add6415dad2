-- One row per study and ballot whose reply has no verdict: what was shown, the reply verbatim, and why it is none.
with reasons as (
    select study, ballot_id, array_to_string(list_sort(list(distinct concat(criterion || ': ', invalid))), '; ') as reason
    from ratings
    where invalid is not null and ballot_id is not null
    group by all
)
select t.*, r.reason
from mart.transcript as t
left join reasons as r using (study, ballot_id)
where t.choice in ('invalid', 'ambiguous', 'abstain')
