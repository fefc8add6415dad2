"""Audits under faults: python benchmarks/faults.py [--quick] [PART ...].

Kills, full disks, foreign sessions, wrong clocks, several audits at once: after each, nothing may
be lost or asked twice (except what was in flight), no run may end with exit code 0 and gaps, and
what was printed must name the cause. Whole processes run against emulators on loopback. Each part
is bounded, takes minutes, and prints figures beside what they may be; ``--quick`` repeats a fifth
as often and waits less. A part that this machine cannot run (a tmpfs, a compiler) is an error.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.engine import HERE, Bench, _family, emulator, finish, leave_out, show, stats
from warehouse.store import Warehouse

QUICK = "--quick" in sys.argv
IN_FLIGHT = 16
LIMIT_SECONDS = 900
"""A run that takes longer is stopped, and counts as failed."""

LAST_WORDS = 600
"""Characters that are shown of a command that failed."""

WRONG = re.compile(r"Traceback|Choose another|Close the program that holds it open for writing")
"""What nobody should read after a fault."""

HOLD = """
import sys, time, duckdb
while True:
    try:
        held = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "reading")
        break
    except duckdb.IOException:
        time.sleep(0.01)
print("held", flush=True)
time.sleep(float(sys.argv[3]))
"""
READ = """
import sys, time, duckdb
while True:
    began, refused = time.monotonic(), 0
    while True:
        try:
            with duckdb.connect(sys.argv[1], read_only=True) as held:
                held.execute("select count(*) from votes").fetchall()
            break
        except duckdb.IOException:
            refused += 1
            time.sleep(0.01)
    print(time.monotonic() - began, refused, flush=True)
    time.sleep(0.1)
"""
SHIFTED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long shift(void) {
  char text[32] = {0};
  int file = open(getenv("CLOCK_SHIFT"), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  long got = read(file, text, sizeof text - 1);
  close(file);
  return got > 0 ? atol(text) : 0;
}
int clock_gettime(clockid_t which, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(which, now);
  if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
    now->tv_sec += shift();
  return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
  struct timespec exact;
  int failed = clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return failed;
}
time_t time(time_t *now) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now) *now = exact.tv_sec;
  return exact.tv_sec;
}
"""
"""A wall clock that is shifted by the seconds in a file; the monotonic one is left alone.

With libfaketime 0.9.10, told to leave that alone too, Python's ``sleep`` fails (EINVAL).
"""


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    said: str


class Case:
    """A study of about so many ballots at an emulator of its own."""

    def __init__(self, folder: Path, base: str, ballots: int) -> None:
        self.bench, self.base = Bench(folder), base
        judges = self.bench.provider("emu", base, concurrency=IN_FLIGHT)
        self.words = self.bench.words(judges, self.bench.dataset(ballots))
        self.warehouse = Warehouse(self.bench.warehouse)

    def start(self, *more: str, words: list[str] | None = None, **environment: str) -> "Running":
        """Start an audit, or another command."""
        chosen = [*(words or self.words), *more]
        return Running(chosen, {**self.bench.environment, **environment}, self.bench.folder)

    def replies(self) -> int:
        """Return how many replies were sent."""
        return int(stats(self.base).get("replies", 0))

    def until(self, running: "Running", replies: int) -> None:
        """Wait until so many replies were sent, or the run has ended."""
        while running.process.poll() is None and self.replies() < replies:
            time.sleep(0.05)

    def check(self, name: str, repeated: int) -> None:
        """Show what was lost, doubled, asked again, and falsely called complete."""
        store = self.warehouse
        votes, distinct = store.query("select count(*), count(distinct ballot_id) from votes").row(
            0
        )
        planned = store.query("select max(planned) from runs").item() or 0
        called = "select count(*) from runs where state = 'completed' and failed > 0"
        show(f"{name}: no ballots", planned == 0, 0)
        show(f"{name}: ballots without a vote", planned - votes, 0)
        show(f"{name}: votes that are there twice", votes - distinct, 0)
        show(f"{name}: calls that were repeated", stats(self.base)["requests"] - planned, repeated)
        show(f"{name}: runs with gaps called completed", store.query(called).item(), 0)
        kept = list(Path(f"{self.bench.warehouse}.replies").glob("*.jsonl"))
        show(f"{name}: journals left behind", len(kept), 0)


