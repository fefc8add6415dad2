"""Thirty nights of a served study: python benchmarks/nights.py [--quick] [--keep FOLDER].

``voirdire serve`` runs with a server of its own, and its runner starts every night as it starts one
that was scheduled: a run of the deployment that is due. The nights are scheduled through the API,
each for a date of its own, which names its wave: a cron line of every minute would take half an
hour, be late whenever the machine is busy, and leave no room between two nights to stop a provider
(``tests/flows/test_serve_alone.py`` has nights that a cron line starts).

Six judges, three quarters of whose votes come from two emulated providers on loopback, and are
drawn anew each night, as at a temperature above 0. The provider ``north`` is down on night 7,
``serve`` is ended in the middle of night 12 and started again, and ``south/turncoat`` changes on
night 20. Afterwards each claim is printed beside what it may be. It takes about 25 minutes on two
cores; ``--quick`` has nine nights. Everything ends with the script, and every night is bounded.
"""

import argparse
import base64
import datetime as dt
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.engine import (
    EMULATOR,
    HERE,
    _family,
    _request,
    _usage,
    finish,
    leave_out,
    missed,
    show,
    stats,
)
from flows.serving.server import find_server
from tasks.kit.defaults import BUDGET, DEFAULTS
from warehouse.store import Warehouse

QUICK = "--quick" in sys.argv
NUMBER, DOWN, RESTARTED, CHANGED = (9, 3, 4, 6) if QUICK else (30, 7, 12, 20)
FIRST = dt.date(2026, 1, 1)
NIGHT_SECONDS = 300
"""A night that takes longer ends the script."""

BEHIND_SECONDS = 120
BUSY_TRIES = 30
SEVERE = re.compile(r"ERROR|CRITICAL|Traceback|Exception")
STEADY = {"omega": 1.5, "nu": 1.5, "temperature": 0.3, "effects": {"factual_error": -2.5}}
TRAITS: dict[str, dict[str, dict[str, Any]]] = {
    "north": {"calm": {**STEADY, "seed": 11}, "leaning": {**STEADY, "seed": 12, "kappa": 0.8}},
    "south": {
        "turncoat": {**STEADY, "seed": 13},
        "credulous": {**STEADY, "seed": 14, "effects": {"reference": 1.0}},
    },
}
TURNED = {**STEADY, "seed": 13, "kappa": 2.5}
"""What ``south/turncoat`` becomes: it favours the first slot."""

OFFLINE = ("offline/fair", "offline/careless")
JUDGES = [f"{name}/{judge}" for name, judges in TRAITS.items() for judge in judges]
STUDY = f"""
about = "Simulated nights."
[study]
judges = {json.dumps([*JUDGES, *OFFLINE])}
perturbations = ["fake_reference", "factual_error"]
limit = 15
votes_per_pair = 4
wave = "{{date}}"
budget_usd = 5
"""
ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


