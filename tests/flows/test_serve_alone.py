"""``voirdire serve`` with a server of its own: who gets in, what is scheduled, what stays.

It starts twice in all, as each start takes seconds.
"""

import base64
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from child_processes import PYTHONPATH
from waiting import PATIENCE_SECONDS, wait_for

from flows.running.processes import HOST
from warehouse.store import Warehouse

pytestmark = [pytest.mark.served, pytest.mark.slow]
NIGHT = """
about = "A night a minute."
cron = "* * * * *"
[study]
name = "{name}"
limit = 4
judges = ["offline/random"]
perturbations = ["fake_reference"]
wave = "{{minute}}"
timezone = "Europe/Berlin"
"""
JUDGE = "[judges.one]\nmodel = 'hosted_vllm/one'\nparams = { max_tokens = 9 }\n"
PAID = "[provider]\nkey_variable = 'PAID_API_KEY'\n" + JUDGE


SPENDER = NIGHT.format(name="spender").replace("* * * * *", "0 3 * * *")


class Serving:
    """A ``voirdire serve`` that can be ended and started again in the same folder."""

    def __init__(self, folder: Path, voirdire_in: Callable[..., Any]) -> None:
        self.folder, self._voirdire_in = folder, voirdire_in
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        hidden = ("_API_KEY", "PREFECT_API_URL", "PREFECT_API_AUTH_STRING")
        self.environment = {
            # Tests that served in this process have set where things are.
            **{
                k: v
                for k, v in os.environ.items()
                if not k.endswith(hidden) and not k.startswith("VOIRDIRE_")
            },
            "PREFECT_HOME": str(folder / "prefect"),
            "PYTHONPATH": PYTHONPATH,
            "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
            # Of audits they are less, which commands in this process would take over.
            "PREFECT_CLIENT_MAX_RETRIES": "5",
            "PREFECT_API_REQUEST_TIMEOUT": "60",
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }
        self.log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *words: str) -> str:
        """Start `voirdire serve`; return its output until deployments are served."""
        before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "flows.cli", "serve", "--port", str(self.port), *words],
                cwd=self.folder,
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return wait_for(lambda: self._said(before), "no studies are served")

    def stop(self, how: signal.Signals) -> tuple[int, str]:
        """End it, and wait for the end of its server; return the exit code and its last words."""
        assert self.process
        before = self.log.stat().st_size
        # As a terminal sends Ctrl-C: to the command and all that it started in its group.
        os.killpg(self.process.pid, how)
        code = self.process.wait(timeout=PATIENCE_SECONDS)
        self.process = None
        wait_for(lambda: not self._answers(), "the server did not end")
        return code, self.log.read_text()[before:]

    def run(
        self, *words: str, folder: Path | None = None, **more: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run another command of the same user, in this process; by default in its folder."""
        done: subprocess.CompletedProcess[str] = self._voirdire_in(
            folder or self.folder, self.environment
        )(*words, **more)
        return done

    def _answers(self) -> bool:
        with socket.socket() as one:
            one.settimeout(1)
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def api(self) -> str:
        """The address of its server."""
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def auth(self) -> str:
        """The authentication string."""
        return (self.folder / "prefect" / "voirdire" / "auth").read_text()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        api: str = "/api",
        **headers: str | None,
    ) -> tuple[int, Any]:
        """Send a request; headers with None are left out. Return the answer's status and body.

        Like Prefect's client, send it again while the server's database is locked (503).
        """
        for _ in range(20):
            status, text = self._ask(method, api + path, body, headers)
            if status != 503:
                break
            time.sleep(0.5)
        return status, text

    def _ask(
        self, method: str, path: str, body: object, headers: dict[str, str | None]
    ) -> tuple[int, Any]:
        encoded = base64.b64encode(self.auth.encode()).decode()
        sent = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Basic {encoded}",
            "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.putrequest(method, path, skip_host=True)
            data = b"" if body is None else json.dumps(body).encode()
            for name, value in {**sent, "Content-Length": str(len(data))}.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(data)
            answer = connection.getresponse()
            text = answer.read().decode()
            reported = (answer.headers.get_content_type() == "application/json") and text
            return answer.status, json.loads(text) if reported else text
        finally:
            connection.close()

    def deployment(self, name: str) -> dict[str, Any]:
        """Return a deployment of ``audit``."""
        status, found = self.ask("GET", f"/deployments/name/audit/{name}")
        assert status == 200, found
        return dict(found)

    def scheduled(self, name: str) -> list[dict[str, Any]]:
        """Return the runs of a deployment that are to come."""
        query = {
            "deployments": {"name": {"any_": [name]}},
            "flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}},
        }
        return list(self.ask("POST", "/flow_runs/filter", query)[1])

    def _said(self, before: int) -> str | None:
        said = self.log.read_text()[before:]
        assert self.process
        ended = self.process.poll() is not None
        return said if "Deployments are served." in said or ended else None


@pytest.fixture(scope="module")
def serving(
    tmp_path_factory: pytest.TempPathFactory,
    prefect_home: Callable[[Path], str],
    voirdire_in: Callable[..., Any],
) -> Iterator[Serving]:
    """Serve the bundled studies, one that runs each minute, one each night and a broken one."""
    folder = tmp_path_factory.mktemp("serving")
    studies, providers = folder / "voirdire" / "studies", folder / "providers"
    studies.mkdir(parents=True)
    providers.mkdir()
    (studies / "minutely.toml").write_text(NIGHT.format(name="minutely"))
    (studies / "spender.toml").write_text(SPENDER)
    (studies / "torn.toml").write_text("about = ")
    (providers / "paid.toml").write_text(PAID)
    prefect_home(folder / "prefect")
    serving = Serving(folder, voirdire_in)
    serving.environment["VOIRDIRE_PROVIDERS"] = str(providers)
    serving.said = serving.start()  # type: ignore[attr-defined]
    yield serving
    if serving.process:
        serving.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def joined(serving: Any) -> "subprocess.CompletedProcess[str]":
    """Audit while it serves."""
    words = ("audit", "--limit", "2", "--judge", "offline/random", "--name", "joined")
    done: subprocess.CompletedProcess[str] = serving.run(*words)
    return done


def test_it_tells_what_is_served_and_how_to_switch_it_on(serving: Any) -> None:
    said = serving.said
    assert f"Prefect UI: http://127.0.0.1:{serving.port}/deployments" in said
    assert said.count(serving.auth) == 1
    lines = {line.split()[0]: re.split(r"  +", line.strip()) for line in said.splitlines() if line}
    assert lines["canary"][1:4] == ["45 1 * * * UTC", "off", "20 USD"]
    assert lines["canary"][4].startswith("missing: ANTHROPIC_API_KEY")
    assert lines["nightly"][1:4] == ["15 2 * * 1 UTC", "off", "40 USD"]
    assert lines["minutely"][1:] == ["* * * * * Europe/Berlin", "on"]
    assert "`voirdire schedules --on NAME`" in said
    assert "the study 'torn' of " in said


def test_what_lets_in_is_the_users_alone(serving: Any) -> None:
    folder = serving.folder / "prefect" / "voirdire"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    kept = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert kept == dict.fromkeys(("auth", "authority.pem", "server.json"), 0o600)
    assert len(serving.auth) > 30


def test_a_page_of_another_site_is_refused(serving: Any) -> None:
    path = f"/deployments/{serving.deployment('quick')['id']}"
    body = {"entrypoint": "evil.flow", "pull_steps": [{"prefect.projects.steps.run_shell": {}}]}
    evil = "http://evil.example"
    wants = {"Access_Control_Request_Method": "PATCH", "Access_Control_Request_Headers": "x"}
    for origin in (evil, "null", f"http://127.0.0.1:{serving.port + 1}"):
        preflight = serving.ask("OPTIONS", path, Authorization=None, Origin=origin, **wants)
        assert preflight[0] == 400
        # Even one that was let in: with --no-auth nothing else would stop it.
        assert serving.ask("PATCH", path, body, Origin=origin)[0] == 400
    own = f"http://127.0.0.1:{serving.port}"
    wants["Access_Control_Request_Headers"] = "content-type"
    assert serving.ask("OPTIONS", path, Authorization=None, Origin=own, **wants)[0] == 200
    assert serving.deployment("quick")["entrypoint"] == "flows.audit.audit"


def test_icons_that_pages_of_prefect_name_wrongly_are_there(serving: Any) -> None:
    # A browser would report each as an error on the page of a run.
    for path in ("/ico/undefined.svg", "/favicon-dark.ico", "/favicon.ico"):
        bare = {"Authorization": None, "Accept": "image/*", "Content_Type": None}
        assert serving.ask("HEAD", path, api="", **bare)[0] == 200


def test_who_does_not_authenticate_is_refused(serving: Any) -> None:
    path = f"/deployments/{serving.deployment('quick')['id']}"
    body = {"entrypoint": "evil.flow"}
    wrong = base64.b64encode(b"voirdire:guess").decode()
    for sent in (None, f"Basic {wrong}", "Bearer x", "Basic"):
        assert serving.ask("PATCH", path, body, Authorization=sent)[0] == 401
        assert serving.ask("POST", "/flow_runs/filter", {}, Authorization=sent)[0] == 401
    assert serving.deployment("quick")["entrypoint"] == "flows.audit.audit"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "", "127.0.0.1.evil:1"])
def test_a_name_that_was_rebound_to_this_machine_is_refused(serving: Any, host: str) -> None:
    reported = serving.ask("GET", "/health", Host=host.format(port=serving.port))
    assert reported == (400, "Invalid host header")


def test_a_socket_of_another_site_is_refused(serving: Any) -> None:
    asked = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    key = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==", "Content_Type": None}
    for place in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        assert serving.ask("GET", "/events/in", **asked, **key, **place)[0] == 403


def test_only_pages_without_data_are_open(serving: Any) -> None:
    page = {"Authorization": None, "Accept": "text/html", "Content_Type": None}
    for path in ("/", "/deployments", "/runs"):
        status, text = serving.ask("GET", path, api="", **page)
        # At the root a redirection to the pages.
        assert status in {200, 307}
        assert not {"nightly", serving.auth} & set(re.split(r"\W", text))
    settings = serving.ask("GET", "/ui-settings", api="", Authorization=None)
    assert (settings[0], settings[1]["auth"]) == (200, "BASIC")
    assert serving.auth not in json.dumps(settings[1])
    described = serving.ask("GET", "/openapi.json", api="", Authorization=None)[1]
    # Of all that the server answers, to whoever does not authenticate: that it is up.
    anyone = "00000000-0000-0000-0000-000000000000"
    answers = {
        (way, path): serving.ask(way.upper(), re.sub(r"{\w+}", anyone, path), Authorization=None)[0]
        for path, ways in described["paths"].items()
        for way in ways
    }
    assert len(answers) > 100
    open_to_all = {asked for asked, status in answers.items() if status != 401}
    assert open_to_all == {("get", "/health"), ("get", "/ready")}
    # Pages of Prefect's with scripts of another host.
    # Prefect's other UI asks a host outside, whatever is set.
    assert serving.ask("GET", "/ui-settings", api="")[1]["default_ui"] == "v1"
    for path in ("/docs", "/redoc", "/api/docs"):
        assert serving.ask("GET", path, api="", **page)[0] == 400


def test_two_nights_run_by_themselves(serving: Any) -> None:
    warehouse = Warehouse(serving.folder / "voirdire.duckdb")
    wanted = "select json_extract_string(parameters, '$.wave') as wave, state from runs"
    ended = f"{wanted} where study = 'minutely' and state <> 'running' order by started_at"
    # Of a run that starts late, on a busy machine, the wave is the minute in which it asks.
    rows = wait_for(
        lambda: (f := warehouse.query(ended))["wave"].n_unique() >= 2 and f.to_dicts(),
        "fewer than two nights ran",
    )
    assert {row["state"] for row in rows} == {"completed"}, serving.log.read_text()
    waves = list(dict.fromkeys(row["wave"] for row in rows))
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d\+0[12]:00", wave) for wave in waves)
    voted = warehouse.query(
        "select distinct wave from votes join ballots using (ballot_id) where wave <> ''"
    )
    assert set(waves[:2]) <= set(voted["wave"])
    query = {"flow_runs": {"name": {"any_": [f"minutely {wave}" for wave in waves[:2]]}}}
    runs = serving.ask("POST", "/flow_runs/filter", query)[1]
    assert {run["name"] for run in runs} == {f"minutely {wave}" for wave in waves[:2]}
    assert {run["state"]["type"] for run in runs} == {"COMPLETED"}
    assert {"study:minutely", "kind:audit"} <= set(runs[0]["tags"])
    log = serving.log.read_text()
    for line in ("ERROR", "Traceback", "CRITICAL", "WARNING"):
        assert line not in log, log
    assert log.count(serving.auth) == 1


def test_schedules_of_studies_elsewhere_are_shown_too(serving: Any, tmp_path: Path) -> None:
    # From now on each minute would take a process of its own.
    switched = serving.run("schedules", "--off", "minutely", folder=tmp_path)
    assert switched.returncode == 0, switched.stderr
    assert not serving.deployment("minutely")["schedules"][0]["active"]
    there = serving.run("schedules")
    assert "minutely" in there.stdout, there.stderr
    elsewhere = serving.run("schedules", folder=tmp_path)
    assert sorted(elsewhere.stdout.splitlines()) == sorted(there.stdout.splitlines())


def test_the_page_of_a_run_leads_to_its_report_and_pictures(serving: Any) -> None:
    def newest() -> dict[str, str] | None:
        asked = {"artifacts": {"key": {"any_": ["answer", "forest"]}}}
        found = serving.ask("POST", "/artifacts/latest/filter", asked)[1]
        return {each["key"]: each["data"] for each in found} if len(found) == 2 else None

    data = wait_for(newest, "no run has shown an answer")
    assert "## Which judge to use" in data["answer"]
    assert "| offline/random (simulated) | fake\\_reference |" in data["answer"]
    report = re.search(r"\[Open the newest report of the study\]\((.+)\)", data["answer"])
    assert report
    bare = {"Authorization": None, "Content_Type": None}
    for link, begins in ((report[1], "<!doctype html>"), (data["forest"], "<svg ")):
        place = link.removeprefix(f"http://127.0.0.1:{serving.port}")
        status, text = serving.ask("GET", place, api="", **bare)
        assert (status, text[: len(begins)].lower()) == (200, begins)
        assert serving.ask("GET", place.partition("?")[0], api="", **bare)[0] == 401
        assert serving.ask("GET", place.partition("?")[0], api="")[0] == 200
        evil = {"Origin": "http://evil.example"}
        assert serving.ask("GET", place, api="", **bare, **evil)[0] == 400
    assert not re.search(r"ERROR|CRITICAL|Traceback", serving.log.read_text())


def test_the_scheduler_schedules_what_the_ui_switches_on(serving: Any) -> None:
    for active in (True, False):
        for name in ("nightly", "canary"):
            found = serving.deployment(name)
            path = f"/deployments/{found['id']}/schedules/{found['schedules'][0]['id']}"
            assert serving.ask("PATCH", path, {"active": active})[0] == 204
        # Nobody asks for runs: they come by the server's own loop, or not at all.
        wanted = [active] * 2
        wait_for(
            lambda w=wanted: [bool(serving.scheduled(n)) for n in ("nightly", "canary")] == w,
            f"no runs that fit active={active}",
        )


def test_schedules_are_switched_on_from_another_terminal(serving: Any) -> None:
    done = serving.run("schedules", "--on", "nightly", "--on", "canary")
    assert done.returncode == 0, done.stderr
    states = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert re.search(r"15 2 \* \* 1 UTC +on +40 USD", states["nightly"])
    wait_for(lambda: all(serving.scheduled(n) for n in ("nightly", "canary")), "no runs")
    unknown = serving.run("schedules", "--on", "nihgtly")
    assert (unknown.returncode, "Did you mean 'nightly'?" in unknown.stderr) == (2, True)
    none = serving.run("schedules", "--on", "quick")
    assert "quick has no schedule to switch" in none.stderr
    # Tests that follow read a log without errors: no night without a key may become due.
    assert serving.run("schedules", "--off", "nightly", "--off", "canary").returncode == 0


def test_a_study_added_while_serving_hides_no_schedule(serving: Any) -> None:
    file = serving.folder / "voirdire" / "studies" / "added.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(NIGHT.format(name="added"))
    try:
        done = serving.run("schedules")
        switched = serving.run("schedules", "--on", "added")
    finally:
        file.unlink()
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ *canary .* USD", done.stdout, re.MULTILINE)
    assert done.stderr.startswith("Not served yet: added. Restart `voirdire serve`")
    assert done.stderr.count("\n") == 1
    assert switched.returncode == 2
    assert "'added' is not served yet" in switched.stderr


def test_an_audit_joins_the_users_own_server(serving: Any, joined: Any) -> None:
    assert joined.returncode == 0, joined.stderr
    assert serving.auth not in joined.stdout + joined.stderr
    query = {"flow_runs": {"name": {"like_": "joined "}}}
    [run] = serving.ask("POST", "/flow_runs/filter", query)[1]
    page = f"{serving.api.removesuffix('/api')}/runs/flow-run/{run['id']}"
    assert f"Prefect: {page}" in joined.stdout
    assert {"study:joined", "kind:audit", "voirdire"} <= set(run["tags"])


def test_a_second_one_says_that_the_first_runs(serving: Any) -> None:
    done = serving.run("serve", "--port", "4299")
    assert done.returncode == 2
    assert "`voirdire serve` is already running" in done.stderr
    assert str(serving.port) in done.stderr
    other = serving.run("serve", "--port", str(serving.port), PREFECT_HOME=str(serving.folder))
    assert other.returncode == 2
    assert f"port {serving.port} of 127.0.0.1 cannot be used" in other.stderr
    # Somebody's server is not attached to because it answers, nor without its string.
    home = {"PREFECT_HOME": str(serving.folder), "VOIRDIRE_PROVIDERS": ""}
    named = serving.run("audit", "--limit", "2", "--server", serving.api, **home)
    assert named.returncode == 2
    assert "asks for authentication: set PREFECT_API_AUTH_STRING" in named.stderr


def test_a_run_measures_the_wave_of_the_time_it_was_due(serving: Any) -> None:
    deployment = serving.deployment("minutely")["id"]
    due = {"type": "SCHEDULED", "state_details": {"scheduled_time": "2026-01-05T23:30:00Z"}}
    created = serving.ask("POST", f"/deployments/{deployment}/create_flow_run", {"state": due})
    run = created[1]["id"]

    def ended() -> Any:
        state = serving.ask("GET", f"/flow_runs/{run}")[1]["state"]
        return state["type"] in {"COMPLETED", "FAILED", "CRASHED"} and state

    # As the button of the run's page does: a retry, at another time, is of the same wave.
    retry = {"state": {"type": "SCHEDULED", "name": "AwaitingRetry"}, "force": True}
    warehouse = Warehouse(serving.folder / "voirdire.duckdb")
    for asked in (24, 0):
        state = wait_for(ended, "no end of the run")
        assert state["type"] == "COMPLETED", serving.log.read_text()
        found = warehouse.query(
            "select json_extract_string(parameters, '$.wave'), asked from runs where run = ?", [run]
        ).rows()
        # In Berlin it was the next day.
        assert found == [("2026-01-06T00:30+01:00", asked)]
        if asked:
            serving.ask("POST", f"/flow_runs/{run}/set_state", retry)
            wait_for(lambda: not ended(), "no retry")
    # Nor is it marked as late, which Prefect cannot do without a locked database now and then.
    states = serving.ask("GET", f"/flow_run_states/?flow_run_id={run}")[1]
    assert "AwaitingRetry" in {state["name"] for state in states}
    assert "Late" not in {state["name"] for state in states}


@pytest.mark.usefixtures("joined")
def test_what_users_set_survives_a_restart(serving: Any) -> None:
    off = ("--off", "minutely", "--off", "canary")
    assert serving.run("schedules", "--on", "nightly", *off).returncode == 0
    found = serving.deployment("nightly")
    path = f"/deployments/{found['id']}"
    study = {**found["parameters"]["study"], "budget_usd": 7.5}
    mine = {"parameters": {"study": study}, "tags": [*found["tags"], "mine"]}
    assert serving.ask("PATCH", path, {**mine, "entrypoint": "evil.flow"})[0] == 204
    new = {"schedule": {"cron": "0 5 * * 6", "timezone": "Asia/Tokyo"}}
    assert serving.ask("PATCH", f"{path}/schedules/{found['schedules'][0]['id']}", new)[0] == 204
    paused = f"/deployments/{serving.deployment('quick')['id']}"
    assert serving.ask("PATCH", paused, {"paused": True})[0] == 204
    # A file that changed where nobody set anything.
    own = serving.folder / "voirdire" / "studies" / "minutely.toml"
    own.write_text(NIGHT.format(name="minutely").replace("limit = 4", "limit = 3"))
    # One that comes to spend money.
    assert serving.deployment("spender")["schedules"][0]["active"]
    paid = SPENDER.replace("offline/random", "paid/one")
    own.with_name("spender.toml").write_text(paid)
    auth = serving.auth
    store = serving.folder / "voirdire.duckdb"
    with duckdb.connect(str(store)) as connection:
        # As a night that was killed leaves it: its PID is of a process that began later.
        connection.execute(
            "update runs set state = 'running', process = ? where study = 'joined'",
            [f"{HOST}/{os.getpid()}@earlier"],
        )
    code, last = serving.stop(signal.SIGINT)
    assert code == 0, last
    # Its server, interrupted too, once no longer answered: a minute of errors.
    assert "Schedules stay as they are" in last
    assert not (serving.folder / "prefect" / "voirdire" / "server.json").exists()
    serving.said = said = serving.start("--no-auth")
    assert serving.auth == auth
    states = Warehouse(store).query("select state from runs where study = 'joined'")
    assert states["state"].to_list() == ["killed"]
    after = serving.deployment("nightly")
    assert after["parameters"]["study"] == study
    assert after["entrypoint"] == "flows.audit.audit"
    assert "mine" in after["tags"]
    [schedule] = after["schedules"]
    assert (schedule["schedule"]["cron"], schedule["active"]) == ("0 5 * * 6", True)
    assert "nightly: study.budget_usd is 7.5; the study file has 40.0" in said
    assert "nightly: runs at 0 5 * * 6 Asia/Tokyo; the study file has 15 2 * * 1 UTC" in said
    assert not serving.deployment("canary")["schedules"][0]["active"]
    assert serving.deployment("quick")["paused"]
    minutely = serving.deployment("minutely")
    assert minutely["parameters"]["study"]["limit"] == 3
    assert not minutely["schedules"][0]["active"]
    assert "spender: can now spend money, so its schedule was switched off" in said
    [schedule] = serving.deployment("spender")["schedules"]
    assert (schedule["schedule"]["cron"], schedule["active"]) == ("0 3 * * *", False)
    assert re.search(r"spender +0 3 \* \* \* Europe/Berlin +off +missing: PAID_API_KEY", said)
    assert "Traceback" not in serving.log.read_text()


def test_without_authentication_it_says_who_can_run_code(serving: Any) -> None:
    said = serving.said
    assert (
        f"http://127.0.0.1:{serving.port}/api requires no authentication: anyone who can reach "
        "it, such as any user of this machine, can run code as you, with your API keys. To prevent "
        "this, leave out --no-auth."
    ) in said
    assert "Authentication string" not in said
    path = f"/deployments/{serving.deployment('quick')['id']}"
    assert serving.ask("PATCH", path, {"tags": ["open"]}, Authorization=None)[0] == 204
    # Pages of other sites are refused all the same.
    evil = {"Authorization": None, "Origin": "http://evil.example"}
    assert serving.ask("PATCH", path, {"tags": ["evil"]}, **evil)[0] == 400
    assert serving.deployment("quick")["tags"] == ["open"]


def test_its_server_ends_with_one_that_is_killed(serving: Any) -> None:
    assert serving.stop(signal.SIGKILL)[0] == -signal.SIGKILL
