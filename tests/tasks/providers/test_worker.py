import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tasks.providers import PROVIDERS, _caller

REPO = Path(_caller.__file__).parents[2]
SCRIPT = """
import asyncio
from tasks.providers import _worker
from tasks.providers._client import Outcome

now = {}

async def complete(provider, model, messages, params):
    print("a library says hello")
    now[model] = now.get(model, 0) + 1
    in_flight = now[model]
    for _ in range(5):
        await asyncio.sleep(0.01)
        in_flight = max(in_flight, now[model])
    now[model] -= 1
    return Outcome(str(in_flight), model=model)

_worker.complete = complete
asyncio.run(_worker.main())
"""


def test_replies_stand_alone_on_standard_output_and_limits_are_kept() -> None:
    names = ["gemini", "anthropic"]
    limits = {name: PROVIDERS[name].provider.concurrency for name in names}
    requests = [
        {"id": f"{name}{n}", "provider": name, "model": name, "messages": [], "params": {}}
        for name in names
        for n in range(3 * limits[name])
    ]
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], cwd=REPO, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as worker:  # fmt: skip
        assert worker.stdin
        assert worker.stdout
        worker.stdin.write("".join(f"{json.dumps(request)}\n" for request in requests))
        worker.stdin.flush()
        replies = [json.loads(worker.stdout.readline()) for _ in requests]
        rest, errors = worker.communicate()
    assert worker.returncode == 0
    assert rest == ""
    assert errors.count("a library says hello") == len(requests)
    assert Counter(reply["id"] for reply in replies) == Counter(r["id"] for r in requests)
    most = {n: max(int(r["text"]) for r in replies if r["model"] == n) for n in names}
    assert most == limits
