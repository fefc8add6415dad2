"""The engine from end to end, against an emulated provider that fails on purpose."""

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_SECONDS, wait_for

from flows.publishing.served_files import reports_of
from schemas.judging import Votes
from warehouse.store import Warehouse

pytestmark = pytest.mark.served
Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
SMALL = ("audit", "--limit", "6", "--perturbation", "fake_reference", "--judge", "emu/one")
# six questions, three arms, two orders
BALLOTS = 36
SLOW = pytest.mark.slow


def said(folder: Path) -> Path:
    """Return where a run that was begun writes its errors."""
    return folder / "stderr"


@pytest.fixture
def begin(
    emulated: Any, environment: dict[str, str], tmp_path: Path
) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Start a run; return when the provider was asked."""
    with contextlib.ExitStack() as stack:

        def run(*words: str) -> "subprocess.Popen[bytes]":
            process = subprocess.Popen(
                [sys.executable, "-m", "flows.cli", *words],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=stack.enter_context(said(tmp_path).open("wb")),
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            while not emulated.stats()["requests"]:
                assert process.poll() is None
                time.sleep(0.1)
            return process

        yield run


def _runs(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return warehouse.query(
        "select state, planned, from_warehouse, asked, failed from runs order by started_at"
    ).rows()


@pytest.mark.slow
def test_what_a_failing_provider_leaves_is_filled_later(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.provider(attempts=2)
    emulated.behave(faults={"error": 1.0})
    failed = voirdire(*SMALL)
    assert failed.returncode == 3, failed.stderr
    assert f"0 cast, {BALLOTS} without a reply" in failed.stdout
    assert "InternalServerError" in failed.stdout
    assert warehouse.read(Votes).is_empty()
    state, error = warehouse.query("select state, error from runs").row(0)
    assert state == "completed with gaps"
    assert "The server had an error." in error
    assert error.startswith(f"No results: emu/one lacks {BALLOTS} of {BALLOTS} ballots")
    assert "next: correct what the errors say, then run the same command again" in " ".join(
        failed.stdout.split()
    )
    page = (reports_of(warehouse.path) / "quick.html").read_text()
    assert f"Completed with gaps: {BALLOTS} of {BALLOTS} ballots got no reply" in page
    assert "The server had an error." in page
    asked = emulated.stats()["requests"]
    # the breaker left it alone long before two attempts at each ballot
    assert asked < 2 * BALLOTS
    emulated.behave(faults={})
    done = voirdire(*SMALL)
    assert done.returncode == 0, done.stderr
    assert "gaps" not in (reports_of(warehouse.path) / "quick.html").read_text()
    assert f"{BALLOTS} cast, 0 without a reply" in done.stdout
    assert emulated.stats()["requests"] == asked + BALLOTS
    assert _runs(warehouse)[1] == ("completed", BALLOTS, 0, BALLOTS, 0)


@pytest.mark.slow
def test_mixed_faults_lose_and_double_nothing(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    kinds = ("busy", "error", "reset", "truncated", "garbage")
    emulated.behave(faults={**dict.fromkeys(kinds, 0.05), "mute": 0.1}, retry_after=0.05, seed=3)
    done = voirdire(*SMALL, "--votes", "6")
    assert done.returncode == 0, done.stderr
    votes = warehouse.read(Votes)
    reported = emulated.stats()
    assert votes.height == reported["replies"] == 3 * BALLOTS
    assert reported["requests"] > reported["replies"]
    assert votes["attempts"].sum() == reported["requests"]
    # a reply without a verdict is an answer: kept verbatim as invalid, not asked again
    invalid = votes.filter(choice="invalid")
    assert invalid.height > 0
    assert set(invalid["raw"]) == {"Emulated: no verdict."}
    assert set(votes["fingerprint"]) == {"fp_emulated"}
    # 1 and 2 dollars per million tokens
    cost = (reported["prompt_tokens"] + 2 * reported["completion_tokens"]) / 1e6
    assert votes["cost_usd"].sum() == pytest.approx(cost)
    assert warehouse.query("select sum(cost_usd) from mart.cost").item() == pytest.approx(cost)


@pytest.mark.slow
def test_a_provider_that_asks_to_wait_is_asked_again_no_earlier(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.provider(attempts=3)
    emulated.behave(faults={"busy": 1.0}, retry_after=4)

    def relent() -> int:
        """Refuse no longer some time after the first request; return how many were refused."""
        wait_for(lambda: emulated.stats()["requests"], "no judge was asked")
        time.sleep(2.5)
        refused = int(emulated.stats()["requests"])
        emulated.behave(faults={})
        return refused

    with ThreadPoolExecutor(1) as aside:
        relented = aside.submit(relent)
        done = voirdire(*SMALL)
        refused = relented.result()
    assert done.returncode == 0, done.stderr
    # those in flight at once; before, all were left alone within these seconds
    assert refused <= 8
    assert _runs(warehouse) == [("completed", BALLOTS, 0, BALLOTS, 0)]
    assert emulated.stats()["requests"] == BALLOTS + refused


@pytest.mark.slow
def test_replies_without_end_and_bombs_take_little_memory(
    voirdire: Voirdire, workers: Any, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.provider(timeout_seconds=30)
    emulated.behave(faults={"endless": 0.4, "bomb": 0.4}, seed=2)
    ended = threading.Event()

    def watch() -> float:
        """Return the most memory that the worker takes while it is asked."""
        wait_for(lambda: emulated.stats()["requests"], "no judge was asked")
        peak = 0.0
        while not ended.wait(0.1):
            peak = max(peak, _memory(workers.process))
        return peak

    with ThreadPoolExecutor(1) as aside:
        watched = aside.submit(watch)
        done = voirdire(*SMALL, "--limit", "3")
        ended.set()
        peak = watched.result()
    assert done.returncode in {0, 3}, done.stderr
    # before, 4 300 MB and more
    assert 50 < peak < 450
    error = warehouse.query("select error from runs").item()
    assert "invalid reply: the reply is larger than 2 MB" in error
    # what came whole is a vote
    reported = emulated.stats()
    assert reported["endless"] > 0
    assert reported["bomb"] > 0
    assert warehouse.read(Votes).height == reported["replies"]


def _memory(pid: int) -> float:
    """Return a process's share of memory in MB; 0 if it has ended."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return 0.0


