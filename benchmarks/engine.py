"""The judging engine against an emulated provider: python benchmarks/engine.py [PART ...].

Each part runs whole ``voirdire audit`` processes beside a Prefect server, against emulators on
loopback, and prints figures beside what they may be. Run it on a machine that does nothing else,
in the environment of ``make setup``, and read the ratios: machines differ.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.serving.server import Server
from warehouse.store import Warehouse

HERE = Path(sys.executable).parent / "voirdire"
PEER = HERE.parents[1] / "inspect" / "bin" / "python"
EMULATOR = str(Path(__file__).parents[1] / "tests" / "support" / "emulated_provider.py")
LATENCY, CONCURRENCY = 0.2, 64


@contextlib.contextmanager
def emulator(**behaviour: Any) -> Iterator[str]:
    """Run an emulated provider; yield its address."""
    process = subprocess.Popen([sys.executable, EMULATOR], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    base = process.stdout.readline().strip()
    _request(base, "/behaviour", {"latency": LATENCY, **behaviour})
    try:
        yield base
    finally:
        process.terminate()
        process.wait()


def stats(base: str) -> dict[str, Any]:
    """Ask an emulator what it was asked."""
    return _request(base, "/stats")


def _request(base: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base.removesuffix("/v1") + path, data)
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


class Bench:
    """A folder with providers, a dataset and a warehouse of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warehouse = folder / "w.duckdb"
        (folder / "providers").mkdir(parents=True)
        self.environment = {
            **os.environ,
            "VOIRDIRE_PROVIDERS": str(folder / "providers"),
            "VOIRDIRE_WAREHOUSE": str(self.warehouse),
        }

    def provider(
        self, name: str, base: str, judges: int = 1, each: int | None = None, **limits: Any
    ) -> list[str]:
        """Write a provider's file; return its judges. ``each`` is the concurrency of a judge."""
        own = f"\nconcurrency = {each}" if each else ""
        lines = [f'api_base = "{base}"', *(f"{k} = {v}" for k, v in limits.items())]
        names = [f"j{n}" for n in range(judges)]
        tables = "\n".join(
            f'[judges.{n}]\nmodel = "hosted_vllm/{n}"\nparams = {{ max_tokens = 20 }}\n'
            f"usd_per_million = {{ prompt = 1, completion = 2 }}{own}"
            for n in names
        )
        text = "\n".join(["[provider]", *lines, tables])
        (self.folder / "providers" / f"{name}.toml").write_text(text)
        return [f"{name}/{n}" for n in names]

    def dataset(self, ballots: int, votes: int = 2) -> Path:
        """Write questions that make about ``ballots`` ballots a judge: three arms each."""
        path = self.folder / "mine.jsonl"
        number = round(ballots / (3 * votes))
        words = [
            "water",
            "light",
            "stone",
            "river",
            "cloud",
            "leaf",
            "metal",
            "sound",
            "heat",
            "wind",
        ]
        draw = random.Random(0)
        with path.open("w") as file:
            for n in range(number):
                first, second = (" ".join(draw.choices(words, k=60)) + "." for _ in range(2))
                row = {"question_id": f"q{n}", "question": f"Which one, {n}?"}
                file.write(json.dumps({**row, "anchor": first, "target": second}) + "\n")
        return path

    def words(self, judges: list[str], data: Path, votes: int = 2) -> list[str]:
        """Return the command line of an audit."""
        chosen = [word for judge in judges for word in ("--judge", judge)]
        return [
            str(HERE),
            "audit",
            "--dataset",
            str(data),
            "--votes",
            str(votes),
            "--name",
            "bench",
            "--perturbation",
            "fake_reference",
            "--yes",
            *chosen,
        ]

    def audit(self, judges: list[str], data: Path, *more: str, votes: int = 2) -> dict[str, float]:
        """Run an audit; return its seconds, CPU seconds and peak memory, of all its processes.

        ``worker`` is the CPU time of the process that calls the provider.
        """
        began = time.perf_counter()
        process = subprocess.Popen(
            [*self.words(judges, data, votes), *more],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
        )
        peak = cpu = 0.0
        spent: dict[int, float] = {}
        workers: set[int] = set()
        while process.poll() is None:
            used = {pid: _usage(pid) for pid in _family(process.pid)}
            peak = max(peak, sum(memory for memory, _ in used.values()))
            # A process that has ended keeps what it has spent.
            spent |= {pid: seconds for pid, (_, seconds) in used.items() if seconds}
            workers |= {pid for pid in used if _is_worker(pid)}
            cpu = sum(spent.values())
            time.sleep(0.1)
        output = process.stdout.read() if process.stdout else ""
        # 3: completed with gaps, as when a budget is used up.
        if process.returncode not in {0, 3}:
            raise RuntimeError(output)
        seconds = time.perf_counter() - began
        worker = sum(spent.get(pid, 0.0) for pid in workers)
        return {"seconds": seconds, "cpu": cpu, "worker": worker, "peak": peak, "said": output}  # type: ignore[dict-item]