class Provider:
    """An emulated provider that can be down; its address stays."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.asked, self._port, self._starts = name, 0, 0, 0
        self._process: subprocess.Popen[str] | None = None
        self.base = self.start()
        tables = "".join(
            f'[judges.{judge}]\nmodel = "hosted_vllm/{judge}"\nparams = {{ max_tokens = 20 }}\n'
            "usd_per_million = { prompt = 1, completion = 2 }\n"
            for judge in TRAITS[name]
        )
        head = f'[provider]\napi_base = "{self.base}"\nconcurrency = 16\n'
        (folder / f"{name}.toml").write_text(head + tables)

    def start(self) -> str:
        """Serve, with votes that were not drawn before."""
        self._process = subprocess.Popen(
            [sys.executable, EMULATOR, "--port", str(self._port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout
        base = self._process.stdout.readline().strip()
        self._port = int(base.split(":")[2].split("/")[0])
        self._starts += 1
        behaviour = {"latency": 0.02, "vary": True, "seed": 10_000 * self._starts}
        _request(base, "/behaviour", {**behaviour, "traits": TRAITS[self.name]})
        return base

    def stop(self) -> None:
        """End it."""
        if self._process:
            self.asked += stats(self.base)["requests"]
            self._process.terminate()
            self._process.wait()
            self._process = None

    def requests(self) -> int:
        """Return how often it was asked, by all that it was."""
        return self.asked + (stats(self.base)["requests"] if self._process else 0)

    def change(self, judge: str, traits: dict[str, Any]) -> None:
        """Let a judge be another one from now on."""
        _request(self.base, "/behaviour", {"traits": {**TRAITS[self.name], judge: traits}})


class Serving:
    """A ``voirdire serve`` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start `voirdire serve`; return when deployments are served."""
        before = self.said()
        with self.log.open("ab") as file:
            self.process = subprocess.Popen(
                [HERE, "serve", "--port", str(self.port)],
                cwd=self.folder,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(lambda: "Deployments are served." in self.said()[len(before) :], self.require_alive)

    def stop(self) -> int:
        """End it as a service manager does; return its exit code."""
        if self.process is None:
            return 0
        family = _family(self.process.pid)
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(BEHIND_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        end = time.monotonic() + 10
        while (left := _alive(family)) and time.monotonic() < end:
            time.sleep(0.1)
        show("processes that serve left behind", len(left), 0)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.process = None
        return code

    def said(self) -> str:
        """Return its log."""
        return self.log.read_text() if self.log.exists() else ""

    def memory(self) -> float:
        """Return how many MB it takes with its server."""
        assert self.process
        return sum(_usage(pid)[0] for pid in _family(self.process.pid))

    def ask(self, path: str, body: object = None) -> Any:
        """Ask the server; send ``body``, if there is one."""
        access = find_server()
        assert access
        assert access.auth
        encoded = base64.b64encode(access.auth.encode()).decode()
        headers = {"Authorization": f"Basic {encoded}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(access.url + path, data, headers)
        for left in reversed(range(BUSY_TRIES)):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                # As Prefect's clients do: its database refuses a write during another one.
                if error.code != 503 or not left:
                    raise
            time.sleep(2)
        raise AssertionError

    def require_alive(self) -> None:
        """Raise if it has ended."""
        if self.process and self.process.poll() is not None:
            raise RuntimeError(f"voirdire serve ended: {self.said()[-2000:]}")


class Night(NamedTuple):
    """What a night took and left."""

    number: int
    wave: str
    state: str
    seconds: float
    from_due_to_end: float
    said: str
    warehouse: float
    """MB, as the following."""
    prefect: float
    results: float
    memory: float
    report: str


def until(ask: Callable[[], Any], alive: Callable[[], None], seconds: float = NIGHT_SECONDS) -> Any:
    """Return what ``ask`` returns as soon as it is something."""
    end = time.monotonic() + seconds
    while not (found := ask()):
        if time.monotonic() > end:
            raise RuntimeError(f"nothing came within {seconds:g} s")
        alive()
        time.sleep(0.2)
    return found


def night(number: int, serving: Serving, providers: dict[str, Provider], store: Warehouse) -> Night:
    """Let one night pass, and return what it left."""
    wave = f"{FIRST + dt.timedelta(number - 1):%Y-%m-%d}"
    before = len(serving.said())
    if number == DOWN:
        providers["north"].stop()
    if number == CHANGED:
        providers["south"].change("turncoat", TURNED)
    began = time.monotonic()
    run = schedule(serving, wave)
    if number == RESTARTED:
        restart(serving, providers["south"], run, store)
    ended = until(lambda: _ended(serving, run), serving.require_alive)
    if number == DOWN:
        providers["north"].start()
    folder = serving.folder
    report = folder / "reports" / "nights.html"
    return Night(
        number,
        wave,
        ended["state"]["name"],
        _seconds(ended["start_time"], ended["end_time"]),
        time.monotonic() - began,
        serving.said()[before:],
        _size(store.path),
        _size(folder / "prefect" / "prefect.db"),
        _size(folder / "prefect" / "storage"),
        serving.memory(),
        report.read_text() if report.exists() else "",
    )


def schedule(serving: Serving, wave: str) -> str:
    """Schedule a run of the deployment for the small hours of a date; return its id."""
    due = {"scheduled_time": f"{wave}T01:45:00Z"}
    deployment = serving.ask("/deployments/name/audit/nights")["id"]
    state = {"state": {"type": "SCHEDULED", "state_details": due}}
    return str(serving.ask(f"/deployments/{deployment}/create_flow_run", state)["id"])


def restart(serving: Serving, provider: Provider, run: str, store: Warehouse) -> None:
    """End ``serve`` while a run asks, start it again, and retry the run as its page does."""
    before = provider.requests()
    until(lambda: provider.requests() > before + 40, serving.require_alive)
    began = time.monotonic()
    code = serving.stop()
    show("restart: exit code of serve", code, 0)
    show("restart: seconds to its end", time.monotonic() - began, None, "s")
    left = store.query("select state, asked, error from runs where run = ?", [run]).rows()
    print(f"restart: the run's row: {left}", flush=True)
    serving.start()
    state = serving.ask(f"/flow_runs/{run}")["state"]
    print(f"restart: the night is {state['name']}: {state['message']}", flush=True)
    if state["type"] in ENDED:
        retry = {"state": {"type": "SCHEDULED", "name": "AwaitingRetry"}}
        serving.ask(f"/flow_runs/{run}/set_state", retry)
        until(lambda: not _ended(serving, run), serving.require_alive)


def _ended(serving: Serving, run: str) -> dict[str, Any] | None:
    found: dict[str, Any] = serving.ask(f"/flow_runs/{run}")
    return found if found["state"]["type"] in ENDED else None


def _seconds(start: str, end: str) -> float:
    first, last = (dt.datetime.fromisoformat(text) for text in (start, end))
    return (last - first).total_seconds()


def _alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z":
            found.append(pid)
    return found


def _size(path: Path) -> float:
    """Return the MB of a folder, or of a file and those beside it whose names begin with its."""
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}*")
    return sum(file.stat().st_size for file in files if file.is_file()) / 2**20


def check_nights(nights: list[Night], store: Warehouse) -> None:
    """Check that every night has a row in ``runs``, complete but for the provider that was down."""
    rows = store.query(
        "select json_extract_string(parameters, '$.wave') as wave, state, planned, asked, failed, "
        "from_warehouse, error from runs where study = 'nights' order by wave"
    )
    show("nights that left no row in runs", NUMBER - rows["wave"].n_unique(), 0)
    show("rows in runs beyond one per night", rows.height - rows["wave"].n_unique(), 0)
    for one, row in zip(nights, rows.to_dicts(), strict=False):
        down = one.number == DOWN
        state, name = ("completed with gaps", "CompletedWithGaps") if down else ("completed",) * 2
        if (row["state"], one.state.lower()) != (state, name.lower()):
            print(f"night {one.number} is {row['state']} ({one.state}): {row['error']}")
            missed.append(f"night {one.number}")
        if down:
            print(f"night {DOWN} says: {row['error']}")
            votes = store.query(
                "select judge, count(choice) as votes, count(*) as ballots from ballots "
                "left join votes using (ballot_id) where wave = ? group by all order by judge",
                [one.wave],
            )
            for judge, cast, ballots in votes.rows():
                wanted = 0 if judge.startswith("north/") else ballots
                show(f"night {DOWN}: votes of {judge} that should not be so", abs(cast - wanted), 0)


def check_votes(providers: dict[str, Provider], store: Warehouse) -> None:
    """Check that no vote was asked twice, but for what was in flight at the restart.

    By keys, and by the calls that the providers saw.
    """
    one = "pair_id, judge, prompt, wave, shown_first, repeat"
    keys = f"select count(*) - count(distinct ({one})) from ballots"
    show("ballots that are there twice", store.query(keys).item(), 0)
    again = "select count(*) - count(distinct ballot_id) from votes"
    show("votes that are there twice", store.query(again).item(), 0)
    for name, provider in providers.items():
        votes = store.query(
            "select count(*) from votes join ballots using (ballot_id) where starts_with(judge, ?)",
            [f"{name}/"],
        ).item()
        # What was in flight when serve was ended may be asked again.
        show(f"calls of {name}", provider.requests())
        show(f"calls of {name} beyond its votes", provider.requests() - votes, 16)


def check_drift(nights: list[Night], store: Warehouse) -> None:
    """Check that the changed judge is an alert at once or the night after, and no other is."""
    number = {one.wave: one.number for one in nights}
    rows = store.query(
        "select judge, wave, state, measure, perturbation, estimate, p_adjusted from drifts "
        "where study = 'nights' and state in ('alert', 'suspect') order by wave, judge, measure"
    ).rows()
    true: set[int] = set()
    suspects: set[int] = set()
    false: set[int] = set()
    for judge, wave, state, measure, perturbation, change, p in rows:
        at = number[wave]
        right = judge == "south/turncoat" and CHANGED <= at <= CHANGED + 1
        text = (
            f"{state}: night {at}, {judge}, {measure} {perturbation or ''} {change:+.3f} p {p:.2g}"
        )
        print(f"{'' if right else 'FALSE '}{text}")
        if right:
            true |= {at} if state == "alert" else set()
        else:
            (false if state == "alert" else suspects).add(at)
    show("nights with an alert for the changed judge: none", not true, 0)
    show("night of that alert", min(true, default=0), CHANGED + 1)
    # Suspects are what the budget bounds; an alert is one that the next night confirmed. More than
    # two would come in 4 of 1000 such months.
    allowed = (NUMBER - 1) * BUDGET / DEFAULTS.nights_per_false_alert
    print(f"the budget allows {allowed:.2f} nights with a false suspect, in the mean")
    show("nights with a false suspect", len(suspects), 2)
    show("nights with a false alert", len(false), 0)


class Reader(HTMLParser):
    """Reads a page: which elements are open at its end, and its text."""

    VOID = frozenset({"meta", "link", "br", "img", "hr", "input", "col", "wbr", "source"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong = 0
        self.rows = 0

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.rows += tag == "tr"
        if tag not in self.VOID and not tag.startswith("path"):
            self.open.append(tag)

    def handle_startendtag(self, *_: Any) -> None:
        """Pass over an element that is closed at once."""

    def handle_endtag(self, tag: str) -> None:
        """Note that an element ends."""
        if tag in self.open:
            while self.open and self.open.pop() != tag:
                pass
        else:
            self.wrong += 1


def check_reports(nights: list[Night], place: Path) -> None:
    """Check that every night's report can be read, is of that night and names every judge."""
    wrong = []
    for one in nights:
        reader = Reader()
        reader.feed(one.report)
        names = all(judge in one.report for judge in [*JUDGES, *OFFLINE])
        whole = one.report.rstrip().endswith("</html>") and not reader.open and not reader.wrong
        good = whole and names and one.wave in one.report and reader.rows > 20
        if not good or re.search(r">\s*(None|nan|NaN)\s*<", one.report):
            wrong.append(one.number)
    print(f"nights whose report is not as it should be: {wrong or 'none'}")
    show("reports that are not as they should be", len(wrong), 0)
    if not (chromium := shutil.which("chromium")):
        leave_out("reports in Chromium", "no chromium here")
        return
    complaints = unopened = 0
    for one in nights:
        page = place / f"night-{one.number}.html"
        page.write_text(one.report)
        done = subprocess.run(
            [
                chromium,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--enable-logging=stderr",
                "--window-size=1200,1600",
                f"--user-data-dir={place / 'chromium'}",
                f"--screenshot={page.with_suffix('.png')}",
                page.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        complaints += len(re.findall(r"CONSOLE", done.stderr))
        unopened += not page.with_suffix(".png").exists()
    show("reports that Chromium did not open", unopened, 0)
    show("complaints of Chromium about them", complaints, 0)


def check_log(nights: list[Night]) -> None:
    """Check that the log of serve has no error, and show its warnings."""
    lines = [(one.number, line) for one in nights for line in one.said.splitlines()]
    wrong = [(number, line) for number, line in lines if SEVERE.search(line)]
    for number, line in wrong[:20]:
        print(f"night {number}: {line[:300]}")
    show("error lines in the log of serve", len(wrong), 0)
    for number, line in lines:
        if "WARNING" in line or "interrupted" in line:
            print(f"night {number}: {line[:400]}")


def check_growth(nights: list[Night], place: Path) -> None:
    """Show the growth per night, and whether a late night takes longer than an early one."""
    first, last = nights[1], nights[-1]
    print(f"of Prefect's database events, which it deletes after a week: {events(place):.1f} MB")
    for name in ("warehouse", "prefect", "results", "memory", "report"):
        values = [getattr(one, name) for one in (first, last)]
        if name == "report":
            values = [len(text) / 2**20 for text in values]
        each = (values[1] - values[0]) / (NUMBER - 2)
        show(f"{name}: night 2, MB", values[0])
        show(f"{name}: night {NUMBER}, MB", values[1])
        show(f"{name}: more each night, MB", each)
    ordinary = [one for one in nights if one.number not in {DOWN, RESTARTED}]
    for group in (ordinary[:5], ordinary[-5:]):
        mean = sum(one.seconds for one in group) / len(group)
        show(f"seconds of nights {group[0].number} to {group[-1].number}, in the mean", mean)
    show(f"seconds of night {DOWN}, with a provider down", nights[DOWN - 1].seconds)


def events(place: Path) -> float:
    """Return the MB of events, and of what finds them, in Prefect's database."""
    with closing(sqlite3.connect(place / "prefect" / "prefect.db")) as connection:
        pages = "select sum(pgsize) / 1048576.0 from dbstat where name glob '*event*'"
        return float(connection.execute(pages).fetchone()[0])


@contextmanager
def place_of(kept: Path | None) -> Iterator[Path]:
    """Yield the folder that was named, or one that is removed in the end."""
    if kept:
        kept.mkdir(parents=True)
        yield kept.absolute()
    else:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)


def prepare(place: Path) -> None:
    """Write the study, and let all that is started live in this folder alone."""
    hidden = ("_API_KEY", "PREFECT_API_URL", "PREFECT_API_AUTH_STRING")
    for name in [name for name in os.environ if name.endswith(hidden)]:
        del os.environ[name]
    os.environ.update(
        PREFECT_HOME=str(place / "prefect"),
        VOIRDIRE_HOME=str(place / "home"),
        VOIRDIRE_PROVIDERS=str(place / "providers"),
        COLUMNS="200",
        NO_COLOR="1",
        VOIRDIRE_WAREHOUSE=str(place / "voirdire.duckdb"),
        PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL="INFO",
    )
    (place / "home" / "studies").mkdir(parents=True)
    (place / "providers").mkdir()
    (place / "home" / "studies" / "nights.toml").write_text(STUDY)


def main() -> None:
    """Let the nights pass, then check."""
    parser = argparse.ArgumentParser(description="Thirty nights of a served study.")
    parser.add_argument("--quick", action="store_true", help="nine nights")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder to work in")
    with place_of(parser.parse_args().keep) as place:
        prepare(place)
        serving, store = Serving(place), Warehouse(place / "voirdire.duckdb")
        providers = {name: Provider(name, place / "providers") for name in TRAITS}
        nights: list[Night] = []
        try:
            serving.start()
            for number in range(1, NUMBER + 1):
                nights.append(night(number, serving, providers, store))
                one = nights[-1]
                print(
                    f"night {number:2}  {one.wave}  {one.state:18} {one.seconds:6.1f} s, from due "
                    f"to end {one.from_due_to_end:6.1f} s  warehouse {one.warehouse:6.1f} MB  "
                    f"Prefect {one.prefect:6.1f} MB  results {one.results:6.1f} MB  memory "
                    f"{one.memory:6.0f} MB",
                    flush=True,
                )
            show("exit code of serve", serving.stop(), 0)
            print(f"{'':58}{'':>10}{'at most':>10}")
            check_nights(nights, store)
            check_votes(providers, store)
            check_drift(nights, store)
            check_reports(nights, place)
            check_log(nights)
            check_growth(nights, place)
        finally:
            serving.stop()
            for provider in providers.values():
                provider.stop()
    finish()


if __name__ == "__main__":
    main()