@pytest.mark.slow
def test_a_server_that_is_not_there_is_reported_at_once_and_left_alone_soon(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.base = "http://127.0.0.1:9/v1"
    emulated.provider(concurrency=1, pause_seconds=1)
    done = voirdire(*SMALL, COLUMNS="300")
    assert done.returncode == 3
    lost = "no connection to 127.0.0.1:9 (api_base http://127.0.0.1:9/v1): connection refused"
    lines = [line for line in done.stderr.splitlines() if line.startswith("voirdire: emu: ")]
    assert [line.split("; ")[0] for line in lines] == [f"voirdire: emu: {lost}"] * 2
    (why,) = warehouse.query("select error from runs")["error"]
    assert f"{BALLOTS} x not asked: emu never answered" in why
    assert lost in why
    assert "Start its server" in why


@pytest.mark.slow
def test_a_signal_keeps_every_reply_that_came(
    stopped: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.provider(timeout_seconds=900)
    emulated.behave(latency=1)

    def settle() -> None:
        wait_for(lambda: emulated.stats()["requests"], "nothing was asked")
        time.sleep(1.5)
        # what is asked from now on is not answered while the run ends, however busy the machine is
        emulated.behave(latency=600)
        # and what was asked before has come
        settled = -1
        while (replies := emulated.stats()["replies"]) != settled:
            settled = replies
            time.sleep(1.5)

    done = stopped(*SMALL, number=signal.SIGTERM, ready=settle)
    assert done.returncode == 128 + signal.SIGTERM
    line = done.stderr.splitlines()[-1]
    assert line == "voirdire: stopped. All saved votes are kept. Run the command again to continue."
    assert warehouse.query("select state from runs").item() == "cancelled"
    reported = emulated.stats()
    assert 0 < reported["replies"] < BALLOTS
    assert warehouse.read(Votes).height == reported["replies"]


@pytest.mark.slow
@pytest.mark.usefixtures("made_home")
def test_a_signal_waits_for_no_file_that_is_busy_and_no_server(
    begin: Callable[..., "subprocess.Popen[bytes]"],
    voirdire: Voirdire,
    warehouse: Warehouse,
    emulated: Any,
    environment: dict[str, str],
) -> None:
    server = environment.pop("PREFECT_API_URL")
    emulated.behave(latency=1)
    process = begin(*SMALL)
    with warehouse._visit(write=True):
        # a save begins each second, and waits now
        time.sleep(2.5)
        process.send_signal(signal.SIGINT)
        # The file is still held.
        assert process.wait(timeout=PATIENCE_SECONDS) == 128 + signal.SIGINT
    kept = warehouse.read(Votes).height
    replied = emulated.stats()["replies"]
    assert kept < replied
    environment["PREFECT_API_URL"] = server
    again = voirdire(*SMALL)
    assert again.returncode == 0, again.stderr
    assert warehouse.read(Votes).height == BALLOTS
    assert [state for state, *_ in _runs(warehouse)] == ["killed", "completed"]
    # asked anew is only what was in flight
    assert emulated.stats()["replies"] <= BALLOTS + 8


@pytest.mark.slow
def test_killed_run_goes_on_where_it_stopped(
    begin: Callable[..., "subprocess.Popen[bytes]"],
    voirdire: Voirdire,
    warehouse: Warehouse,
    emulated: Any,
    ask_server: Callable[..., Any],
) -> None:
    emulated.provider(timeout_seconds=900)
    emulated.behave(latency=1)
    process = begin(*SMALL)
    # what is asked from now on is not answered, so the run cannot end before it is killed
    emulated.behave(latency=600)
    wait_for(lambda: warehouse.query("select count(*) from votes").item(), "no vote was saved")
    process.kill()
    process.wait()
    emulated.behave(latency=0)
    before = warehouse.read(Votes)
    assert 0 < before.height < BALLOTS
    run = warehouse.query("select run from runs").item()
    assert ask_server(f"/flow_runs/{run}")["state_type"] == "RUNNING"
    done = voirdire(*SMALL)
    assert done.returncode == 0, done.stderr
    # The server learns from the next run that one was killed.
    state = ask_server(f"/flow_runs/{run}")["state"]
    assert state["type"] == "CRASHED"
    assert state["message"] == (
        "Its process was killed. Its votes are kept: `voirdire audit quick --perturbation "
        f"fake_reference --judge emu/one --limit 6 --warehouse {warehouse.path}` continues it."
    )
    ended = warehouse.query("select run from runs where state = 'completed'").item()
    assert ask_server(f"/flow_runs/{ended}")["state_type"] == "COMPLETED"
    killed, completed = warehouse.query("select state, asked from runs order by started_at").rows()
    # What had been replied and not yet saved was in the journal, so it is not asked again.
    state, kept = killed
    assert state == "killed"
    assert before.height <= kept < BALLOTS
    assert completed == ("completed", BALLOTS - kept)
    assert f"{BALLOTS} ballots: {kept} from the warehouse, {BALLOTS - kept} cast" in done.stdout
    assert emulated.stats()["replies"] == BALLOTS
    assert not list(warehouse.path.parent.glob("**/*.jsonl"))
    after = warehouse.read(Votes)
    assert after.height == BALLOTS
    assert after.join(before, on="ballot_id", how="semi").equals(before)


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        pytest.param({"key": "sk-right"}, "Incorrect API key", marks=SLOW),
        pytest.param({"models": ["two"]}, "The model one does not exist", marks=SLOW),
        pytest.param({"context": 50}, "maximum context length is 50 tokens", marks=SLOW),
        pytest.param({"forbidden": "Reference"}, "Flagged by the content policy", marks=SLOW),
    ],
    ids=["key", "model", "context", "policy"],
)
def test_a_permanent_error_stops_one_judge(
    voirdire: Voirdire,
    warehouse: Warehouse,
    emulated: Any,
    behaviour: dict[str, Any],
    said: str,
) -> None:
    keys = {}
    if behaviour == {"key": "sk-right"}:
        emulated.provider(key_variable="EMU_KEY")
        keys = emulated.key
    emulated.behave(**behaviour)
    done = voirdire(*SMALL, "--judge", "offline/random", **keys)
    assert done.returncode == 3, done.stderr
    assert "emu/one stopped" in " ".join(done.stdout.split())
    assert said in " ".join(done.stdout.split())
    assert emulated.stats()["requests"] <= BALLOTS
    assert _runs(warehouse)[0][0] == "completed with gaps"
    # the other judge went on
    by_judge = warehouse.query(
        "select judge, count(distinct ballot_id) from votes join ballots using (ballot_id) "
        "group by 1"
    )
    assert dict(by_judge.rows())["offline/random"] == BALLOTS
    everything = (
        done.stdout + done.stderr + json.dumps(warehouse.query("from runs").to_dicts(), default=str)
    )
    assert emulated.key["EMU_KEY"] not in everything


