"""``voirdire browse`` on a million votes: python benchmarks/browse.py [MILLIONS].

The study is that of ``benchmarks/scale.py``, with texts of some 900 characters per answer and a
reply per vote. Every page is asked for by HTTP, as a browser does, while another process saves
votes into the same warehouse; the first page should take 1 s or less, and each filter .5 s or less.
"""

import tempfile
from pathlib import Path

import duckdb
from scale import PER_QUESTION, STUDY, _fill

from schemas.judging import Shifts, Verdicts
from tasks.counting.verdicts import match_groups, tally_votes
from warehouse.store import Saving, Warehouse

FACTS = """
    create temp table asked as
        select
            *, md5(concat_ws('/', sample, arm, perturbation)) as pair_id,
            md5(concat_ws('/', judge, sample, arm, perturbation, shown_first, repeat)) as ballot_id,
        from vote_log;
    insert into questions by name
        select distinct
            cluster as question_id, 'bench' as dataset,
            'Question ' || cluster || ': why is it so?' as question, 'bench' as run, now() as saved_at,
        from asked;
    insert into judges by name
        select distinct
            judge, 'offline' as provider, judge as model, '{}' as params, '' as system,
            true as simulated, 'bench' as run, now() as saved_at,
        from asked;
    insert into prompts by name
        select
            'pair_v1' as prompt, 'pair' as kind, 'bench' as source, 'tag' as verdict, '' as system,
            'Compare.' as user, null as digest, 'bench' as run, now() as saved_at;
    insert into pairs by name
        select distinct on (pair_id)
            pair_id, dataset, sample, cluster, arm, perturbation, kind,
            'Question ' || cluster || ': why is it so?' as question,
            'The anchor of ' || cluster || repeat(' explains it in a few more words.', 27) as anchor,
            'The target of ' || cluster || coalesce(' with ' || perturbation || ', ' || arm, '')
                || repeat(' explains it in other words, and ends.', 23) as target,
            'bench' as run, now() as saved_at,
        from asked;
    insert into study_pairs by name
        select distinct study, pair_id, 'bench' as run, now() as saved_at from asked;
    insert into ballots by name select ballot_id, pair_id, judge, prompt, wave, shown_first, repeat,
        'bench' as run, now() as saved_at from asked;
    insert into votes by name
        select
            ballot_id, choice, 'I compared both answers of ' || sample || '. ' || choice as raw,
            judge as model, 1.5 as seconds, 400 as prompt_tokens, 20 as completion_tokens,
            .0001 as cost_usd, 1 as attempts, now() as cast_at, 'bench' as run, now() as saved_at,
        from asked;
"""


def fill(path: Path, votes: int) -> Warehouse:
    """Write a study of about so many votes, with all its texts and verdicts."""
    _fill(path, max(votes // PER_QUESTION, 1))
    with duckdb.connect(str(path)) as connection:
        connection.execute(FACTS)
        connection.execute("delete from verdicts")
    warehouse = Warehouse(path)
    verdicts = tally_votes(warehouse.tallies(STUDY), "balanced")
    frames = [Saving(Verdicts, verdicts), Saving(Shifts, match_groups(verdicts))]
    warehouse.save(frames, run="bench", study=STUDY)
    return warehouse
