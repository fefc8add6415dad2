"""The tutorial's commands, typed as they stand there, print what it shows."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs/tutorial.md"
BLOCK = re.compile(r"```(sh|text)\n(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_what_the_tutorial_shows_is_printed(voirdire: Any) -> None:
    printed: list[str] = []
    shown = 0
    for kind, text in BLOCK.findall(TUTORIAL.read_text(encoding="utf-8")):
        words = shlex.split(text.replace("\\\n", " "))
        if kind == "sh" and words[0] == "voirdire":
            done = voirdire(*words[1:], COLUMNS="100")
            assert done.returncode == 0, done.stderr
            printed = [line.rstrip() for line in done.stdout.splitlines()]
        if kind == "text":
            lines = [line.rstrip() for line in text.splitlines() if line.strip()]
            assert [line for line in lines if line not in printed] == []
            shown += len(lines)
    # Four blocks: the plan, two audits and the query.
    assert shown > 30
