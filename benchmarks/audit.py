"""Start-up and one audit of the bundled set, cold and again: python benchmarks/audit.py.

Cold is a new warehouse and a new Prefect home, so a new database. Run it on a machine that does
nothing else, in the environment of ``make setup``, and read the ratios: machines differ.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from flows.serving.server import Server

HERE = Path(sys.executable).parent / "voirdire"


def seconds(*words: str, **environment: str) -> float:
    """Time one command."""
    began = time.perf_counter()
    subprocess.run(
        [HERE, *words], env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - began


def audits(folder: Path, **environment: str) -> tuple[float, float]:
    """Time a cold audit and the same again, in a folder of their own."""
    home = {"PREFECT_HOME": str(folder / "prefect"), "VOIRDIRE_WAREHOUSE": str(folder / "w.duckdb")}
    cold = seconds("audit", **{**home, **environment})
    return cold, seconds("audit", **{**home, **environment})


def main() -> None:
    """Print what start-up and audits take, beside what they may take."""
    os.environ.pop("PREFECT_API_URL", None)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        startup = statistics.median(seconds("--help") for _ in range(5))
        rows = [("voirdire --help", startup, 0.5)]
        (folder / "own").mkdir()
        own = audits(folder / "own")
        rows += [("audit, own server", own[0], 30.0), ("again", own[1], 15.0)]
        (folder / "beside").mkdir()
        os.environ["PREFECT_HOME"] = str(folder / "server")
        server = Server()
        server.wait()
        # The first request of all makes a new server finish its start.
        beside = audits(folder / "beside", PREFECT_API_URL=server.url)
        server.stop()
        rows += [("audit, beside a server", beside[0], 15.0), ("again", beside[1], 7.5)]
    print(f"{'':24}{'seconds':>10}{'at most':>10}")
    for name, taken, limit in rows:
        print(f"{name:24}{taken:10.2f}{limit:10.2f}")
    ratios = [again / cold for cold, again in (own, beside)]
    print(f"again / cold: {ratios[0]:.2f} with its own server, {ratios[1]:.2f} beside one")


if __name__ == "__main__":
    main()
