"""What a dataset knows of its answers reaches the statistics that need it, in one audit."""

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warehouse.store import Warehouse

Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.served

BLOOM = Path(__file__).parents[2] / "tasks" / "datasets" / "_bloom"
FILLED = {
    "accuracy",
    "accuracy_change",
    "bias_bound",  # decision_check
    "jury_error_correlation",  # jury_errors
    "length_controlled",
    "style_controlled",
    "ppi_win_rate",
    "rogan_gladen",
    "self_score_error",
    "win_rate",
}


def _flawed(question: dict[str, Any]) -> str:
    text: str = question["target"]
    for right, wrong in question["errors"]:
        text = text.replace(right, wrong)
    return text


def _rows() -> list[dict[str, Any]]:
    """Sound and flawed answers; of every second question the anchor is the flawed one."""
    questions = [
        question
        for path in sorted(BLOOM.glob("*.toml"))
        for question in tomllib.loads(path.read_text("utf-8"))["questions"][:5]
    ]
    return [
        {
            "question_id": f"q{at}",
            "question": each["question"],
            "category": f"level {at % 2}",
            "anchor": _flawed(each) if at % 2 else each["anchor"],
            "target": each["anchor"] if at % 2 else _flawed(each),
            "anchor_author": ("emu/one", "other")[at // 2 % 2],
            "target_author": ("other", "emu/one")[at // 2 % 2],
            "label": "target" if at % 2 else "anchor",
            "human_score": at % 2 if at % 3 else None,
            "label_chance": 2 / 3,
        }
        for at, each in enumerate(questions)
    ]


@pytest.mark.slow
def test_all_statistics_that_need_labels_authors_or_people_are_filled(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path, emulated: Any
) -> None:
    emulated.behave(replies=["[[A]]", "[[B]]"])
    path = tmp_path / "known.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in _rows()), encoding="utf-8")
    judges = ("emu/one", "emu/two", "offline/fair")
    done = voirdire(
        *("audit", "--dataset", str(path), "--perturbation", "fake_reference"),
        *(word for judge in judges for word in ("--judge", judge)),
    )
    assert done.returncode == 0, done.stderr
    found = warehouse.query("select distinct statistic from estimates where estimate is not null")
    assert FILLED - set(found["statistic"]) == set()
    shown = " ".join(done.stdout.split())
    needed = (
        "gap_agreement, mt_bench_agreement, noise_ceiling need the column human (votes of people)."
    )
    assert f"Not computed: {needed}" in shown
    # Of simulated judges only those with a sound judgement know which answer is flawed.
    accuracy = dict(
        warehouse.query(
            "select judge, estimate from estimates where statistic = 'accuracy'"
        ).iter_rows()
    )
    assert accuracy["offline/fair"] > 0.7
