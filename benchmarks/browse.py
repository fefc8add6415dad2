"""``voirdire browse`` on a million votes: python benchmarks/browse.py [MILLIONS].

The study comes from ``benchmarks/scale.py``, with texts of some 900 characters per answer and a
reply per vote. Every page is asked for by HTTP, as a browser does, while another process saves
votes into the same warehouse; the first page should take 1 s or less, and each filter .5 s or less.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import httpx

from benchmarks.scale import PER_QUESTION, STUDY, _fill
from flows.results.remeasure import stored_steps
from schemas.judging import Shifts, Verdicts
from tasks.results import counted_votes
from warehouse.store import Saving, Warehouse

ASKED = 5
"""How often each page is asked for; the median counts."""

FIRST_SECONDS, FILTER_SECONDS = 1.0, 0.5
VIEWS = {
    "first page": "",
    "judge": "judge=offline%2Fjudge3",
    "perturbation": "perturbation=perturbation_4",
    "flipped": "flipped=1",
    "invalid replies": "invalid=1",
    "disagreements": "disagree=1",
    "search": "search=q17",
    "four at once": "judge=offline%2Fjudge3&flipped=1&invalid=1&search=question",
    "page 300": "page=300",
    "one comparison": "flipped=1&pair=",
}
WRITER = """
import sys, time
from warehouse.store import Warehouse
warehouse, longest, number = Warehouse(sys.argv[1]), 0.0, 0
while not sys.stdin.closed and sys.stdin.readline() == "on\\n":
    started, number = time.perf_counter(), number + 1
    warehouse.update_run("bench", planned=number)
    longest = max(longest, time.perf_counter() - started)
    print(number, longest, flush=True)
"""
FACTS = """
    update vote_log set
        ballot_id = md5(concat_ws('/', judge, sample, arm, perturbation, shown_first, repeat));
    create temp table asked as
        select *, md5(concat_ws('/', sample, arm, perturbation)) as pair_id from vote_log;
    insert into questions by name
        select distinct
            cluster as question_id, 'bench' as dataset,
            'Question ' || cluster || ': why is it so?' as question, 'bench' as run,
            now() as saved_at,
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
            'The anchor of ' || cluster || repeat(' explains it in some more words.', 28) as anchor,
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
    counted = counted_votes(STUDY, "balanced", stored_steps(warehouse))
    frames = [Saving(Verdicts, counted.verdicts), Saving(Shifts, counted.shifts)]
    warehouse.save(frames, run="bench", study=STUDY)
    return warehouse


def main() -> None:
    """Make the warehouse, ask for the pages, and say what they took."""
    millions = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "browse.duckdb"
        warehouse = fill(path, int(millions * 1e6))
        votes = warehouse.query("select count(*) from votes").item()
        load = os.getloadavg()[0]
        print(f"{votes} votes, {path.stat().st_size / 1e6:.0f} MB, load {load:.1f}")
        measure(path)


def measure(path: Path) -> None:
    """Time each page alone, and then while another process writes."""
    with _served(path) as (link, pid), httpx.Client(follow_redirects=True, timeout=60) as client:
        base = link.partition("?")[0]
        _say("first page, with the first opening", [_seconds(client, link)], FIRST_SECONDS)
        for name, query in VIEWS.items():
            worked = _processor_seconds(pid)
            times = [_seconds(client, f"{base}?{query}") for _ in range(ASKED)]
            worked = (_processor_seconds(pid) - worked) / ASKED
            _say(name, times, FILTER_SECONDS if query else FIRST_SECONDS, worked)
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdin
        assert writer.stdout
        times = []
        for _ in range(10 * ASKED):
            # It writes while the page is read.
            writer.stdin.write("on\n")
            writer.stdin.flush()
            times.append(_seconds(client, f"{base}?flipped=1"))
            written, longest = writer.stdout.readline().split()
        writer.stdin.close()
        writer.wait()
        _say("flipped, while another process writes", times, FILTER_SECONDS)
        print(f"{written} writes meanwhile, the longest in {float(longest):.2f} s")


@contextmanager
def _served(path: Path) -> Iterator[tuple[str, int]]:
    command = [str(Path(sys.executable).parent / "voirdire"), "browse", STUDY, "--port", "0"]
    process = subprocess.Popen(
        [*command, "--warehouse", str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.wait()


def _seconds(client: httpx.Client, address: str) -> float:
    started = time.perf_counter()
    client.get(address).raise_for_status()
    return time.perf_counter() - started


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process, which other programs on the machine do not change."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _say(name: str, times: list[float], limit: float, worked: float | None = None) -> None:
    processor = "" if worked is None else f", processor {worked:.2f}"
    print(
        f"{name:40}{statistics.median(times):8.2f} s, worst {max(times):.2f}{processor}"
        f"   at most {limit} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
