"""A log that promptfoo itself writes (`make .venv/.promptfoo`), its models emulated."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE_SECONDS

from tasks.logs.log_description import recognised_line
from tasks.logs.log_reader import read_log

REPO = Path(__file__).parents[4]
SCRIPT = REPO / ".venv" / "promptfoo" / "node_modules" / "promptfoo" / "dist" / "src" / "main.js"
VERDICTS = (
    '{"pass": true, "score": 1, "reason": "fine"}',
    '{"pass": false, "score": 0, "reason": "=cmd()"}',
    "I will not grade this.",
)
CASES = 12


@pytest.fixture
def provider() -> Iterator[str]:
    """The address of an emulated provider, in a process of its own."""
    replies = (word for verdict in VERDICTS for word in ("--reply", verdict))
    words = [sys.executable, "-m", "tasks.simulation.emulator", "--port", "0", *replies]
    with subprocess.Popen(words, cwd=REPO, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@pytest.mark.slow
def test_a_log_of_promptfoo_itself(tmp_path: Path, provider: str) -> None:
    node = shutil.which("node")
    if node is None or not SCRIPT.is_file():
        pytest.skip("promptfoo is not installed: make .venv/.promptfoo (Node.js, 270 MB)")
    model = {"config": {"apiBaseUrl": provider, "apiKey": "none"}}
    study = {
        "prompts": ["Answer: {{question}}"],
        "providers": [{"id": "openai:chat:writer", **model}],
        "defaultTest": {"options": {"provider": {"id": "openai:chat:grader", **model}}},
        "tests": [
            {
                "vars": {"question": f"{at} + {at}?"},
                "assert": [
                    {"type": "llm-rubric", "value": "answers {{question}}"},
                    {"type": "contains", "value": "fine"},
                ],
            }
            for at in range(CASES)
        ],
    }
    (tmp_path / "promptfooconfig.json").write_text(json.dumps(study), encoding="utf-8")
    quiet = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
    done = subprocess.run(
        [node, SCRIPT, "eval", "-c", "promptfooconfig.json", "--no-cache", "-o", "log.json"],
        cwd=tmp_path,
        env={
            **os.environ,
            **{f"PROMPTFOO_DISABLE_{name}": "1" for name in quiet},
            "PROMPTFOO_CONFIG_DIR": str(tmp_path / "promptfoo"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    # 100: some assertions failed, as they do here.
    assert done.returncode in {0, 100}, done.stderr[-1000:]
    log = read_log(tmp_path / "log.json")
    assert log is not None
    assert recognised_line(log) == (
        f"promptfoo results, {CASES} rows, judge llm-rubric by openai:chat:grader, no human ratings"
    )
    # What promptfoo says of each case is what was read; a grader's failure is no fail.
    written = json.loads((tmp_path / "log.json").read_text("utf-8"))["results"]["results"]
    graded = {
        str(result["testIdx"]): next(
            each
            for each in result["gradingResult"]["componentResults"]
            if each["assertion"]["type"] == "llm-rubric"
        )
        for result in written
    }
    expected = {
        case: "invalid"
        if each["reason"].startswith("Could not extract JSON")
        else "pass"
        if each["pass"]
        else "fail"
        for case, each in graded.items()
    }
    assert {*expected.values()} == {"pass", "fail", "invalid"}
    read = log.ratings.select("cluster", "label", "invalid").iter_rows()
    found = {case: "invalid" if invalid else label for case, label, invalid in read}
    assert found == expected
