"""Start-up, and an audit of the bundled set with its tail: python benchmarks/audit.py.

Cold is a new warehouse and a new Prefect home, so a new database. Run it on a machine that does
nothing else, in the environment of ``make setup``, and read the ratios: machines differ.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from flows.serving.server import Server
from warehouse.store import Warehouse

TAIL = "after the last vote"
HERE = Path(sys.executable).parent / "voirdire"


def seconds(*words: str, **environment: str) -> float:
    """Time one command."""
    began = time.perf_counter()
    subprocess.run(
        [HERE, *words], env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - began


def audits(folder: Path, **environment: str) -> tuple[float, float, float]:
    """Time a cold audit, its tail after the last vote, and the same audit again, in a folder."""
    home = {"PREFECT_HOME": str(folder / "prefect"), "VOIRDIRE_WAREHOUSE": str(folder / "w.duckdb")}
    cold = seconds("audit", **{**home, **environment})
    ended = datetime.now(UTC)
    last = Warehouse(folder / "w.duckdb").query("select max(cast_at) from votes").item()
    tail = (ended - last).total_seconds()
    return cold, tail, seconds("audit", **{**home, **environment})


def main() -> None:
    """Print what start-up and audits take, beside what they may take."""
    os.environ.pop("PREFECT_API_URL", None)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        startup = statistics.median(seconds("--help") for _ in range(5))
        rows = [("voirdire --help", startup, 0.5)]
        (folder / "own").mkdir()
        own = audits(folder / "own")
        rows += [("audit, own server", own[0], 30.0), (TAIL, own[1], 4.0), ("again", own[2], 15.0)]
        (folder / "beside").mkdir()
        os.environ["PREFECT_HOME"] = str(folder / "server")
        server = Server()
        server.wait()
        # The first request of all makes a new server finish its start.
        beside = audits(folder / "beside", PREFECT_API_URL=server.access.url)
        server.stop()
        rows += [("audit, beside a server", beside[0], 15.0), (TAIL, beside[1], 4.0)]
        rows += [("again", beside[2], 7.5)]
    print(f"{'':24}{'seconds':>10}{'at most':>10}")
    for name, taken, limit in rows:
        print(f"{name:24}{taken:10.2f}{limit:10.2f}")
    ratios = [again / cold for cold, _, again in (own, beside)]
    print(f"again / cold: {ratios[0]:.2f} with its own server, {ratios[1]:.2f} beside one")


if __name__ == "__main__":
    main()
