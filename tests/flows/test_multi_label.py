"""Simulated judges that label texts, against five people, as docs/how-to/multi-label.md shows it.

The labels of people, and the ids of the texts, are those of the reference data (50 items, the first
five labels and people). They hold no texts, so each text names the labels of most people: the
simulated judges read these with noise.
"""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

Voirdire = Callable[..., Any]
pytestmark = pytest.mark.served

PAGE = Path(__file__).parents[2] / "docs/how-to/multi-label.md"
METRICS = ("accuracy", "bits_jaccard", "hamming", "jaccard", "macro_jaccard")
SCORES = {
    "accuracy": "accuracy",
    "set_jaccard": "jaccard",
    "macro_jaccard": "bits_jaccard",
    "hamming": "hamming",
}
"""Metric of the reference data -> ours; see tests/tasks/test_alt_test_gold.py."""


@pytest.fixture
def folder(reference_data: Path) -> Path:
    return reference_data / "multilabel_synthetic"


def _study(place: Path, folder: Path) -> None:
    """Write the files of the page, the texts, and the labels of five people."""
    page = PAGE.read_text("utf-8")
    for name, text in re.findall(r"```toml\n# (voirdire/\S+)\n(.*?)```", page, re.DOTALL):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    data = json.loads((folder / "data.json").read_text("utf-8"))
    labels = [label.replace("_", " ") for label in data["labels"][:5]]
    people = {
        name: {
            item: [label for label, bit in zip(labels, bits, strict=False) if bit == "1"]
            for item, bits in items.items()
        }
        for name, items in list(data["humans"].items())[:5]
    }
    (place / "people.json").write_text(json.dumps(people), encoding="utf-8")
    file = place / "voirdire" / "datasets" / "messages.csv"
    file.parent.mkdir()
    with file.open("w", encoding="utf-8") as written:
        writer = csv.writer(written)
        writer.writerow(["question_id", "question", "answer"])
        for item in data["humans"]["h0"]:
            most = [n for n in labels if sum(n in said[item] for said in people.values()) > 2]
            text = f"Text {item}. Most people say: {', '.join(most) or 'nothing'}."
            writer.writerow([item, "Which labels apply?", text])


@pytest.mark.slow
@pytest.mark.charts
def test_six_judges_five_people_all_metrics_both_kinds_of_epsilon(
    voirdire: Voirdire, tmp_path: Path, folder: Path, environment: dict[str, str]
) -> None:
    _study(tmp_path, folder)
    # A worker that other tests have started knows the providers of this folder only.
    environment["VOIRDIRE_PROVIDERS"] = str(tmp_path / "voirdire" / "providers")
    audited = voirdire("audit", "moderation")
    assert audited.returncode == 0, audited.stderr
    assert "900 ballots: 0 from the warehouse, 900 cast, 0 without a reply" in audited.stdout
    assert len(re.findall(r"^moderators/\S+ \(simulated\)$", audited.stdout, re.MULTILINE)) == 6

    [words] = re.findall(r"^voirdire (calibrate .*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    done = voirdire(*words.split(), COLUMNS="120")
    assert done.returncode == 0, done.stderr
    assert "4 of 6 judges may replace people (jaccard, additive epsilon .15)" in done.stderr
    table = done.stdout.split("Winning rates by metric, epsilon .15 of both kinds")[1]
    rows = re.findall(
        r"^(\w+) +moderators/(\S+) +(\S+) +(\[\S+, \S+\]) +(\S+) +(\S+) (\w+) +(\S+) (\w+)",
        table.split("\n\n")[0],
        re.MULTILINE,
    )
    judges = ("guard-high", "guard-low", "guard-medium", "lax", "random", "strict")
    assert sorted((row[0], row[1]) for row in rows) == [(m, j) for m in METRICS for j in judges]
    found = {(row[0], row[1]): row for row in rows}
    for metric in METRICS:
        # What was planted: more effort reads better, and noise alone replaces nobody.
        low, medium, high = (
            float(found[metric, f"guard-{effort}"][2]) for effort in ("low", "medium", "high")
        )
        assert low < medium <= high
        assert found[metric, "random"][5:] == (".00", "fails", ".00", "fails")
        assert found[metric, "guard-high"][6] == found[metric, "guard-high"][8] == "passes"
    # The rows that the page shows.
    for line in re.findall(r"^accuracy +moderators/.*$", PAGE.read_text("utf-8"), re.MULTILINE):
        assert line.split() in [each.split() for each in table.splitlines()], line
    assert "All judges are simulated" in " ".join(done.stdout.split())

    drawn = ET.fromstring((tmp_path / "charts" / "several_metrics.svg").read_text("utf-8"))
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text in METRICS] == list(METRICS)
    assert {"additive", "multiplicative"} <= {*texts}
    report = (tmp_path / "reports" / "people.html").read_text("utf-8")
    assert "Does the verdict depend on the metric?" in report
    again = voirdire("report", "people")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "reports" / "people.html").read_text("utf-8") == report
    kept = voirdire(
        "sql",
        "select count(distinct metric) as m, count(distinct epsilon_kind) as k, count(*) as n "
        "from mart.alt_test where asked",
    )
    assert kept.stdout.split()[-3:] == ["5", "2", "60"]


