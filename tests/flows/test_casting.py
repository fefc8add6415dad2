"""What is kept when the calling process dies."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.judging import Votes
from warehouse.store import Warehouse

pytestmark = [pytest.mark.served, pytest.mark.xdist_group("served")]
Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
SMALL = ("audit", "--limit", "6", "--perturbation", "fake_reference", "--judge", "emu/one")
# six questions, three arms, two orders
BALLOTS = 36
DIES = """
import os
from tasks.providers._journal import Journal

def write(journal, line, kept=[], append=Journal.write):
    append(journal, line)
    kept.append(line)
    if len(kept) == 5:
        os._exit(3)

Journal.write = write
"""
"""As if the worker were killed between keeping a reply and telling it."""


def test_a_reply_that_was_kept_and_not_told_is_not_paid_again(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any, environment: dict[str, str],
    tmp_path: Path,
) -> None:  # fmt: skip
    emulated.provider(concurrency=1)
    (tmp_path / "dies").mkdir()
    (tmp_path / "dies" / "sitecustomize.py").write_text(DIES)
    died = voirdire(
        *SMALL, PYTHONPATH=os.pathsep.join([str(tmp_path / "dies"), environment["PYTHONPATH"]])
    )
    assert died.returncode == 0, died.stderr
    assert "the calling process ended with code 3" in " ".join(died.stdout.split())
    paid = emulated.stats()["replies"]
    assert warehouse.read(Votes).height < 5 <= paid
    again = voirdire(*SMALL)
    assert again.returncode == 0, again.stderr
    assert warehouse.read(Votes).height == BALLOTS
    # what was in flight as it died is asked anew
    assert emulated.stats()["replies"] == BALLOTS + paid - 5
    assert not Path(f"{warehouse.path}.replies").exists()
