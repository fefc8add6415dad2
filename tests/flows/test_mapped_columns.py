"""A table with names of its own, from an empty folder to a finding."""

import csv
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from warehouse.store import Warehouse

Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.served
STUDY = """
about = "A table with names of its own."

[study]
dataset = "faq.csv"
columns = { question = "prompt", anchor = "answer_a", target = "answer_b" }
judges = ["offline/gullible"]
perturbations = ["fake_reference"]
"""
LACKING = "Cannot be computed from these columns: accuracy, accuracy_change, jury_errors need"


def test_a_table_with_odd_names_becomes_a_finding(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    with (tmp_path / "faq.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["nr", "prompt", "answer_a", "answer_b", "topic"])
        for n in range(40):
            first, second = f"It is {2 * n}, by addition.", f"The sum of them is {2 * n}."
            table.writerow([n, f"What is {n} + {n}?", first, second, "sums"])
    options = ("--dataset", "faq.csv", "--name", "faq", "--judge", "offline/gullible")
    columns = ("--map", "question=prompt,anchor=answer_a", "--map", "target=answer_b")
    planned = voirdire("plan", *options, *columns, "--perturbation", "fake_reference")
    assert planned.returncode == 0, planned.stderr
    assert " ".join(planned.stdout.split()).startswith(LACKING)
    # A study file says the same by its field `columns`.
    study = tmp_path / "voirdire" / "studies" / "faq.toml"
    study.parent.mkdir(parents=True)
    study.write_text(STUDY)
    done = voirdire("audit", "faq")
    assert done.returncode == 0, done.stderr
    # Before the answers of the judges, where the progress is shown.
    assert LACKING in " ".join(done.stderr.split())
    # The simulated judge believes references by design.
    found = warehouse.query(
        "select finding from mart.bias where perturbation = 'fake_reference' and study = 'faq'"
    )
    assert found["finding"].to_list() == ["biased"]
    asked = warehouse.query(
        "select question, answer from questions join answers using "
        "(question_id) order by question, slot limit 2"
    )
    assert asked.rows() == [
        ("What is 0 + 0?", "It is 0, by addition."),
        ("What is 0 + 0?", "The sum of them is 0."),
    ]
