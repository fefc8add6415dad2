"""Results by category and slice on the terminal: the worst first, with a line about the others."""

import csv
import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from flows.cli.main import main


def run(*words: object) -> list[str]:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def votes(category: int) -> list[dict[str, Any]]:
    """Return votes on 10 questions: the target wins ``category`` of them if it is perturbed."""
    rows = []
    for at in range(10):
        for arm in ("control", "experimental"):
            won = "target" if arm == "experimental" and at < category else "anchor"
            for first in ("anchor", "target"):
                changed = arm == "experimental"
                rows.append(
                    {
                        "judge": "ada",
                        "arm": arm,
                        "perturbation": "boast" if changed else None,
                        "kind": "promote" if changed else None,
                        "sample": f"{category}/{at}",
                        "cluster": f"{category}/{at}",
                        "shown_first": first,
                        "choice": "first" if first == won else "second",
                        "repeat": 0,
                        "category": f"part {category}",
                    }
                )
    return rows


def test_measure_shows_the_largest_shifts_by_category(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    rows = [row for category in range(7) for row in votes(category)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    lines = run("measure", path)
    start = lines.index("Shifts by category, the largest first")
    shown = [line.split(" [")[0] for line in lines[start + 2 : start + 7]]
    assert shown == [f"ada boast part {at} 10 .{at}0" for at in (6, 5, 4, 3, 2)]
    others = "2 other shifts by category: `voirdire measure votes.jsonl --only category_shift`."
    assert others in " ".join(lines)
    one = tmp_path / "one.jsonl"
    one.write_text("".join(json.dumps(row) + "\n" for row in votes(3)), encoding="utf-8")
    assert not any("Shifts by category" in line for line in run("measure", one))


def test_calibrate_shows_the_slices_with_the_least_agreement(tmp_path: Path) -> None:
    """Of 10 slices of 10 items, the judge is right on none of part 0 and on 9 of part 9."""
    path = tmp_path / "labels.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "model", "human", "part"])
        for part in (3, 9, 0, 4, 1, 8, 2, 5, 7, 6):
            for at in range(10):
                said = ("pass", "fail")[at % 2]
                right = said if at < part else ("fail", "pass")[at % 2]
                table.writerow([f"{part}/{at}", right, said, f"part {part}"])
    words = ("calibrate", path, "--judge", "model", "--human", "human", "--slice", "part")
    lines = run(*words, "--no-save")
    # The heading of the column is the name of the slice.
    heading, *slices = [line.split()[:4] for line in lines if line.startswith("part ")]
    assert heading == ["part", "items", "agreement", "95"]
    assert slices == [["part", str(at), "10", f".{at}0"] for at in range(8)]
    assert "2 slices with more agreement: --format json." in lines


def test_slices_of_grades_are_in_the_order_of_the_mean_error(tmp_path: Path) -> None:
    """The judge is wrong by 3 on a quarter of part 1, and by 1 on all of part 2."""
    path = tmp_path / "labels.csv"
    lines = ["id,model,human,part"]
    for at in range(12):
        lines += [f"a{at},{5 if at % 4 else 2},5,part 1", f"b{at},{4 - at % 2},{5 - at % 2},part 2"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ("calibrate", path, "--judge", "model", "--human", "human", "--slice", "part")
    slices = [line.split()[:2] for line in run(*words, "--no-save") if line.startswith("part ")]
    assert slices == [["part", "items"], ["part", "2"], ["part", "1"]]


def test_measure_compares_judges_with_people_as_calibrate_does(tmp_path: Path) -> None:
    # People pass 30 of 40 items, the judge 20 of these and 6 of the others; 20 have no label.
    rows = [
        {"id": at, "by": "g", "verdict": "CI"[at % 3 == 0], "person": "CI"[at % 4 == 0]}
        for at in range(60)
    ]
    for row in rows[40:]:
        del row["person"]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    columns = ("--map", "item=id,judge=by,label=verdict,human_label=person")
    found = {
        command: run(command, path, *columns, "--pass", "C", "--random-labels", *more)
        for command, more in (("measure", ()), ("calibrate", ("--no-save",)))
    }
    for line in (
        "TPR .67 [.48, .81] of 30 items that people pass",
        "TNR .40 [.16, .70] of 10 items that people fail",
        "corrected, PPI++ .75 [.61, .89] all 60 judged items; judge .67",
    ):
        assert all(line in lines for lines in found.values()), line
    words = ["measure", str(path), *columns, "--random-labels", "--only", "validity"]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2
    assert (
        "--random-labels corrects means by the labels of people, which the tables of all "
        "statistics show. Leave out --only and --format, or take it from `voirdire calibrate "
        "log.jsonl --format json` with the same --map and --random-labels." in refused.stderr
    )


def test_a_table_of_labels_is_for_calibrate(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("judge,human,text\npass,pass,a\nfail,pass,b\n", encoding="utf-8")
    said = "labels.csv: table of labels, 2 rows (columns 'judge' and 'human'). To compare them: "
    described = CliRunner().invoke(main, ["doctor", str(path)])
    assert (described.exit_code, described.stdout) == (
        0,
        f"{said}`voirdire calibrate labels.csv`.\n",
    )
    measured = CliRunner().invoke(main, ["measure", str(path)])
    assert measured.exit_code == 2
    assert f"{said}`voirdire calibrate labels.csv`." in measured.stderr
