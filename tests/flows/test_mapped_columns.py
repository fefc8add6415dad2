"""A table with names of its own, from an empty folder to a finding."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    refused = voirdire("audit", *options)
    assert refused.returncode == 2
    [line] = refused.stderr.splitlines()
    assert "header: 'answer_a' and 'answer_b' seem to be two answers, which are called " in line
    for column in ("anchor", "target", "label", "human_score", "anchor_author"):
        assert f" {column}," in line
    assert "as in --map question=prompt,anchor=answer_a,target=answer_b (`columns` of" in line
    columns = ("--map", "question=prompt,anchor=answer_a", "--map", "target=answer_b")
    planned = voirdire("plan", *options, *columns, "--perturbation", "fake_reference")
    assert planned.returncode == 0, planned.stderr
    said = " ".join(planned.stdout.split())
    assert said.startswith(LACKING)
    assert "Discernment needs the column factual_error or gender_bias." in said
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


@pytest.mark.slow
def test_what_people_chose_is_compared_with_judges(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    chosen: dict[str, Any] = {str(n): ("A", "B", "tie")[n % 3] for n in range(20)}
    with (tmp_path / "fb.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["nr", "prompt", "answer_a", "answer_b", "choice"])
        for n, choice in chosen.items():
            table.writerow([n, f"What is {n} + {n}?", f"Number {n}.", f"It is {n}.", choice])
    columns = "question_id=nr,question=prompt,anchor=answer_a,target=answer_b,label=choice"
    small = ("--judge", "offline/fair", "--perturbation", "fake_reference")
    words = ("audit", "--dataset", "fb.csv", "--map", columns, *small, "--name", "fb")
    done = voirdire(*words)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    gates = warehouse.query("select measure, reason from gates where gate = 'agreement'")
    [(measure, reason)] = gates.rows()
    assert measure == "agreement beyond chance, Bennett's S"
    assert reason.startswith("one label per item does not tell how well people agree")
    people = voirdire("calibrate", "fb")
    assert people.returncode == 0, people.stderr
    assert "offline/fair against people: 20 items compared" in people.stdout
    assert "The alternative annotator test was not run" in " ".join(people.stdout.split())
    # Of 0 to 19, seven leave 0 when divided by 3, and seven leave 1.
    counted = "select human_label, sum(items) from mart.confusion_matrix group by all order by all"
    assert warehouse.query(counted).rows() == [("anchor", 7), ("target", 7), ("tie", 6)]
    differing = voirdire("show", "fb", "--disagree")
    assert "control, anchor first: " in differing.stdout, differing.stderr
    # Results have the numbers of the table.
    shown = voirdire("show", "fb", "--all", "--pair", "fb/7/a2").stdout
    assert "sample: fb/7/a2" in shown
    assert "question: What is 7 + 7?" in shown
    # Another person, in a file that calls items as the table does.
    label = {"A": "anchor", "B": "target", "tie": "tie"}
    ann = {"ann": {n: label[choice] for n, choice in chosen.items()}}
    (tmp_path / "ann.json").write_text(json.dumps(ann), encoding="utf-8")
    named = ("calibrate", "fb", "--humans", "ann.json", "--name", "ann")
    other = voirdire(*named)
    assert "offline/fair against people: 20 items compared" in other.stdout, other.stderr
    far = {"ann": {f"x{n}": "tie" for n in chosen}}
    (tmp_path / "ann.json").write_text(json.dumps(far), encoding="utf-8")
    assert "example, 'x0' in the labels of people and 'fb/0/a2'" in voirdire(*named).stderr
    # A vote in each order: n counts votes, of 20 questions.
    votes = "select n, clusters from mart.accuracy where perturbation is null and study = 'fb'"
    assert warehouse.query(votes).rows() == [(40, 20)]
    fewer = voirdire(*words, "--limit", "12")
    assert "Warning: 12 questions replace the results of 20 under the name 'fb'. To get these" in (
        fewer.stderr
    )
    # Without a judge that has results, the same is said of them.
    others = ["offline/random" if word == "offline/fair" else word for word in words]
    left = " ".join(voirdire(*others, "--limit", "12").stderr.split())
    assert "Warning: no results are shown any more of offline/fair under the name 'fb'." in left
    both = " ".join(voirdire(*words, "--limit", "6").stderr.split())
    assert (
        "Warning: 6 questions replace the results of 12, and no results are shown any more of "
        "offline/random under the name 'fb'. To get these back, run this again without --limit and "
        "audit these judges too (no vote is asked twice);"
    ) in both
