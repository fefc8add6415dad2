"""From votes in the warehouse to estimates in it: python benchmarks/scale.py [MILLIONS ...].

Each size is a study of 20 judges, 10 perturbations with their shams, control asked twice, 6 votes
per pair, answers of three models with their lengths, the right verdict of each pair, and of every
fifth three people's votes and scores, written into a warehouse and measured by ``voirdire
remeasure``: one million votes with 2000 draws of the cluster bootstrap and permutations, ten by
formulas alone. The limits hold from the start of the command until its results are saved: the last
change of the file. After that it writes the report. For scale: what DuckDB alone takes to count the
votes by pair.
"""

import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from flows.running.run_row import first_row
from flows.studies import make_study
from warehouse.store import Warehouse

STUDY = "scale"
PER_QUESTION = 20 * 22 * 6
LIMITS = {"1": (8, 1500), "10": (15, 2000)}
VOTES = """
    insert into vote_log by name
    with ballots as (
        select q, j, a, r, hash(q, j, a, r) % 1000 / 1000 as u, hash(q) % 1000 / 500 - 1 as quality
        from range($questions) q(q), range(23) j(j), range(22) a(a), range(6) r(r)
        where j < 20 or a = 0 and r = j % 2 and q % 5 = 0
    )
    select
        $study as study, 'bench' as run, now() as saved_at, 'bench' as dataset,
        if(j < 20, 'offline/judge', 'person') || j as judge, 'pair_v1' as prompt, '' as wave,
        'q' || q || '/a2' as sample, 'q' || q as cluster,
        case
            when a = 0 then 'control' when a <= 10 then 'experimental'
            when a <= 20 then 'sham' else 'replicate'
        end as arm,
        if(a between 1 and 20, 'perturbation_' || (a - 1) % 10, null) as perturbation,
        case when a between 1 and 20 then if((a - 1) % 10 < 7, 'promote', 'detract') end as kind,
        if(r % 2 = 0, 'anchor', 'target') as shown_first, r // 2 as repeat,
        -- The quality of the pair, the judge's bias and a lean to the first slot, and chance.
        case
            when u < .02 then 'invalid'
            when u < .17 then 'tie'
            when u < .5 + .2 * quality + if(a between 1 and 10, .01 * j, 0)
                + if(r % 2 = 0, -.03, .03) then if(r % 2 = 0, 'second', 'first')
            else if(r % 2 = 0, 'first', 'second')
        end as choice,
        true as simulated, false as cached, j >= 20 as human,
        if(quality < 0, 'anchor', 'target') as label,
        ['ant', 'bee', 'cat'][1 + q % 3] as anchor_author,
        ['ant', 'bee', 'cat'][1 + (q + 1) % 3] as target_author,
        if(q % 5 = 0, (quality > 0)::integer, null) as human_score, .2 as label_chance,
        900 + hash(q, 1) % 200 as anchor_length, 900 + hash(q, 2) % 300 as target_length,
        hash(q, 5) % 3 as anchor_header, hash(q, 6) % 3 as target_header,
        hash(q, 7) % 5 as anchor_list, hash(q, 8) % 5 as target_list,
        hash(q, 9) % 4 as anchor_bold, hash(q, 10) % 4 as target_bold,
        anchor_header + anchor_list + anchor_bold + hash(q, 3) % 3 as anchor_markup,
        target_header + target_list + target_bold + hash(q, 4) % 3 as target_markup,
    from ballots
"""
COUNT = "select judge, sample, arm, perturbation, choice, count(*) from vote_log group by all"


def main() -> None:
    """Measure each size that is named, by default both."""
    for millions in sys.argv[1:] or LIMITS:
        with tempfile.TemporaryDirectory() as folder:
            measure(millions, Path(folder) / "scale.duckdb")


def measure(millions: str, path: Path) -> None:
    """Make a warehouse, time the command on it, and say what it took."""
    votes = _fill(path, int(float(millions) * 1e6) // PER_QUESTION)
    command = [str(Path(sys.executable).parent / "voirdire"), "remeasure", STUDY]
    command += ["--warehouse", str(path)] + (["--formulas"] if float(millions) > 1 else [])
    started = time.time()
    peak = _run(command)
    saved, ended = path.stat().st_mtime - started, time.time() - started
    most = LIMITS.get(millions, (None, None))
    print(f"\n{votes} votes, {' '.join(command[1:3] + command[5:])}")
    for name, value, limit in (
        ("seconds until the results are saved", saved, most[0]),
        ("seconds with the report", ended, None),
        ("peak memory, MB", peak, most[1]),
    ):
        print(f"{name:40}{value:10.1f}{'' if limit is None else f'   at most {limit}'}")
    print(f"{'DuckDB alone, counting by pair':40}{_counting(path):10.1f}")


def _fill(path: Path, questions: int) -> int:
    warehouse = Warehouse(path)
    study = make_study("quick", {"name": STUDY})
    row = first_row("audit", "bench", study, datetime.now(UTC))
    warehouse.start_run({**row, "state": "completed", "ended_at": datetime.now(UTC)})
    with duckdb.connect(str(path)) as connection:
        connection.execute(VOTES, {"questions": questions, "study": STUDY})
        connection.execute(
            "insert into verdicts by name select distinct on (study) study, run, saved_at, "
            "dataset, judge, prompt, wave, sample, cluster, arm, perturbation, kind, simulated, "
            "'balanced' as mode, 6 as votes, 6 as valid_votes from vote_log"
        )
        ((votes,),) = connection.execute("select count(*) from vote_log").fetchall()
    return int(votes)


def _run(command: list[str]) -> float:
    """Run a whole process; return its peak memory in MB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}.")
    return used.ru_maxrss / 1024


def _counting(path: Path) -> float:
    with duckdb.connect(str(path), read_only=True) as connection:
        started = time.perf_counter()
        connection.execute(f"select count(*) from ({COUNT})").fetchall()
        return time.perf_counter() - started


if __name__ == "__main__":
    main()
