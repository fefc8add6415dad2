"""Results by a column of the user's own data, from the command line to the mart."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from flows.publishing.served_files import reports_of
from warehouse.store import Warehouse

Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.served


def test_a_column_of_ones_own_splits_the_results(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    rows = [
        {
            "question_id": f"q{at}",
            "question": f"What is {at} + {at}?",
            "anchor": f"It is {2 * at}, by addition.",
            "target": f"The sum of the two numbers is {2 * at}.",
            "category": "sums",
            "level": "hard" if at % 2 else "easy",
        }
        for at in range(24)
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = voirdire(
        "audit",
        *("--dataset", str(path), "--by", "level", "--judge", "offline/gullible"),
        *("--perturbation", "fake_reference"),
    )
    assert done.returncode == 0, done.stderr
    found = warehouse.query("select distinct category from mart.categories order by category")
    assert found["category"].to_list() == ["easy", "hard"]
    # One family of all categories: Benjamini-Hochberg by hand.
    rows = warehouse.query(
        "select p_value, p_adjusted, adjustment from mart.categories order by p_value"
    ).rows()
    (small, small_adjusted, how), (large, large_adjusted, _) = rows
    assert how == "Benjamini-Hochberg, all categories of all cells (F5)"
    assert large_adjusted == pytest.approx(large)
    assert small_adjusted == pytest.approx(min(2 * small, large))
    numbers = warehouse.query(
        "select p_adjusted, adjustment from mart.numbers where statistic = 'category_shift' "
        "order by p_value"
    )
    assert numbers.rows() == [(small_adjusted, how), (large_adjusted, how)]
    page = (reports_of(warehouse.path) / "quick.html").read_text(encoding="utf-8")
    assert "Results by category" in page
    assert "(family F5)" in page
    # The question stays what it is.
    assert set(warehouse.query("select category from questions")["category"]) == {"sums"}
    reported = " ".join(done.stdout.split())
    assert "Not computed: accuracy, accuracy_change, jury_errors need the column label;" in reported

    # The column also splits the agreement with people, by its own name.
    people = tmp_path / "people.csv"
    labels = "".join(f"ann,q{at},{'anchor' if at % 3 else 'target'}\n" for at in range(24))
    people.write_text(f"annotator,item,label\n{labels}", encoding="utf-8")
    words = ("calibrate", "quick", "--humans", str(people), "--no-save", "--slice")
    split = voirdire(*words, "level")
    assert split.returncode == 0, split.stderr
    rows = [line.split()[:2] for line in split.stdout.splitlines() if line[:4] in ("easy", "hard")]
    assert sorted(name for name, _ in rows) == ["easy", "hard"]
    compared = re.search(r": (\d+) items compared", split.stdout)
    assert compared is not None
    assert sum(int(n) for _, n in rows) == int(compared[1])
    for other, todo in (
        ("region", "To split by another column of your data, audit with --by region first"),
        # The values of level are no categories.
        ("category", "To split by its categories, audit without --by first"),
    ):
        refused = voirdire(*words, other)
        assert refused.returncode == 2
        error = " ".join(refused.stderr.split())
        assert f"--slice '{other}': the items of study 'quick' can be split by level only." in error
        assert todo in error
    assert "category_shift" not in reported
    table = reported.partition("Shifts by level, the largest first")[2]
    assert table.split("questions")[0].split()[-3:] == ["judge", "perturbation", "level"]
    first, second = warehouse.query(
        "select category from mart.categories order by abs(category_shift) desc, category"
    )["category"]
    assert 0 < table.index(f"fake_reference {first} ") < table.index(f"fake_reference {second} ")


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_misspelt_column_is_named_beside_those_that_there_are(
    voirdire: Voirdire, tmp_path: Path, suffix: str
) -> None:
    rows = [
        {"question": f"What is {at}?", "anchor": "A number.", "target": "A digit.", "level": "easy"}
        for at in range(3)
    ]
    path = tmp_path / f"mine.{suffix}"
    frame = pl.DataFrame(rows)
    if suffix == "csv":
        frame.write_csv(path)
    else:
        frame.write_ndjson(path)
    done = voirdire("audit", "--dataset", str(path), "--by", "levl", "--judge", "offline/gullible")
    assert done.returncode == 2, done.stderr
    reported = " ".join(done.stderr.split())
    named = "which --by (`category_column` of the study) names"
    assert f"has no column 'levl', {named}; it has 'level', 'question'," in reported
    assert "unknown column" not in reported


def test_results_are_split_by_one_column(voirdire: Voirdire) -> None:
    # The second one had replaced the first without a word.
    done = voirdire("audit", "quick", "--by", "region", "--by", "lang")
    assert done.returncode == 2
    reported = " ".join(done.stderr.split())
    assert (
        "'--by': 'region' and 'lang': results are split by one column. Give one of them" in reported
    )