def _family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return found


def _usage(pid: int) -> tuple[float, float]:
    """Return a process's own memory in MB (shared pages divided), and its CPU seconds."""
    with contextlib.suppress(OSError, StopIteration):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        memory = next(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) / 1024
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return memory, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0, 0.0


def _is_worker(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"tasks.engine.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


PLAIN = """
import asyncio, os, sys, time
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm
base, number, route = sys.argv[1], int(sys.argv[2]), sys.argv[3]
messages = [{"role": "user", "content": "word " * 350}]
async def main():
    limit = asyncio.Semaphore(64)
    async def one(n):
        async with limit:
            await litellm.acompletion(model=route, messages=messages, api_base=base, api_key="k",
                                      num_retries=0, max_retries=0, seed=n)
    await asyncio.gather(*(one(n) for n in range(number)))
asyncio.run(main())
print(time.process_time())
"""


def plain_loop(base: str, number: int, route: str) -> tuple[float, float]:
    """Time a plain loop over litellm; return seconds and CPU seconds of the process."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, base, str(number), route],
        check=True,
        capture_output=True,
        text=True,
    )
    return time.perf_counter() - began, float(done.stdout.split()[-1])


INSPECT = """
import os, sys, tempfile, time
base, number = sys.argv[1], int(sys.argv[2])
os.environ.update(EMU_API_KEY="none", EMU_BASE_URL=base)
os.chdir(tempfile.mkdtemp())
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import match
data = MemoryDataset([Sample(input="word " * 350 + str(n), target="A") for n in range(number)])
(log,) = eval(Task(dataset=data, scorer=match()), model="openai-api/emu/one", max_connections=64,
              max_samples=128, max_tokens=20, display="none", log_level="error")
assert log.status == "success" and len(log.samples) == number
print(time.process_time())
"""


def inspect(base: str, number: int) -> tuple[float, float]:
    """Time the peer, Inspect AI, which keeps what was replied too; seconds and CPU seconds."""
    began = time.perf_counter()
    done = subprocess.run(
        [PEER, "-c", INSPECT, base, str(number)], check=True, capture_output=True, text=True
    )
    return time.perf_counter() - began, float(done.stdout.split()[-1])


missed: list[str] = []
unmeasured: list[str] = []


def show(name: str, value: float, limit: float | None = None, unit: str = "") -> None:
    """Print a figure beside what it may be."""
    allowed = " " * 10 if limit is None else f"{limit:10.2f}"
    above = limit is not None and round(value, 2) > limit
    print(f"{name:58}{value:10.2f}{allowed} {unit}{' ABOVE' if above else ''}", flush=True)
    missed.extend([name] if above else [])


def leave_out(name: str, why: str) -> None:
    """Say that something cannot be measured on this machine."""
    unmeasured.append(f"{name} ({why})")
    print(f"not measured: {unmeasured[-1]}", flush=True)


def finish() -> None:
    """End with an error, whose last line names what was missed, or what was not measured."""
    problems = [
        f"{title}: {', '.join(names)}"
        for title, names in (("above what it may be", missed), ("not measured", unmeasured))
        if names
    ]
    if problems:
        sys.exit("; ".join(problems))


def throughput(place: Path) -> None:
    """5 000 ballots at 200 ms, 64 in flight; nothing to do; 1 000; a plain loop; a peer."""
    ideal = 5000 * LATENCY / CONCURRENCY
    with emulator() as base:
        bench = Bench(place / "five")
        judges = bench.provider("emu", base, concurrency=CONCURRENCY)
        data = bench.dataset(5000)
        run = bench.audit(judges, data)
        counts = stats(base)
        show("ballots", counts["replies"])
        show(
            "first call to last / ideal",
            counts["seconds"] / (counts["replies"] * LATENCY / 64),
            1.15,
        )
        show("cold process beside a server / ideal", run["seconds"] / ideal, 1.7)
        show("peak memory", run["peak"], 400, "MB")
        again = bench.audit(judges, data)
        show("nothing to do", again["seconds"], 4.0, "s")
        show("calls of that", stats(base)["requests"] - counts["requests"], 0)
        small = Bench(place / "one")
        thousand = small.audit(small.provider("emu", base, concurrency=64), small.dataset(1000))
        show("1 000 ballots, cold", thousand["seconds"], 13.0, "s")
        marginal = (run["cpu"] - thousand["cpu"]) / 4.0
        show("marginal CPU per ballot", marginal, 4.2, "ms")
        calls = (run["worker"] - thousand["worker"]) / 4.0
        show("marginal CPU per ballot, of the calls (worker)", calls, None, "ms")
    for route in ("openai/emu", "hosted_vllm/emu"):
        with emulator() as base:
            seconds, cpu = plain_loop(base, 5000, route)
            span = stats(base)["seconds"]
            fewer = plain_loop(base, 1000, route)[1]
            show(f"plain loop, {route}: first call to last / ideal", span / ideal)
            show(f"plain loop, {route}: in all / ideal", seconds / ideal)
            show(f"plain loop, {route}: marginal CPU", (cpu - fewer) / 4.0, None, "ms")

    if not PEER.exists():
        print(f"Inspect AI is not in {PEER.parents[1]}: `make bench-engine` installs it.")
        return
    with emulator() as base:
        seconds, cpu = inspect(base, 1000)
        span = stats(base)["seconds"]
        show("Inspect AI, 1 000: first call to last / ideal", span / (1000 * LATENCY / 64))
        show("Inspect AI, 1 000: in all", seconds, None, "s")
        fewer = inspect(base, 200)[1]
        show("Inspect AI: marginal CPU", (cpu - fewer) / 0.8, None, "ms")


def memory(place: Path) -> None:
    """50 000 ballots take little more memory than 5 000."""
    peaks = {}
    for number in (5000, 50_000):
        with emulator(latency=0.05) as base:
            bench = Bench(place / f"m{number}")
            judges = bench.provider("emu", base, concurrency=CONCURRENCY)
            peaks[number] = bench.audit(judges, bench.dataset(number))["peak"]
            show(f"peak memory, {number} ballots", peaks[number], None, "MB")
    show("more for 50 000", peaks[50_000] - peaks[5000], 150, "MB")


def matrix(place: Path) -> None:
    """Ten judges on five providers of different limits, against the slowest judge alone."""
    limits = [2, 8, 16, 32, 64]
    with contextlib.ExitStack() as stack:
        bench, alone = Bench(place / "matrix"), Bench(place / "alone")
        bases = [stack.enter_context(emulator()) for _ in limits]
        judges = []
        for n, (base, limit) in enumerate(zip(bases, limits, strict=True)):
            # Each judge has the limit to itself, so one of the slowest provider is the slowest.
            judges += bench.provider(f"p{n}", base, judges=2, concurrency=2 * limit, each=limit)
        slowest = alone.provider("p0", bases[0], concurrency=limits[0])
        single = alone.audit(slowest, alone.dataset(300))
        everyone = bench.audit(judges, bench.dataset(300))
    show("slowest judge alone", single["seconds"], None, "s")
    show("ten judges on five providers / that", everyone["seconds"] / single["seconds"], 1.1)


def faults(place: Path) -> None:
    """20 % mixed faults over 10 000 ballots."""
    kinds = dict.fromkeys(("busy", "error", "reset", "truncated", "garbage"), 0.038)
    with emulator(faults={**kinds, "hang": 0.01}, hang_seconds=60, latency=0.02, seed=1) as base:
        bench = Bench(place / "faults")
        judges = bench.provider("emu", base, concurrency=CONCURRENCY, timeout_seconds=2)
        run = bench.audit(judges, bench.dataset(10_000))
        counts = stats(base)
        rows = Warehouse(bench.warehouse).query(
            "select count(*), count(distinct ballot_id) from votes"
        )
        ballots, different = rows.row(0)
        planned = Warehouse(bench.warehouse).query("select planned from runs").item()
        show("ballots without a vote", planned - ballots, 0)
        show("votes that are there twice", ballots - different, 0)
        show("replies to one prompt at most", counts["most_replies_to_a_prompt"], 1)
        show("calls / ballots", counts["requests"] / planned, 1.3)
        show("seconds", run["seconds"], None, "s")


def budget(place: Path) -> None:
    """Set a cap in the middle of a study, with 20 seeds."""
    worst, least = 0.0, 1e9
    for seed in range(20):
        fault = {"error": 0.05, "reset": 0.02}
        with emulator(latency=0.01, faults=fault, seed=seed) as base:
            bench = Bench(place / f"budget{seed}")
            judges = bench.provider("emu", base, concurrency=32)
            cap = 0.01 + 0.002 * seed
            bench.audit(judges, bench.dataset(600), "--budget", str(cap))
            counts = stats(base)
            spent = (counts["prompt_tokens"] + 2 * counts["completion_tokens"]) / 1e6
            worst, least = max(worst, spent / cap), min(least, spent / cap)
    show("spent / cap, at most of 20", worst, 1.0)
    show("spent / cap, at least of 20", least)


ENDS = (
    ("served", "served", 360),
    ("served", "served-many", 5000),
    ("own server, new home", "own", 360),
    ("own server", "own", 360),
)
"""Case, its Prefect home (which caches results by content), and ballots."""


def ends(place: Path) -> None:
    """Seconds before the first call and after the last: one judge, one perturbation."""
    for number, (case, home, ballots) in enumerate(ENDS):
        bench = Bench(place / f"ends{number}")
        bench.environment["PREFECT_HOME"] = str(place / f"ends-{home}")
        if case != "served":
            del bench.environment["PREFECT_API_URL"]
        with emulator() as base:
            judges, data = (
                bench.provider("emu", base, concurrency=CONCURRENCY),
                bench.dataset(ballots),
            )
            # Another seed: what the home has cached is of no use.
            began = time.monotonic()
            run = bench.audit(judges, data, "--seed", str(number))
            ended, counts = time.monotonic(), stats(base)
        show(
            f"{case}, {ballots} ballots: before the first call",
            counts["first_at"] - began,
            None,
            "s",
        )
        show(f"{case}, {ballots} ballots: after the last", ended - counts["last_at"], None, "s")
        show(f"{case}, {ballots} ballots: CPU of all processes", run["cpu"], None, "s")


PARTS = {f.__name__: f for f in (throughput, ends, matrix, memory, faults, budget)}


def main() -> None:
    """Run the parts that are named, or all."""
    chosen = sys.argv[1:] or list(PARTS)
    os.environ.pop("PREFECT_API_URL", None)
    with tempfile.TemporaryDirectory() as place:
        os.environ["PREFECT_HOME"] = str(Path(place) / "prefect")
        server = Server()
        server.wait()
        os.environ["PREFECT_API_URL"] = server.access.url
        try:
            for name in chosen:
                print(f"\n{PARTS[name].__doc__}\n{'':58}{'':>10}{'at most':>10}")
                PARTS[name](Path(place))
        finally:
            server.stop()
    finish()


if __name__ == "__main__":
    main()
