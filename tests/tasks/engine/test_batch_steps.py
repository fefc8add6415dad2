"""The steps of a run with its batches, against a scripted provider."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tasks.engine import batches, queue, worker
from tasks.engine.batches import BatchStatus
from tasks.engine.journal import CallError, Reply
from tasks.engine.queue import Engine
from tasks.engine.worker import BatchSteps
from tasks.providers import Judge, Provider, UsdPerMillion

PRICE = UsdPerMillion(prompt=1_000_000, completion=0)
"""A dollar a byte at most."""

MESSAGES = [{"role": "user", "content": "x" * 84}]
"""100 bytes with their frame."""

JUDGE = Judge(
    judge="openai/x",
    provider="openai",
    model="openai/x",
    mode="batch",
    usd_per_million=PRICE,
    params={"max_tokens": 1},
)
LOST = CallError("connection lost", transient=True, free=False)
REFUSED = CallError("no such file", transient=False)
Message = dict[str, Any]


class Shop:
    """A provider of batches that does what a list says."""

    def __init__(self) -> None:
        self.faults: dict[str, list[Exception]] = {}
        self.made: dict[str, str] = {}
        self.uploads: list[bytes] = []
        self.takes_the_lost = False
        self.searches_without_result = 0
        self.status = BatchStatus("batch_1", "completed")

    def _fail(self, verb: str) -> None:
        if faults := self.faults.get(verb):
            raise faults.pop(0)

    async def request_body(self, *words: Any) -> tuple[Message, list[str]]:
        self._fail("draft")
        return {"messages": words[2]}, ["user"]

    async def upload(self, _: Any, __: Judge, ___: str, content: bytes) -> str:
        self._fail("upload")
        self.uploads.append(content)
        return "file"

    async def create(self, _: Any, __: Judge, batch: str, file: str) -> str:
        assert file == "file"
        if self.takes_the_lost or not self.faults.get("create"):
            self.made[batch] = f"batch_{len(self.made) + 1}"
        self._fail("create")
        return self.made[batch]

    async def find(self, _: Any, __: Judge, batch: str) -> str | None:
        self._fail("find")
        self.searches_without_result -= 1
        if self.searches_without_result >= 0:
            return None
        return self.made.get(batch)

    async def status_of(self, *_: Any) -> BatchStatus:
        self._fail("status_of")
        return self.status

    async def download(self, *_: Any) -> bytes:
        self._fail("download")
        return b""

    def replies(self, *words: Any) -> dict[str, Reply]:
        failed = words[2].state == "failed"
        cost, error = (None, "No.") if failed else (1.0, None)
        return {b: Reply("[[A]]", cost_usd=cost, error=error) for b in words[-1]}


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    shop = Shop()
    for verb in ("request_body", "upload", "create", "find", "status_of", "download", "replies"):
        monkeypatch.setattr(batches, verb, getattr(shop, verb))
    monkeypatch.setattr(queue, "FIRST_WAIT_SECONDS", 0.001)
    assert sum(worker.SECONDS_BEFORE_SEARCHES) > 10
    short = tuple(seconds / 1000 for seconds in worker.SECONDS_BEFORE_SEARCHES)
    monkeypatch.setattr(worker, "SECONDS_BEFORE_SEARCHES", short)
    return shop


Take = Callable[..., Message]


@pytest.fixture
def steps() -> BatchSteps:
    return _steps(None)


def _steps(budget: float | None) -> BatchSteps:
    async def call(*_: Any) -> Reply:
        raise AssertionError("nothing is asked by itself")

    return BatchSteps(Engine(call, budget))


def _take(steps: BatchSteps, step: str, **words: Any) -> Message:
    return asyncio.run(steps.run(JUDGE, step, words))


def _pack(steps: BatchSteps, number: int) -> Message:
    ballots = [{"ballot_id": f"b{n}", "messages": MESSAGES, "params": {}} for n in range(number)]
    assert _take(steps, "draft", ballots=ballots) == {}
    return _take(steps, "pack", drafted=number)


def _spent(steps: BatchSteps) -> tuple[float, float]:
    budget = steps._engine.budget
    return budget.spent, budget._reserved


def test_ballots_become_a_batch_and_its_replies(shop: Shop, steps: BatchSteps) -> None:
    reported = _pack(steps, 3)
    (packed,) = reported["packed"]
    assert packed["ballots"] == ["b0", "b1", "b2"]
    assert (reported["left"], reported["reason"], reported["dropped_params"]) == (
        [],
        None,
        '["user"]',
    )
    assert _take(steps, "create", batch=packed["batch"]) == {"provider_batch": "batch_1"}
    assert shop.uploads[0].count(b"\n") == 3
    status = _take(steps, "status", provider_batch="batch_1")
    assert status["state"] == "completed"
    came = _take(steps, "collect", status=status, stop=True, **packed)["replies"]
    assert {b: reply["text"] for b, reply in came.items()} == dict.fromkeys(came, "[[A]]")
    assert _take(steps, "pack", drafted=0)["packed"] == []


def test_a_process_that_was_restarted_packs_and_sends_nothing_it_does_not_have(
    shop: Shop, steps: BatchSteps
) -> None:
    ballots = [{"ballot_id": "b0", "messages": MESSAGES, "params": {}}]
    _take(steps, "draft", ballots=ballots)
    # the other one was drafted in the process that died
    assert _take(steps, "pack", drafted=2) == {"lost": True}
    assert _take(steps, "create", batch="packed by the process that died") == {
        "provider_batch": None
    }
    assert shop.uploads == []
    assert len(_pack(steps, 2)["packed"][0]["ballots"]) == 2


@pytest.mark.usefixtures("shop")
def test_what_does_not_fit_under_the_cap_is_left_for_the_next_batch() -> None:
    steps = _steps(250)
    reported = _pack(steps, 4)
    (packed,) = reported["packed"]
    assert packed["ballots"] == ["b0", "b1"]
    assert reported["left"] == ["b2", "b3"]
    assert "the budget of 250 USD is used up" in reported["reason"]
    _take(steps, "create", batch=packed["batch"])
    status = _take(steps, "status", provider_batch="batch_1")
    _take(steps, "collect", status=status, stop=True, **packed)
    assert _spent(steps) == (2.0, 0.0)
    assert len(_pack(steps, 4)["packed"][0]["ballots"]) == 2


@pytest.mark.usefixtures("shop")
def test_a_budget_needs_a_bound() -> None:
    endless = JUDGE.model_copy(update={"params": {}})
    steps = _steps(5)
    draft = {"ballots": [{"ballot_id": "b", "messages": MESSAGES, "params": {}}]}
    asyncio.run(steps.run(endless, "draft", draft))
    assert "has no bound" in asyncio.run(steps.run(endless, "pack", {"drafted": 1}))["failure"]


def test_a_batch_that_was_perhaps_made_is_looked_for_before_it_is_made_again(shop: Shop) -> None:
    for taken in (True, False):
        steps = _steps(1000)
        shop.takes_the_lost, shop.faults["create"] = taken, [LOST]
        before = len(shop.made)
        (packed,) = _pack(steps, 1)["packed"]
        reported = _take(steps, "create", batch=packed["batch"])
        assert reported == {"provider_batch": shop.made[packed["batch"]]}
        assert len(shop.made) == before + 1


def test_what_is_surely_not_made_costs_nothing(shop: Shop) -> None:
    shop.faults = {"create": [REFUSED]}
    steps = _steps(1000)
    (packed,) = _pack(steps, 1)["packed"]
    assert _spent(steps) == (0.0, 100.0)
    reported = _take(steps, "create", batch=packed["batch"])
    assert reported == {
        "failure": "openai/x stopped: no such file",
        "transient": False,
        "free": True,
    }
    assert _spent(steps) == (0.0, 0.0)
    # nothing more is asked of this judge
    assert _take(steps, "draft", ballots=[])["failure"] == "openai/x stopped: no such file"


def test_what_may_have_been_made_stays_set_aside(shop: Shop) -> None:
    shop.faults = {"create": [LOST], "find": [LOST] * 20}
    steps = _steps(1000)
    (packed,) = _pack(steps, 1)["packed"]
    reported = _take(steps, "create", batch=packed["batch"])
    assert reported == {"failure": "connection lost", "transient": True, "free": False}
    assert _spent(steps) == (0.0, 100.0)


def test_a_file_that_does_not_get_there_costs_nothing(shop: Shop) -> None:
    shop.faults = {"upload": [LOST] * 20}
    steps = _steps(1000)
    (packed,) = _pack(steps, 1)["packed"]
    reported = _take(steps, "create", batch=packed["batch"])
    assert reported == {"failure": "connection lost", "transient": True, "free": True}
    assert _spent(steps) == (0.0, 0.0)


def test_a_batch_that_is_refused_stops_its_judge_unless_another_run_sent_it(shop: Shop) -> None:
    shop.status = BatchStatus("batch_1", "failed", "bad line")
    for stop in (True, False):
        steps = _steps(1000)
        (packed,) = _pack(steps, 1)["packed"]
        status = _take(steps, "status", provider_batch="batch_1")
        reported = _take(steps, "collect", status=status, stop=stop, **packed)
        said = reported["failure"] if stop else reported["replies"]["b0"]["error"]
        assert said == ("openai/x stopped: its batch batch_1 failed: bad line" if stop else "No.")
        assert _spent(steps) == (0.0, 0.0)


def test_faults_that_pass_are_waited_out_and_others_are_reported(
    shop: Shop, steps: BatchSteps
) -> None:
    shop.faults = {"status_of": [LOST] * 3}
    assert _take(steps, "status", provider_batch="b")["state"] == "completed"
    shop.faults = {"status_of": [RuntimeError("a surprise")]}
    reported = _take(steps, "status", provider_batch="b")
    assert reported == {"failure": "RuntimeError: a surprise", "transient": False, "free": False}
    # what is under way is looked at all the same, and the judge is not stopped
    assert _take(steps, "status", provider_batch="b")["state"] == "completed"
    assert len(_pack(steps, 1)["packed"]) == 1


def test_an_error_shows_no_key(
    shop: Shop, steps: BatchSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    shop.faults = {"status_of": [RuntimeError("not sk-other")]}
    assert _take(steps, "status", provider_batch="b")["failure"] == "RuntimeError: not [key]"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # litellm and what it builds on warn about each other
def test_an_answer_that_drips_is_broken_off_and_may_be_tried_again() -> None:
    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n")
            for _ in range(100):
                writer.write(b" ")
                await asyncio.sleep(0.05)
        finally:
            writer.close()

    async def ask() -> float:
        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        provider = Provider(api_base=base, timeout_seconds=0.5)
        # the second time, nothing is loaded any more
        for _ in range(2):
            began = asyncio.get_running_loop().time()
            with pytest.raises(CallError, match=r"took longer than 0\.5 s") as late:
                await batches.status_of(provider, JUDGE, "batch_1")
            assert (late.value.transient, late.value.free) == (True, False)
        server.close()
        return asyncio.get_running_loop().time() - began

    # before, it took as long as the answer: 5 s
    assert asyncio.run(ask()) < 2


def test_a_batch_that_is_listed_late_is_not_made_again(shop: Shop, steps: BatchSteps) -> None:
    (packed,) = _pack(steps, 1)["packed"]
    shop.takes_the_lost, shop.faults["create"] = True, [LOST]
    shop.searches_without_result = 3
    reported = _take(steps, "create", batch=packed["batch"])
    assert reported == {"provider_batch": "batch_1"}
    assert shop.made == {packed["batch"]: "batch_1"}