@pytest.mark.slow
def test_the_budget_holds_and_the_rest_is_asked_when_it_is_raised(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    done = voirdire(*SMALL, "--budget", "0.005")
    assert done.returncode == 3, done.stderr
    reported = emulated.stats()
    spent = (reported["prompt_tokens"] + 2 * reported["completion_tokens"]) / 1e6
    assert 0.002 < spent <= 0.005
    assert "the budget of 0.005 USD is used up" in " ".join(done.stdout.split())
    assert _runs(warehouse)[0][0] == "completed with gaps"
    assert voirdire(*SMALL).returncode == 0
    assert emulated.stats()["requests"] == warehouse.read(Votes).height == BALLOTS


@pytest.mark.slow
def test_dear_studies_are_confirmed_first(voirdire: Voirdire, emulated: Any) -> None:
    dear = "usd_per_million = { prompt = 1000, completion = 2000 }\nparams = { max_tokens = 20 }"
    emulated.provider()
    file = Path(emulated._folder) / "emu.toml"
    cheap = "usd_per_million = { prompt = 1, completion = 2 }\nparams = { max_tokens = 20 }"
    file.write_text(file.read_text().replace(cheap, dear))
    refused = voirdire(*SMALL)
    assert refused.returncode == 2
    assert "36 calls, estimated at" in refused.stderr
    assert "nothing was asked" in refused.stderr
    assert emulated.stats()["requests"] == 0
    file.write_text(file.read_text().replace(dear, "params = { max_tokens = 20 }"))
    unknown = voirdire(*SMALL)
    assert "an unknown amount for emu/one" in unknown.stderr
    assert "unknown" in voirdire("plan", *SMALL[1:]).stdout
    done = voirdire(*SMALL, "--yes")
    assert done.returncode == 0, done.stderr
    assert emulated.stats()["requests"] == BALLOTS


@pytest.mark.slow
def test_two_runs_at_once_ask_each_ballot_once_and_wait_for_none_that_failed(
    begin: Callable[..., "subprocess.Popen[bytes]"],
    voirdire: Voirdire,
    warehouse: Warehouse,
    emulated: Any,
) -> None:
    emulated.provider(concurrency=36, timeout_seconds=30)
    # The first has claimed the ballots of both judges when the second begins, and no reply yet.
    emulated.behave(models=["two"], latency=4)
    ballots = 2 * BALLOTS
    words = (*SMALL, "--judge", "emu/two", "--limit", "12")
    other = begin(*words, "--name", "other")
    done = voirdire(*words, "--name", "mine")
    assert done.returncode == 3, done.stderr
    assert other.wait(timeout=PATIENCE_SECONDS) == 3
    reported = emulated.stats()
    assert reported["replies"] == reported["prompts"] == ballots
    assert reported["most_replies_to_a_prompt"] == 1
    by_judge = "select judge, count(*) from votes join ballots using (ballot_id) group by 1"
    assert warehouse.query(by_judge).rows() == [("emu/two", ballots)]
    runs = _runs(warehouse)
    assert [run[:2] for run in runs] == [("completed with gaps", 2 * ballots)] * 2
    assert sum(asked for *_, asked, _ in runs) == ballots
    assert all(run[2:] == (ballots - run[3], run[3], ballots) for run in runs)
    assert warehouse.query("select count(*) from claims").item() == 0
    # of the judge that answered: two studies, each with its perturbation and the position
    assert warehouse.query("select count(*) from mart.bias where judge = 'emu/two'").item() == 4


@pytest.mark.slow
def test_judges_of_equal_requests_share_votes_that_are_counted_once(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.provider()
    file = Path(emulated._folder) / "emu.toml"
    file.write_text(
        file.read_text().replace('model = "hosted_vllm/two"', 'model = "hosted_vllm/one"')
    )
    done = voirdire(*SMALL, "--judge", "emu/two")
    assert done.returncode == 0, done.stderr
    assert emulated.stats()["requests"] == BALLOTS
    assert warehouse.query("select judge, votes from mart.cost").rows() == [("emu/one", BALLOTS)]
    counted = "select judge, n from mart.bias where perturbation is not null order by judge"
    assert warehouse.query(counted).rows() == [("emu/one", 6), ("emu/two", 6)]


@pytest.mark.slow
def test_what_a_failed_vote_keeps_back_is_a_gap_too(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.provider(attempts=1)
    emulated.behave(faults={"error": 0.3}, seed=5)
    done = voirdire(*SMALL, "--votes", "6", "--stop", "lossless")
    assert done.returncode == 3, done.stderr
    state, planned, before, asked, failed = _runs(warehouse)[0]
    left_out = warehouse.query(
        "select not_needed from mart.validity where perturbation is null"
    ).item()
    assert state == "completed with gaps"
    assert planned == before + asked + failed + left_out == 3 * BALLOTS
    assert "the vote before it on the same pair failed" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_a_stopping_rule_saves_calls(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    done = voirdire(*SMALL, "--votes", "6", "--stop", "pair")
    assert done.returncode == 0, done.stderr
    asked = emulated.stats()["requests"]
    assert BALLOTS <= asked < 3 * BALLOTS
    needed, left_out = warehouse.query(
        "select needed, not_needed from mart.validity where perturbation is null"
    ).row(0)
    assert needed + left_out == 3 * BALLOTS
    assert needed == asked
    assert f"{left_out} not needed" in done.stdout
    again = voirdire(*SMALL, "--votes", "6", "--stop", "pair")
    assert "0 cast" in again.stdout
    assert emulated.stats()["requests"] == asked


@pytest.mark.slow
def test_parameters_reach_the_provider_or_are_dropped_and_reported(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.provider(judge='unsupported = "drop"\nsystem = "Be strict."')
    file = Path(emulated._folder) / "emu.toml"
    file.write_text(
        file.read_text().replace(
            "params = { max_tokens = 20 }",
            'params = { max_tokens = 20, temperature = 0.5, seed = 7, verbosity = "low" }',
            1,
        )
    )
    done = voirdire(*SMALL, "--prompt", "pair_json_v1", "--limit", "2")
    assert done.returncode == 0, done.stderr
    votes = warehouse.read(Votes)
    assert set(votes["dropped_params"]) == {'["verbosity"]'}
    assert "Not sent, as unsupported: verbosity of emu/one" in " ".join(done.stdout.split())
    # the emulator answers in tags, which are no JSON verdict
    assert set(votes["choice"]) == {"invalid"}
    assert f"{votes.height} replies without a verdict" in " ".join(done.stdout.split())
    again = voirdire(*SMALL, "--prompt", "pair_json_v1", "--limit", "2")
    reported = " ".join(again.stdout.split())
    assert f"{votes.height} replies without a verdict (none of them new)" in reported
    params = json.loads(warehouse.query("select params from judges where judge = 'emu/one'").item())
    assert params["temperature"] == 0.5
    assert params["unsupported"] == "drop"
    assert params["api_base"] == emulated.base
    assert warehouse.query("select system from judges where judge = 'emu/one'").item()
    # who says nothing of what is not sent asks the same
    plain = file.read_text().replace(', verbosity = "low"', "").replace('unsupported = "drop"', "")
    file.write_text(plain.replace("[judges.one]", "[judges.plain]"))
    reported = voirdire(*SMALL[:-1], "emu/plain", "--prompt", "pair_json_v1", "--limit", "2")
    assert f"{votes.height} from the warehouse, 0 cast" in " ".join(reported.stdout.split())
