-- One row per study, prompt, wave, mode, perturbation and votes per pair: mean over all judges, and without those left out.
select
    study, dataset, prompt, wave, mode, perturbation, votes_per_pair, kind, bool_or(simulated) as simulated,
    count(asr) as judges,
    avg(asr) as asr,
    avg(sham_floor) as sham_floor,
    avg(dasr) as dasr,
    count(asr) filter (excluded is not true) as judges_kept,
    avg(asr) filter (excluded is not true) as asr_kept,
    avg(sham_floor) filter (excluded is not true) as sham_floor_kept,
    avg(dasr) filter (excluded is not true) as dasr_kept,
    string_agg(judge || ' (' || excluded_for || ')', ', ' order by judge) filter (excluded) as left_out,
from mart.asr
group by all