class Running:
    """A command that runs."""

    def __init__(self, words: list[str], environment: dict[str, str], folder: Path) -> None:
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - read when the command has ended
        self.process = subprocess.Popen(
            words, env=environment, cwd=folder, stdout=self._said, stderr=subprocess.STDOUT
        )

    def kill(self) -> None:
        """Kill it alone; what it started notices."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def child(self, program: str) -> int | None:
        """Return a process that it started."""
        for pid in _family(self.process.pid):
            with contextlib.suppress(OSError):
                if program.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        return None

    def end(self) -> Ended:
        """Wait for its end."""
        try:
            code = self.process.wait(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            code = -9
        self._said.seek(0)
        return Ended(code, " ".join(self._said.read().split()))


def complete(case: Case, name: str, running: "Running | None" = None) -> Ended:
    """Run an audit to its end; it must be complete, and say nothing wrong."""
    ended = (running or case.start()).end()
    show(f"{name}: exit code", ended.code, 0)
    clean(name, ended)
    return ended


def clean(name: str, ended: Ended) -> None:
    """Show whether something was printed that helps nobody."""
    wrong = WRONG.search(ended.said)
    if wrong or ended.code:
        print(f"{name} said: ... {ended.said[-LAST_WORDS:]}")
    show(f"{name}: wrong advice{f' ({wrong[0]})' if wrong else ''}", wrong is not None, 0)


def times(number: int) -> int:
    """Return how often a part repeats."""
    return max(1, number // 5) if QUICK else number


@contextlib.contextmanager
def case(place: Path, ballots: int, **behaviour: Any) -> Iterator[Case]:
    """Make a case."""
    with emulator(**{"latency": 0.1, **behaviour}) as base:
        yield Case(place, base, ballots)


def main_killed(place: Path) -> None:
    """Kill the audit itself (-9), 26 times."""
    draw, kills = random.Random(7), times(26)
    with case(place, 250 * kills) as it:
        for _ in range(kills):
            running = it.start()
            it.until(running, it.replies() + draw.randrange(1, 150))
            running.kill()
        complete(it, "main")
        it.check("main", kills * IN_FLIGHT)
        killed = it.warehouse.query("select count(*) from runs where state = 'killed'").item()
        show("main: runs that are recorded as killed", killed)


def worker_killed(place: Path) -> None:
    """Kill the worker process (-9), ten times in one audit."""
    kills = times(10)
    with case(place, 150 * (kills + 1)) as it:
        running, killed = it.start(), 0
        for _ in range(kills):
            it.until(running, it.replies() + 80)
            if pid := running.child("tasks.engine.worker"):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        show("worker: kills that found none", kills - killed, 0)
        complete(it, "worker", running)
        it.check("worker", kills * IN_FLIGHT)


def server_killed(place: Path) -> None:
    """Kill the Prefect server of an audit (-9), in five audits."""
    _server_lost(place, "killed server", signal.SIGKILL)


def server_frozen(place: Path) -> None:
    """Stop the Prefect server of an audit (SIGSTOP), in five audits: it answers nothing."""
    _server_lost(place, "frozen server", signal.SIGSTOP)


def _server_lost(place: Path, name: str, fate: signal.Signals) -> None:
    for number in range(times(5)):
        with case(place / str(number), 900) as it:
            running = it.start(PREFECT_API_URL="")
            it.until(running, 50 + 100 * number)
            pid = running.child("flows.serving.guarded_server")
            show(f"{name} {number}: no server found", pid is None, 0)
            if pid:
                os.kill(pid, fate)
            began = time.monotonic()
            complete(it, f"{name} {number}", running)
            show(f"{name} {number}: seconds to the end", time.monotonic() - began, 90, "s")
            it.check(f"{name} {number}", 0)
            rows = it.warehouse.query("select count(*) from findings").item()
            show(f"{name} {number}: no findings", rows == 0, 0)


def remeasure_killed(place: Path) -> None:
    """Kill remeasure (-9), ten times: the results stay whole."""
    draw = random.Random(3)
    with case(place, 600) as it:
        complete(it, "remeasure")
        before = it.warehouse.query("select count(*) from estimates").item()
        words = [str(HERE), "remeasure", "bench"]
        began = time.monotonic()
        clean("remeasure, undisturbed", it.start(words=words).end())
        took, missing, done = time.monotonic() - began, 0, 0
        for _ in range(times(10)):
            running = it.start(words=words)
            time.sleep(draw.uniform(0.2, 1.0) * took)
            done += running.process.poll() is not None
            running.kill()
            there = it.warehouse.query("select count(*) from estimates").item()
            missing += abs(before - there)
        show("remeasure: kills that came after its end", done)
        show("remeasure: estimates that are missing after a kill", missing, 0)
        ended = it.start(words=words).end()
        show("remeasure: exit code", ended.code, 0)
        clean("remeasure", ended)
        alive = it.warehouse.query("select count(*) from runs where state = 'running'").item()
        show("remeasure: dead runs that are called running", alive, 0)


def torn_journal(place: Path) -> None:
    """Tear the last line of a journal, as a power cut does."""
    with case(place, 600) as it:
        running = it.start()
        it.until(running, 200)
        running.kill()
        time.sleep(1)
        for journal in Path(f"{it.bench.warehouse}.replies").glob("*.jsonl"):
            os.truncate(journal, max(0, journal.stat().st_size - 40))
        complete(it, "torn journal")
        it.check("torn journal", IN_FLIGHT + 1)


def full_disk(place: Path) -> None:
    """Fill the disk in the middle, and free it: a small tmpfs, which only root can make."""
    disk = place / "disk"
    disk.mkdir(parents=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)], check=False
    )
    if made.returncode:
        leave_out("full_disk", "no tmpfs can be mounted here")
        return
    try:
        with case(disk / "case", 1200) as it:
            filler = disk / "filler"
            running = it.start()
            it.until(running, 100)
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                while file.write(b"x" * 4096):
                    pass
            ended = running.end()
            show("full disk: exit code 0", ended.code == 0, 0)
            show("full disk: the cause is not named", not re.search("space|full", ended.said), 0)
            clean("full disk", ended)
            filler.unlink()
            complete(it, "freed disk")
            # What was in flight could be written nowhere: it was paid and is gone.
            it.check("freed disk", IN_FLIGHT + 1)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def held(place: Path) -> None:
    """Hold the warehouse open in another program, for 60 and 300 s."""
    for seconds in (10, 20) if QUICK else (60, 300):
        for how in ("reading", "writing"):
            name = f"held {seconds} s for {how}"
            with case(place / f"{how}{seconds}", 1500) as it:
                running = it.start()
                it.until(running, 50)
                words = [sys.executable, "-c", HOLD, str(it.bench.warehouse), how, str(seconds)]
                with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
                    assert holder.stdout
                    holder.stdout.readline()
                    pause = longest_pause(it, 1500, seconds)
                    show(f"{name}: longest pause of asking", pause, 5.0, "s")
                    ended = complete(it, name, running)
                    named = f"held open by process {holder.pid}" in ended.said
                    show(f"{name}: holder or mode not named", not named or how not in ended.said, 0)
                it.check(name, 0)


def longest_pause(it: Case, ballots: int, seconds: float) -> float:
    """Return the longest time without a reply within so many seconds, until all have come."""
    began = last = time.monotonic()
    longest, before = 0.0, it.replies()
    while before < ballots and time.monotonic() < began + seconds:
        time.sleep(0.1)
        if (now := it.replies()) > before:
            last, before = time.monotonic(), now
        longest = max(longest, time.monotonic() - last)
    return longest


def clock(place: Path) -> None:
    """Set the clock an hour forward or back in the middle, while a second audit begins."""
    place.mkdir(parents=True)
    library, source = place / "clock.so", place / "clock.c"
    source.write_text(SHIFTED)
    if not (compiler := shutil.which("cc")):
        leave_out("clock", "no C compiler to make a shifted clock with")
        return
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    for jump in ("3600", "-3600"):
        with case(place / jump, 900) as it:
            now = place / jump / "shift"
            now.write_text("0")
            shifted = {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(now)}
            first = it.start(**shifted)
            it.until(first, 100)
            now.write_text(jump)
            second = it.start("--name", "second", **shifted)
            complete(it, f"clock {jump} s, first", first)
            complete(it, f"clock {jump} s, second", second)
            it.check(f"clock {jump} s", 0)


def three(place: Path) -> None:
    """Run three audits of the same ballots at once."""
    with case(place, 900) as it:
        running = [it.start("--name", name) for name in ("a", "b", "c")]
        for one in running:
            complete(it, "three at once", one)
        it.check("three at once", 0)


def reader(place: Path) -> None:
    """Time a reader that tries again each 10 ms, while an audit writes."""
    with case(place, 1000 if QUICK else 5000, latency=0.2) as it:
        complete_once = it.start()
        it.until(complete_once, 20)
        words = [sys.executable, "-u", "-c", READ, str(it.bench.warehouse)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            complete(it, "reader", complete_once)
            process.terminate()
            assert process.stdout
            lines = [line.split() for line in process.stdout.read().splitlines()]
        waits = sorted(float(line[0]) for line in lines if len(line) == 2)
        refused = sum(int(line[1]) > 0 for line in lines if len(line) == 2)
        show("reader: visits", len(waits))
        show("reader: visits that had to be tried again", refused)
        show("reader: wait, median", waits[len(waits) // 2], None, "s")
        show("reader: wait, 99th percentile", waits[int(0.99 * (len(waits) - 1))], 1.0, "s")
        show("reader: wait, longest", waits[-1], None, "s")
        it.check("reader", 0)


PARTS: dict[str, Callable[[Path], None]] = {
    f.__name__: f
    for f in (
        main_killed,
        worker_killed,
        server_killed,
        server_frozen,
        remeasure_killed,
        torn_journal,
        full_disk,
        held,
        clock,
        three,
        reader,
    )
}


def main() -> None:
    """Run the parts that are named, or all."""
    chosen = [word for word in sys.argv[1:] if word != "--quick"] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        sys.exit(f"no part {', '.join(sorted(unknown))}. There are: {', '.join(PARTS)}.")
    os.environ.pop("PREFECT_API_URL", None)
    with tempfile.TemporaryDirectory() as place:
        os.environ["PREFECT_HOME"] = str(Path(place) / "prefect")
        for name in chosen:
            print(f"\n{PARTS[name].__doc__}\n{'':58}{'':>10}{'at most':>10}", flush=True)
            PARTS[name](Path(place) / name)
    finish()


if __name__ == "__main__":
    main()
