"""Parameters that a model does not take, without importing litellm (seconds, 170 MB)."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from tasks.engine.redaction import redact


def refused_params(asked: Sequence[tuple[str, dict[str, Any]]]) -> list[list[str]]:
    """Return the names of the parameters that would be dropped, for each (model, parameters).

    Raises
    ------
    RuntimeError
        If litellm cannot tell.
    """
    return _told(json.dumps(asked, sort_keys=True)) if asked else []


@cache
def _told(asked: str) -> list[list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "tasks.engine.litellm_adapter"],
        input=asked,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(
            'which parameters unsupported = "drop" leaves out could not be found out: '
            f"{redact(said)[:500]}. Nothing was asked."
        )
    told: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return told
