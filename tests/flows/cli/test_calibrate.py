import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main

JUDGE = [
    "judge",
    "metric",
    "epsilon",
    "epsilon_kind",
    "test",
    "winning_rate",
    "advantage_probability",
    "passed",
    "annotators",
]
ANNOTATOR = [
    "annotator",
    "n",
    "advantage_probability",
    "human_advantage_probability",
    "p_value",
    "rejected",
]


def tell(labels: str) -> dict[str, str]:
    return {f"i{number:02}": label for number, label in enumerate(labels)}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    # People agree but for one item in ten, and never two of them at once.
    humans = {
        "Ann": tell("abcabcabcb" * 6),
        "Bob": tell("abcabcabaa" * 6),
        "Cid": tell("abcabcacca" * 6),
    }
    judges = {"good": tell("abcabcabca" * 6), "poor": tell("cccabcabca" * 6), "mute": {}}
    humans["Ann"] |= {"x": None, "y": ""}  # type: ignore[dict-item]
    paths = {}
    for name, labels in (("humans", humans), ("judges", judges)):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(labels))
        paths[name] = str(file)
    return paths


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOIRDIRE_WAREHOUSE", str(tmp_path / "w.duckdb"))


def call(files: dict[str, str], *options: str) -> Result:
    named = ["--humans", files["humans"], "--judges", files["judges"], "--no-save"]
    return CliRunner().invoke(main, ["calibrate", *named, *options])


def objects(files: dict[str, str], *options: str) -> list[dict[str, Any]]:
    done = call(files, "--format", "json", *options)
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_json(files: dict[str, str]) -> None:
    good, mute, poor = objects(files)
    assert list(good)[: len(JUDGE)] == JUDGE
    assert list(good["annotators"][0])[: len(ANNOTATOR)] == ANNOTATOR
    assert [row["annotator"] for row in good["annotators"]] == ["Ann", "Bob", "Cid"]
    assert (good["judge"], good["metric"], good["epsilon"]) == ("good", "accuracy", 0.1)
    assert (good["epsilon_kind"], good["test"]) == ("additive", "auto")
    assert (good["winning_rate"], good["passed"], good["advantage_probability"]) == (1, True, 1)
    # the good judge says what most say: better than each in every tenth item
    assert good["annotators"][0]["human_advantage_probability"] == 0.9
    assert good["annotators"][0]["unreadable"] == 2
    assert good["annotators"][0]["test"] == "score"
    # the poor judge is alone in two items of ten
    assert (poor["winning_rate"], poor["passed"]) == (0, False)
    assert poor["advantage_probability"] == pytest.approx(0.8)
    assert (mute["winning_rate"], mute["passed"], mute["advantage_probability"]) == (None,) * 3
    assert mute["reason"] == "the judge gave no valid label"
    assert "curve" not in good
    # people agree in four items of five
    assert good["agreement"]["noise_ceiling"]["estimate"] == pytest.approx(0.8)
    assert good["agreement"]["below_ceiling"]["estimate"] == pytest.approx(0.9)
    assert [row["annotator"] for row in good["agreement"]["people"]] == ["Ann", "Bob", "Cid"]
    assert len(good["agreement"]["among_people"]) == 3
    assert mute["agreement"]["people"] == []