def test_all_metrics_equal_the_reference(voirdire: Voirdire, tmp_path: Path, folder: Path) -> None:
    data = json.loads((folder / "data.json").read_text("utf-8"))
    gold = json.loads((folder / "gold.json").read_text("utf-8"))
    for side in ("humans", "llms"):
        (tmp_path / f"{side}.json").write_text(json.dumps(data[side]), encoding="utf-8")
    done = voirdire(
        *("calibrate", "--humans", "humans.json", "--judges", "llms.json", "--all-metrics"),
        *("--test", "t", "--curve", "--format", "json", "--no-save"),
    )
    assert done.returncode == 0, done.stderr
    compared = 0
    for judge in json.loads(done.stdout):
        ours = {(r["metric"], r["epsilon_kind"], r["epsilon"]): r for r in judge["metrics"]}
        for theirs, metric in SCORES.items():
            for kind, epsilons in gold[theirs][judge["judge"]].items():
                for epsilon, variants in epsilons.items():
                    row, wanted = ours[metric, kind, float(epsilon)], variants["tol1e-9"]
                    for name in ("winning_rate", "advantage_probability"):
                        assert row[name] == pytest.approx(wanted[name], abs=1e-9)
                    assert row["passed"] == wanted["passed"]
                    compared += 1
    # Six judges, four metrics, two kinds of epsilon, seven epsilons.
    assert compared == 6 * 4 * 2 * 7


def test_one_kind_of_metric_needs_no_reference_data(voirdire: Voirdire, tmp_path: Path) -> None:
    grades = {f"p{at}": {f"t{i}": (i + at) % 5 for i in range(40)} for at in range(3)}
    (tmp_path / "people.json").write_text(json.dumps(grades), encoding="utf-8")
    (tmp_path / "judges.json").write_text(json.dumps({"bot": grades["p1"]}), encoding="utf-8")
    words = ("calibrate", "--humans", "people.json", "--judges", "judges.json", "--no-save")
    done = voirdire(*words, "--all-metrics")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^neg_rmse +bot ", done.stdout, re.MULTILINE)
    assert "Winning rates by metric" not in voirdire(*words).stdout
    listed = voirdire(*words, "--all-metrics", "--format", "csv")
    lines = list(csv.DictReader(listed.stdout.splitlines()))
    assert {(row["metric"], row["epsilon_kind"]) for row in lines} == {
        (metric, kind)
        for metric in ("accuracy", "neg_rmse")
        for kind in ("additive", "multiplicative")
    }
