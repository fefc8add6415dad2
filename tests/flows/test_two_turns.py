"""FastChat's judge prompts about the second turn of a conversation, as a user audits with them."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Voirdire = Callable[..., Any]
pytestmark = [pytest.mark.served, pytest.mark.slow]

MULTI = ("pair-v2", "pair-math-v1", "single-v1", "single-math-v1")
ALL = [*MULTI, *(f"{name}-multi-turn" for name in MULTI)]
ASKED = ("--judge", "offline/fair", "--perturbation", "fake_reference")
COLUMNS = ("question", "anchor", "target", "reference")


def table(file: Path, *, earlier: bool) -> str:
    """Write three questions, with the turn before or without."""
    names = [*COLUMNS, *(f"{name}_1" for name in COLUMNS if earlier)]
    with file.open("w", encoding="utf-8", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(["question_id", *names])
        rows.writerows([f"q{n}", *(f"The {name} of row {n}." for name in names)] for n in range(3))
    return str(file)


def test_all_eight_prompts_are_used(
    voirdire: Voirdire, tmp_path: Path, reference_data: Path
) -> None:
    prompts = tmp_path / "voirdire" / "prompts"
    prompts.mkdir(parents=True)
    shutil.copy(reference_data / "mt_bench" / "judge_prompts.jsonl", prompts)
    data = table(tmp_path / "two.csv", earlier=True)
    given = [word for name in ALL for word in ("--prompt", name)]
    done = voirdire("audit", "--dataset", data, "--name", "two", *ASKED, *given)
    assert done.returncode == 0, done.stderr
    # Four prompts of pairs: 2 votes on 3 questions in 3 arms. Four of single answers: also the
    # anchor of each control pair.
    assert f"{4 * 18 + 4 * 24} ballots: 0 from the warehouse" in done.stdout
    assert "ignored" not in done.stderr
    one = table(tmp_path / "one.csv", earlier=False)
    refused = voirdire("audit", "--dataset", one, "--name", "one", *ASKED, "--prompt", ALL[-1])
    said = " ".join(refused.stderr.split())
    assert refused.returncode == 2
    assert "shows {question_1}, which 3 of 3 questions of dataset" in said
    assert "Choose a judge prompt for one turn, or add columns 'question_1'" in said