def test_the_curve(files: dict[str, str]) -> None:
    good, _, poor = objects(files, "--curve", "--epsilon", "0.07")
    assert good["epsilon"] == 0.07
    assert [point["epsilon"] for point in good["curve"]] == [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
    rates = [point["winning_rate"] for point in poor["curve"]]
    assert rates[0] == 0
    assert rates == sorted(rates)


def test_options_reach_the_test(files: dict[str, str]) -> None:
    one = objects(files, "--test", "t", "--epsilon-kind", "multiplicative")[0]
    assert (one["test"], one["epsilon_kind"]) == ("t", "multiplicative")
    assert [row["test"] for row in one["annotators"]] == ["t"] * 3
    # Ann alone has 62 labels, and 60 of them are shared.
    many = call(files, "--min-instances", "61")
    assert many.exit_code == 0, many.output
    assert "no annotator has 61 instances" in many.stdout
    reported = " ".join(many.stdout.split())
    assert "(the maximum is 60). Let people label more items, or lower --min-instances." in reported


def test_csv(files: dict[str, str]) -> None:
    done = call(files, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 9
    assert rows[0]["judge"] == "good"
    assert rows[0]["judge_winning_rate"] == "1.0"
    assert rows[0]["annotator"] == "Ann"
    assert rows[0]["human_advantage_probability"] == "0.9"


def test_table(files: dict[str, str]) -> None:
    done = call(files, "--curve")
    lines = done.output.splitlines()
    assert lines[:2] == [
        "Which judges may replace people",
        "✓ good: may replace people. Winning rate 1.00 among 3 people; advantage",
    ]
    del lines[: [line.split()[:1] for line in lines].index(["judge"])]
    assert lines[1].split()[:4] == ["good", "1.00", "1.00", "[.94,"]
    assert lines[1].split()[5:] == [".90", ".90", "3", "60", "passes"]
    # The best judge first, as in the lines above and in the report.
    assert lines[2].split()[:2] == ["poor", ".00"]
    assert lines[3].split() == ["mute", "-", "-", "-", "-", "-", "0", "0", "not", "testable"]
    assert [line.split()[0] for line in lines[6:9]] == ["good", "poor", "mute"]
    at = [line.rstrip() for line in lines].index("Agreement with single people, mean over items")
    assert lines[at + 2].split()[:4] == ["good", ".90", ".80", "1.12"]
    assert "mute: the judge gave no valid label." in lines
    assert "Ann: 2 missing or invalid labels were left out." in lines
    assert any("additive epsilon .10, test auto." in line for line in lines)


@pytest.mark.parametrize(
    ("humans", "doubt"),
    [
        ({"Ann": "ab" * 20, "Bob": "ab" * 20}, "fewer than 3 annotators"),
        (dict.fromkeys(("Ann", "Bob", "Cid"), "a" * 40), "all labels of people are equal"),
    ],
)
def test_a_doubt_stands_beside_the_verdict(
    tmp_path: Path, humans: dict[str, str], doubt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    files = {}
    like = {"like": next(iter(humans.values()))}
    for name, labels in (("humans", humans), ("judges", like)):
        files[name] = str(tmp_path / f"{name}.json")
        reported = {who: tell(said) for who, said in labels.items()}
        Path(files[name]).write_text(json.dumps(reported))
    lines = call(files).output.splitlines()
    (line,) = [row for row in lines if re.match("like .* passes", row)]
    assert line.rstrip().endswith(" passes, doubtful")
    assert any(row.startswith(f"like: {doubt}") for row in lines)
    (judge,) = objects(files)
    assert judge["passed"]
    assert judge["reason"].startswith(f"{doubt}, ")
    (row, *_) = csv.DictReader(io.StringIO(call(files, "--format", "csv").stdout))
    assert row["judge_reason"] == judge["reason"]


def test_a_function_of_the_users(files: dict[str, str], tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("def same(label, other):\n    return label == other\n")
    mine = objects(files, "--metric", f"{own}:same")
    assert mine[0]["metric"] == f"{own}:same"
    for one, two in zip(mine, objects(files), strict=True):
        assert one["winning_rate"] == two["winning_rate"]
        assert [a["p_value"] for a in one["annotators"]] == [
            a["p_value"] for a in two["annotators"]
        ]


def test_plan(files: dict[str, str]) -> None:
    done = CliRunner().invoke(main, ["calibrate", "--humans", files["humans"], "--plan"])
    assert done.exit_code == 0, done.output
    # pairs agree in all but the tenth: Ann differs in 6 items of 60, so do Bob and Cid
    assert "same one of 3 labels with probability .80" in done.output
    assert "instances, each labelled by all, give a chance of at least .80." in done.output
    assert "passes half of the time" in done.output


def test_plan_as_data(files: dict[str, str]) -> None:
    plan: Any = objects(files, "--plan", "--epsilon", "0.2")
    assert plan["agreement"] == pytest.approx(0.8)
    assert plan["chances"][-1]["instances"] == plan["instances"]
    assert plan["chances"][-1]["chance"] >= 0.8
    assert 0 < plan["worst_judge"] < 0.2
    done = call(files, "--plan", "--format", "csv")
    assert done.stdout.splitlines()[0] == "instances,chance"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--epsilon", "1"], "must be at least 0 and below 1"),
        (["--epsilon", "-0.1"], "must be at least 0 and below 1"),
        (["--metric", "acuracy"], "no metric 'acuracy'. Did you mean 'accuracy'"),
        (["--min-instances", "0"], "--min-instances is 0, but must be a whole number, at least 1."),
        (["--name", "a/b"], "--name is 'a/b', but must have 1 to 64 letters A to Z, digits, '_', "),
        (["--metric", "jaccard", "--plan"], "cannot plan for metric jaccard"),
    ],
)
def test_errors_are_one_line(files: dict[str, str], options: list[str], says: str) -> None:
    done = call(files, *options)
    assert done.exit_code == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_judges_are_needed(files: dict[str, str]) -> None:
    done = CliRunner().invoke(main, ["calibrate", "--humans", files["humans"]])
    assert done.exit_code == 2
    assert "labels of judges are missing. Give --judges FILE" in done.stderr


def test_names_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    humans = {name: tell("ab" * 20) for name in ("\x1b[2JAnn", "[red]Bob", "<b>Cid</b>")}
    humans["\x1b[2JAnn"]["i00"] = ""
    judges = {"\x1b]0;x\x07judge": tell("ab" * 20), "\x1b[31m": {}}
    for name, labels in (("humans", humans), ("judges", judges)):
        (tmp_path / f"{name}.json").write_text(json.dumps(labels))
    files = {name: str(tmp_path / f"{name}.json") for name in ("humans", "judges")}
    done = call(files)
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert "\x07" not in done.output


def test_tables_of_labels_may_call_judges_and_people_what_they_are(tmp_path: Path) -> None:
    given = {("human", "ann"): "pass", ("person", "ann"): "pass", ("judge", "gpt"): "fail"}
    paths = {}
    for (column, name), label in given.items():
        rows = [f"i{at},{label if at % 3 else 'pass'},{name}" for at in range(30)]
        paths[column] = tmp_path / f"{column}.csv"
        paths[column].write_text("\n".join([f"item,label,{column}", *rows, ""]), encoding="utf-8")
    parquet = tmp_path / "judge.parquet"
    pl.read_csv(paths["judge"]).write_parquet(parquet)

    def calibrate(humans: Path, judges: Path) -> Result:
        words = ["--humans", str(humans), "--judges", str(judges), "--no-save", "--format", "json"]
        return CliRunner().invoke(main, ["calibrate", *words])

    for humans in (paths["human"], paths["person"]):
        for judges in (paths["judge"], parquet):
            done = calibrate(humans, judges)
            assert done.exit_code == 0, done.output
            [found] = json.loads(done.stdout)
            assert found["judge"] == "gpt"
            measures = {row["statistic"]: row for row in found["with_people"]["measures"]}
            # They agree on each third of 30 items.
            assert measures["agreement"]["estimate"] == pytest.approx(1 / 3)
    # Files that are in each other's place are refused.
    swapped = calibrate(paths["judge"], paths["human"])
    assert swapped.exit_code == 2
    assert "judge.csv has the wrong columns: item, label, judge." in swapped.stderr


def test_a_file_of_votes_is_compared_as_measure_says(tmp_path: Path) -> None:
    # Each of three people sees one order; the judge sees both, and errs on every fifth item.
    rows = [
        {"judge": who, "human": who != "ada", "sample": f"q{item}", "cluster": f"q{item}"}
        | {"shown_first": first, "repeat": 0}
        | {
            "choice": "first"
            if (first == "anchor") == (item % 2 == (who == "ada" and not item % 5))
            else "second"
        }
        for item in range(40)
        for who, orders in (("Ann", 1), ("Bob", 1), ("Cid", 1), ("ada", 2))
        for first in ("anchor", "target")[:orders]
    ]
    file = tmp_path / "votes.csv"
    pl.DataFrame(rows).write_csv(file)
    measured = CliRunner().invoke(main, ["measure", str(file)])
    assert measured.exit_code == 0, measured.stderr
    assert "more with `voirdire calibrate votes.csv --format json`" in " ".join(
        measured.stdout.split()
    )
    done = CliRunner().invoke(main, ["calibrate", str(file), "--format", "json"])
    assert done.exit_code == 0, done.stderr
    [found] = json.loads(done.stdout)
    # Of people's 40 pairs, the judge agrees with all on 32.
    assert (found["judge"], found["instances"], found["annotators"][0]["n"]) == ("ada", 40, 40)
    assert found["agreement"]["below_ceiling"]["estimate"] == pytest.approx(0.8)
    named = CliRunner().invoke(main, ["calibrate", str(file), "--people", "A*"])
    assert named.exit_code == 2
    assert (
        "--people 'A*' is for logs of other tools, and votes.csv is a file of votes" in named.stderr
    )
