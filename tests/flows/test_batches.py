"""Batch judges from end to end, against an emulated batch endpoint."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from waiting import wait_for

from flows.running.processes import HOST, process_note
from flows.running.recovery import mark_dead_runs
from schemas.judging import Votes
from warehouse.store import Warehouse

pytestmark = pytest.mark.served
Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
Begin = Callable[[], "subprocess.Popen[bytes]"]
SMALL = ("audit", "--limit", "6", "--perturbation", "fake_reference", "--judge", "emu/one")
# six questions, three arms, two orders
BALLOTS = 36
BATCH = 'mode = "batch"'


@pytest.fixture
def batched(emulated: Any) -> Any:
    """The emulated provider; its first judge is asked in batches."""
    emulated.provider(judge=BATCH)
    return emulated


def _said(done: "subprocess.CompletedProcess[str]") -> str:
    return " ".join((done.stdout + done.stderr).split())


def _states(warehouse: Warehouse) -> list[str]:
    rows = warehouse.query("select state from batches order by created_at").rows()
    return [state for (state,) in rows]


@pytest.mark.slow
def test_a_batch_brings_the_votes_that_single_calls_bring(
    voirdire: Voirdire, warehouse: Warehouse, batched: Any
) -> None:
    batched.behave(batch_seconds=1)
    # beside it a judge that is asked live
    done = voirdire(*SMALL, "--judge", "emu/two")
    assert done.returncode == 0, done.stderr
    assert f"{2 * BALLOTS} cast, 0 without a reply" in done.stdout
    reported = batched.stats()
    assert (reported["batches"], reported["lines"], reported["requests"]) == (1, BALLOTS, BALLOTS)
    by_model = warehouse.read(Votes).group_by("model").len()
    assert by_model["len"].to_list() == [BALLOTS] * 2
    of_one = "select ballot_id from ballots where judge = 'emu/one'"
    votes = warehouse.read(Votes).join(warehouse.query(of_one), on="ballot_id")
    assert votes["seconds"].min() >= 1
    (batch,) = warehouse.query("from batches").to_dicts()
    assert batch["state"] == "completed"
    assert batch["provider_batch"] == "batch_0001"
    assert batch["error"] is None
    assert batch["ended_at"] > batch["created_at"]
    held = warehouse.query("select ballot_id from batched_ballots order by 1")["ballot_id"]
    assert held.to_list() == sorted(votes["ballot_id"])
    # the same ballots live: nothing to ask
    batched.provider()
    again = voirdire(*SMALL)
    assert f"{BALLOTS} from the warehouse, 0 cast" in again.stdout
    assert batched.stats()["requests"] == BALLOTS
    # asked anew, a single call sends and brings the same
    live = voirdire(*SMALL, "--wave", "live")
    assert live.returncode == 0, live.stderr
    reported = batched.stats()
    assert reported["requests"] == 2 * BALLOTS
    both = (
        "select wave, pair_id, shown_first, repeat, v.* from votes v join ballots using (ballot_id)"
        " where judge = 'emu/one'"
    )
    rows = warehouse.query(both).drop("ballot_id", "run", "saved_at", "cast_at", "seconds")
    # litellm puts the route before the model that vLLM reports for a single call
    rows = rows.with_columns(pl.col("model").str.strip_prefix("hosted_vllm/"))
    one, other = (
        rows.filter(wave=wave).drop("wave").sort("pair_id", "shown_first", "repeat")
        for wave in ("", "live")
    )
    assert one.to_dicts() == other.to_dicts()


@pytest.fixture
def begin(
    environment: dict[str, str], tmp_path: Path, warehouse: Warehouse, batched: Any
) -> Iterator[Begin]:
    """Begin a run and return it as soon as its batch is at the provider, who keeps it."""
    errors = tmp_path / "stderr"
    with ExitStack() as stack:

        def run() -> "subprocess.Popen[bytes]":
            batched.behave(batch_seconds=600)
            process = subprocess.Popen(
                [sys.executable, "-m", "flows.cli", *SMALL],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=stack.enter_context(errors.open("wb")),
            )
            stack.callback(_kill, process)

            def sent() -> bool:
                assert process.poll() is None, errors.read_text()
                return _is_sent(warehouse)

            wait_for(sent, "no batch was sent")
            return process

        yield run


def _kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def _is_sent(warehouse: Warehouse) -> bool:
    """Whether a run has sent its batch."""
    return warehouse.path.exists() and _states(warehouse) == ["sent"]


def _restore(files: dict[Path, bytes]) -> None:
    """Make files what they were."""
    for file, content in files.items():
        file.write_bytes(content)


def _change(warehouse: Warehouse, *statements: str) -> None:
    with duckdb.connect(str(warehouse.path)) as connection:
        for statement in statements:
            connection.execute(statement)


def _wait_for_another(voirdire: Voirdire, warehouse: Warehouse, batched: Any) -> None:
    """Let a run wait for the batch of one that runs, until that one is killed."""
    with (
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process,
        pytest.MonkeyPatch.context() as patch,
    ):
        _change(warehouse, f"update runs set process = '{HOST}/{process_note(process.pid)}'")

        def look(store: Warehouse) -> None:
            """Look for dead runs, as a run does while it waits; kill the other after that."""
            mark_dead_runs(store)
            if process.poll() is None:
                _kill(process)
                batched.behave(batch_seconds=0)

        patch.setattr("flows.running.casting.mark_dead_runs", look)
        done = voirdire(*SMALL, "--name", "other")
        assert process.poll() is not None, "it did not wait"
    assert f"{BALLOTS} from the warehouse, 0 cast" in done.stdout
    assert batched.stats()["batches"] == 1
    states = warehouse.query("select state from runs order by started_at")["state"].to_list()
    assert states == ["killed", "completed"]


@pytest.mark.slow
def test_the_batch_of_another_run_is_waited_for_and_found_again_unless_it_is_gone(
    voirdire: Voirdire, warehouse: Warehouse, batched: Any, begin: Begin
) -> None:
    _kill(begin())
    kept = [file for file in warehouse.path.parent.glob("voirdire.duckdb*") if file.is_file()]
    left = {file: file.read_bytes() for file in kept}
    _wait_for_another(voirdire, warehouse, batched)
    batched.behave(batch_seconds=1)
    not_written_down = "update batches set state = 'intended', provider_batch = null"
    # first as it was killed; then as if it had died before it could keep the provider's id
    for change in ((), (not_written_down,)):
        _restore(left)
        _change(warehouse, *change)
        done = voirdire(*SMALL)
        assert done.returncode == 0, done.stderr
        assert f"{BALLOTS} from the warehouse, 0 cast, 0 without a reply" in done.stdout
        reported = batched.stats()
        assert (reported["batches"], reported["lines"], reported["replies"]) == (
            1,
            BALLOTS,
            BALLOTS,
        )
        assert warehouse.read(Votes).height == BALLOTS
        runs = warehouse.query("select state, asked, cost_usd from runs order by started_at").rows()
        cost = (reported["prompt_tokens"] + 2 * reported["completion_tokens"]) / 1e6
        # who sent the batch paid for it
        assert runs == [("killed", BALLOTS, pytest.approx(cost)), ("completed", 0, 0)]
        assert _states(warehouse) == ["completed"]
    # one that cannot be read is not asked again until it is surely gone
    _restore(left)
    batched.behave(batch_seconds=0)
    _change(warehouse, "update batches set provider_batch = 'batch_9'")
    done = voirdire(*SMALL)
    assert f"0 cast, {BALLOTS} without a reply" in done.stdout
    assert "its batch batch_9 could not be read: " in _said(done)
    assert "No such batch." in _said(done)
    assert _states(warehouse) == ["sent"]
    assert batched.stats()["batches"] == 1
    _change(warehouse, "update batches set created_at = created_at - interval 31 days")
    done = voirdire(*SMALL)
    assert _states(warehouse) == ["lost", "completed"]
    assert f"{BALLOTS} cast, 0 without a reply" in done.stdout
    # a run that died before it sent its batch left nothing
    _restore(left)
    never_sent = f"{not_written_down}, batch = 'other'"
    _change(warehouse, never_sent, "update batched_ballots set batch = 'other'")
    done = voirdire(*SMALL)
    assert f"{BALLOTS} cast, 0 without a reply" in done.stdout
    assert _states(warehouse) == ["never sent", "completed"]


@pytest.mark.slow
def test_ctrl_c_ends_the_wait_and_a_live_judge_takes_the_votes(
    voirdire: Voirdire, stopped: Voirdire, warehouse: Warehouse, batched: Any
) -> None:
    batched.behave(batch_seconds=600)
    done = stopped(
        *SMALL,
        number=signal.SIGINT,
        ready=lambda: wait_for(lambda: _is_sent(warehouse), "no batch was sent"),
    )
    assert done.returncode == 128 + signal.SIGINT
    # It did not wait for what the batch brings.
    assert _states(warehouse) == ["sent"]
    assert warehouse.read(Votes).is_empty()
    assert warehouse.query("select state from runs").item() == "cancelled"
    batched.provider()
    batched.behave(batch_seconds=0)
    assert voirdire(*SMALL).returncode == 0
    reported = batched.stats()
    assert (reported["batches"], reported["requests"]) == (1, 0)
    assert warehouse.read(Votes).height == BALLOTS


@pytest.mark.slow
def test_a_batch_whose_creation_was_not_confirmed_is_found(
    voirdire: Voirdire, warehouse: Warehouse, batched: Any
) -> None:
    batched.behave(batch_vanishes=True)
    done = voirdire(*SMALL)
    assert f"{BALLOTS} cast, 0 without a reply" in done.stdout
    assert batched.stats()["batches"] == 1
    assert warehouse.read(Votes).height == BALLOTS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ({"batch_errors": 0.3}, "answered 500: The server had an error."),
        ({"batch_end": "expired"}, "its batch expired"),
        ({"batch_end": "cancelled"}, "its batch was cancelled"),
    ],
    ids=["lines", "expired", "cancelled"],
)
def test_what_a_batch_leaves_is_asked_again(
    voirdire: Voirdire, warehouse: Warehouse, batched: Any, behaviour: dict[str, Any], said: str
) -> None:
    batched.behave(**behaviour)
    done = voirdire(*SMALL)
    # completed with gaps
    assert done.returncode == 3, done.stderr
    assert said in _said(done)
    there = warehouse.read(Votes).height
    assert 0 < there < BALLOTS
    assert warehouse.query("select state, asked, failed from runs").row(0) == (
        "completed with gaps",
        there,
        BALLOTS - there,
    )
    batched.behave(batch_errors=0, batch_end="completed")
    again = voirdire(*SMALL)
    assert f"{there} from the warehouse, {BALLOTS - there} cast" in again.stdout
    reported = batched.stats()
    assert reported["replies"] == warehouse.read(Votes).height == BALLOTS
    assert _states(warehouse) == [behaviour.get("batch_end", "completed"), "completed"]


@pytest.mark.slow
def test_a_batch_that_is_refused_stops_its_judge_only(
    voirdire: Voirdire, warehouse: Warehouse, batched: Any
) -> None:
    batched.behave(batch_end="failed")
    done = voirdire(*SMALL, "--judge", "offline/random", "--votes", "6", "--stop", "pair")
    # completed with gaps
    assert done.returncode == 3, done.stderr
    assert "emu/one stopped: its batch batch_0001 failed: The batch was refused." in _said(done)
    assert batched.stats()["batches"] == 1
    assert _states(warehouse) == ["failed"]
    cast = warehouse.query("select distinct judge from votes join ballots using (ballot_id)")
    assert cast["judge"].to_list() == ["offline/random"]


@pytest.mark.slow
def test_the_budget_holds_for_batches(
    voirdire: Voirdire, warehouse: Warehouse, batched: Any
) -> None:
    done = voirdire(*SMALL, "--budget", "0.005")
    # completed with gaps
    assert done.returncode == 3, done.stderr
    reported = batched.stats()
    spent = (reported["prompt_tokens"] + 2 * reported["completion_tokens"]) / 1e6
    assert 0 < spent <= 0.005
    assert 0 < reported["lines"] < BALLOTS
    assert "the budget of 0.005 USD is used up" in _said(done)
    again = voirdire(*SMALL)
    assert again.returncode == 0, again.stderr
    assert batched.stats()["lines"] == warehouse.read(Votes).height == BALLOTS


@pytest.mark.slow
def test_each_round_of_a_stopping_rule_is_a_batch(
    voirdire: Voirdire, warehouse: Warehouse, batched: Any
) -> None:
    done = voirdire(*SMALL, "--votes", "6", "--stop", "pair")
    assert done.returncode == 0, done.stderr
    reported = batched.stats()
    assert 1 < reported["batches"] <= 3
    assert BALLOTS <= reported["lines"] < 3 * BALLOTS
    assert warehouse.read(Votes).height == reported["lines"]


@pytest.mark.slow
def test_a_wrong_key_stops_the_judge(
    voirdire: Voirdire, warehouse: Warehouse, batched: Any
) -> None:
    batched.provider(judge=BATCH, key_variable="EMU_KEY")
    batched.behave(key="sk-right")
    done = voirdire(*SMALL, **batched.key)
    assert "emu/one stopped" in _said(done)
    assert "Incorrect API key" in _said(done)
    assert batched.key["EMU_KEY"] not in done.stdout + done.stderr
    assert warehouse.read(Votes).is_empty()
    assert batched.stats()["batches"] == 0


@pytest.mark.slow
def test_an_address_without_batches_stops_the_judge_and_says_what_to_do(
    voirdire: Voirdire, warehouse: Warehouse, batched: Any
) -> None:
    file = Path(batched._folder) / "emu.toml"
    file.write_text(file.read_text().replace('/v1"', '/v1/elsewhere"'))
    done = voirdire(*SMALL)
    # completed with gaps
    assert done.returncode == 3, done.stderr
    stopped = "emu/one stopped: its provider takes no batches at this address: set mode = 'live'"
    assert stopped in _said(done)
    assert warehouse.read(Votes).is_empty()


@pytest.mark.slow
def test_a_judge_that_cannot_be_asked_in_batches_is_refused_at_once(
    voirdire: Voirdire, emulated: Any
) -> None:
    emulated.provider(judge=BATCH)
    file = Path(emulated._folder) / "emu.toml"
    file.write_text(file.read_text().replace("hosted_vllm/one", "cohere/one"))
    done = voirdire(*SMALL)
    assert done.returncode == 2
    assert "emu/one has mode 'batch', but batches cannot be sent to 'cohere'" in _said(done)
    assert emulated.stats()["requests"] == 0
