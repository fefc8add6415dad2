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
from tasks.providers._reply import Reply

now = {}

async def call(provider, judge, messages, params, door):
    model = judge.model
    await door.enter()
    print("a library says hello")
    now[model] = now.get(model, 0) + 1
    in_flight = now[model]
    for _ in range(5):
        await asyncio.sleep(0.01)
        in_flight = max(in_flight, now[model])
    now[model] -= 1
    return Reply(str(in_flight), model=model)

_worker.call = call
asyncio.run(_worker.main())
"""


def test_replies_stand_alone_on_standard_output_and_limits_are_kept() -> None:
    names = ["gemini", "anthropic"]
    limits = {name: PROVIDERS[name].provider.concurrency for name in names}
    meetings = [
        {"do": "meet", "run": "r", "judge": {"judge": f"{name}/x", "provider": name, "model": name}}
        for name in names
    ]
    asking = {"do": "ask", "run": "r", "messages": [], "params": {}}
    requests = [
        {**asking, "id": f"{name}{n}", "judge": f"{name}/x"}
        for name in names
        for n in range(3 * limits[name])
    ]
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], cwd=REPO, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as worker:  # fmt: skip
        assert worker.stdin
        assert worker.stdout
        lines = [{"do": "begin", "run": "r"}, *meetings, *requests]
        worker.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines))
        worker.stdin.flush()
        replies = [json.loads(worker.stdout.readline()) for _ in requests]
        rest, errors = worker.communicate()
    assert worker.returncode == 0
    assert rest == ""
    assert errors.count("a library says hello") == len(requests)
    assert Counter(reply["id"] for reply in replies) == Counter(r["id"] for r in requests)
    most = {n: max(int(r["text"]) for r in replies if r["model"] == n) for n in names}
    assert most == limits
