"""Logs of other tools from the command line: doctor, measure, calibrate."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result
from statsmodels.stats.proportion import proportion_confint

from flows.cli.main import main
from flows.cli.printing.terminal import interval, number


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """Return Langfuse scores: two annotators and an evaluator, who pass 60 answers or not."""
    draw = random.Random(5)
    rows = []
    for at in range(60):
        right = draw.random() < 0.5
        for who, chance in (("ann", 0.9), ("bob", 0.9), (None, 0.9)):
            value = right == (draw.random() < chance)
            rows.append(
                {
                    "id": f"{at}-{who}",
                    "name": "correct",
                    "value": int(value),
                    "stringValue": str(value),
                    "dataType": "BOOLEAN",
                    "source": "ANNOTATION" if who else "EVAL",
                    "traceId": f"t{at}",
                    "authorUserId": who,
                }
            )
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def test_doctor_says_what_a_log_is(scores: Path) -> None:
    done = run("doctor", scores)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(
        "scores.json: Langfuse scores, 180 rows, judge langfuse evaluator, 120 human ratings by 2 "
        "people.\n"
    )
    assert "180 labels" in done.stdout


def test_disagreements_of_a_mapped_table_have_their_texts(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    lines = [
        f"{at},What is {at}?,It is {at}.,pass,{'fail' if at == 7 else 'pass'}" for at in range(20)
    ]
    path.write_text("\n".join(["id,asked,said,verdict,checked", *lines, ""]), encoding="utf-8")
    places = ("item=id", "label=verdict", "human_label=checked", "question=asked", "answer=said")
    options = [word for place in places for word in ("--map", place)]
    done = run("calibrate", path, *options, "--no-save", "--format", "json")
    assert done.exit_code == 0, done.output
    assert "What is 7?" in done.stdout
    assert "It is 7." in done.stdout
    assert "What is 8?" not in done.stdout


def test_measure_says_what_self_score_error_needs(tmp_path: Path) -> None:
    games = [{"score": "A>B"}, {"score": "B>A"}]
    rows = [
        {"question_id": f"q{at}", "model": "mine", "judge": "gpt-4", "games": games}
        for at in range(12)
    ]
    path = tmp_path / "judgments.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = run("measure", path)
    assert done.exit_code == 0, done.output
    reported = " ".join(done.stdout.split())
    assert (
        "self_score_error needs an author that is named like a judge, provider/model." in reported
    )


def test_measure_says_and_computes(scores: Path) -> None:
    done = run("measure", scores, "--only", "agreement", "--format", "json")
    assert done.exit_code == 0, done.output
    assert "Recognised: Langfuse scores, 180 rows" in done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    pairs = {(row["judge"], row["subgroup"]) for row in found if row["statistic"] == "agreement"}
    assert ("langfuse evaluator", "ann") in pairs
    table = run("measure", scores)
    assert table.exit_code == 0, table.output
    assert "langfuse evaluator" in table.stdout


def test_means_have_intervals_in_which_an_item_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    def line(times: int, column: str, judge: str) -> str:
        draw = random.Random(3)
        rows = []
        for at in range(40):
            grade, verdict = draw.randint(1, 5), draw.choice(["pass", "fail", "fail"])
            rows += [f"t{at},{grade if column == 'value' else verdict},{judge}"] * times
        path = tmp_path / f"{column}{times}.csv"
        path.write_text("\n".join([f"item,{column},judge", *rows]), encoding="utf-8")
        names = [f"--map={name}={name}" for name in ("item", column, "judge")]
        shown = run("measure", path, *names).stdout.split("Ratings")[1]
        return next(each for each in shown.splitlines() if each.startswith(judge))

    # statsmodels' Wilson interval of the pass rate of 40 items, whether asked once or three times.
    draw = random.Random(3)
    passes = sum(
        (draw.randint(1, 5), draw.choice(["pass", "fail", "fail"]))[1] == "pass" for _ in range(40)
    )
    low, high = proportion_confint(passes, 40, method="wilson")
    expected = f"{number(passes / 40)} {interval(low, high)}"
    assert line(1, "label", "ada").split()[1:5] == ["40", "0", *expected.split()[:2]]
    assert expected in line(1, "label", "ada")
    assert expected in line(3, "label", "ada")
    once, thrice = (line(times, "value", "bea") for times in (1, 3))
    assert once.split()[3:] == thrice.split()[3:]
    assert "[" in once


def test_measure_compares_judges_with_people_as_calibrate_does(
    scores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    measured = run("measure", scores).stdout
    calibrated = run("calibrate", scores, "--no-save").stdout
    first = "langfuse evaluator against"
    shown = calibrated[calibrated.index(first) :].split("worst first")[0]
    assert "people \\ judge" in shown
    assert shown in measured
    # One line names the columns that statistics of single answers lack, and none of pairs.
    reported = " ".join(measured.split()).partition("Not computed: ")[2].partition(". ")[0]
    assert "model_rating needs the column target_author;" in reported
    assert (
        "near_threshold needs the column passes_at (the grade from which an answer passes)"
        in reported
    )
    assert "accuracy" not in reported
    for name, why in (
        ("model_rating", "the file has no values in the column target_author"),
        ("accuracy", "it needs verdicts on pairs of answers"),
        ("rating_retest", "the ratings do not suffice; `voirdire list rating_retest` says"),
    ):
        done = run("measure", scores, "--only", name)
        assert f"{name}: no rows, because {why}" in " ".join(done.output.split())


def test_measure_takes_grades_of_people_on_two_criteria(tmp_path: Path) -> None:
    # People differ on every seventh item. The judge follows ann, of tone only on every second item.
    def off(at: int, name: str) -> bool:
        return at % 2 == 0 if name == "tone" else at % 13 == 0

    rows = [
        {
            "id": f"{at}-{name}-{who}",
            "name": name,
            "value": 1
            + (at + (who == "bob" and at % 7 == 0) + (who is None and off(at, name))) % 4,
            "dataType": "NUMERIC",
            "source": "ANNOTATION" if who else "EVAL",
            "traceId": f"t{at}",
            "authorUserId": who,
        }
        for at in range(40)
        for name in ("clarity", "tone")
        for who in ("ann", "bob", None)
    ]
    log = tmp_path / "grades.json"
    log.write_text(json.dumps(rows), encoding="utf-8")
    done = run("measure", log)
    assert done.exit_code == 0, done.output
    assert "on tone" in " ".join(done.stdout.split())
    gates = run("measure", log, "--only", "scorecard", "--format", "json")
    [gate] = [row for row in json.loads(gates.stdout) if row["gate"] == "agreement"]
    assert gate["verdict"] == "fail"
    assert gate["reason"] == "the worst of 2 criteria: tone"


def test_calibrate_compares_judges_and_people(scores: Path, tmp_path: Path) -> None:
    words = ("calibrate", scores, "--epsilon", 0.2, "--format", "json")
    done = run(*words, "--warehouse", tmp_path / "w.duckdb")
    assert done.exit_code == 0, done.output
    (judge,) = json.loads(done.stdout)
    assert judge["judge"] == "langfuse evaluator"
    assert (judge["instances"], judge["dropped"]) == (60, 0)
    assert judge["winning_rate"] is not None
    assert len(judge["agreement"]["people"]) == 2


def test_disagreements_of_a_log_are_listed_with_their_texts(tmp_path: Path) -> None:
    def graded(at: int) -> dict[str, Any]:
        kinds = {"llm-rubric": at % 3 > 0, "human": at % 2 > 0}
        parts = [{"assertion": {"type": kind}, "pass": ok} for kind, ok in kinds.items()]
        return {
            "testIdx": at,
            "promptIdx": 0,
            "provider": {"id": "m"},
            "vars": {"question": f"What is {at} + 1?"},
            "response": {"output": f"{at} and one."},
            "gradingResult": {"componentResults": parts},
        }

    results = {"version": 3, "results": [graded(at) for at in range(24)], "stats": {}}
    path = tmp_path / "graded.json"
    log = {"evalId": "e", "results": results, "config": {}, "prompts": []}
    path.write_text(json.dumps(log), encoding="utf-8")
    done = run("calibrate", path, "--warehouse", tmp_path / "w.duckdb")
    assert done.exit_code == 0, done.output
    # 0 is even and divisible by three: both fail it; 2 is not, so only the judge passes it.
    assert "question: What is 2 + 1?" in done.stdout
    assert "output: 2 and one." in done.stdout
    assert "question: What is 0 + 1?" not in done.stdout
    shown = run("show", "graded", "--disagree", "--warehouse", tmp_path / "w.duckdb")
    assert "question: What is 2 + 1?" in shown.stdout


@pytest.mark.parametrize(
    ("kept", "items", "why"),
    [
        # each person rated half of the items
        (lambda at, who: who is None or (who == "ann") == (at < 30), 60, "and of two people (60"),
        (lambda at, _: at < 25, 15, "no annotator has 30 instances"),
    ],
)
def test_a_log_without_the_test_of_judges_has_everything_else(
    scores: Path, kept: Callable[[int, str | None], bool], items: int, why: str
) -> None:
    rows = json.loads(scores.read_text())
    chosen = [row for row in rows if kept(int(row["traceId"][1:]), row["authorUserId"])]
    scores.write_text(json.dumps(chosen), encoding="utf-8")
    done = run("calibrate", scores, "--no-save")
    assert done.exit_code == 0, done.output
    for words in (f"people: {items} items compared", "kappa ", "people \\ judge", "disagreements,"):
        assert words in done.stdout
    line = " ".join(done.stdout.split()).partition("test was not run: ")[2]
    assert why in line
    (judge,) = json.loads(run("calibrate", scores, "--no-save", "--format", "json").stdout)
    assert judge["winning_rate"] is None
    assert judge["with_people"]["measures"][0]["n"] == items


@pytest.mark.parametrize(("step", "columns"), [(1, "1 2 3"), (0.1, "1 1.03 2 2.03 3 3.03")])
def test_repeats_of_whole_grades_count_as_the_nearest_grade(
    tmp_path: Path, step: float, columns: str
) -> None:
    # Three grades of the judge: the person's own twice, and one that is `step` higher.
    rows = [
        {"id": f"t{at}", "v": 1 + at % 3 + step * (repeat == 2), "h": 1 + at % 3}
        for at in range(30)
        for repeat in range(3)
    ]
    path = tmp_path / "repeats.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    maps = ("--map", "item=id", "--map", "value=v", "--map", "human_value=h")
    done = run("measure", path, *maps)
    assert done.exit_code == 0, done.output
    (head,) = (each for each in done.stdout.splitlines() if each.startswith("people \\ judge"))
    assert head.split()[3:] == columns.split()


@pytest.fixture
def mapped(tmp_path: Path) -> tuple[Path, list[str]]:
    """Return a table with names of its own, and the options that map them."""
    path = tmp_path / "own.csv"
    rows = [f"t{at},{'IC'[at % 3 > 0]},{'IC'[at % 4 > 0]}" for at in range(30)]
    path.write_text("\n".join(["ticket,said,checked", *rows]), encoding="utf-8")
    names = ("item=ticket", "label=said", "human_label=checked")
    return path, [word for name in names for word in ("--map", name)]


def test_calibrate_reads_a_table_with_names_of_its_own(mapped: tuple[Path, list[str]]) -> None:
    path, maps = mapped
    done = run("calibrate", path, *maps, "--no-save")
    assert done.exit_code == 0, done.output
    assert "Recognised: mapped table, 30 rows, 60 ratings, judge" in done.stderr
    assert "said against people: 30 items compared" in done.stdout
    for words in (maps, ("study", *maps)):
        refused = run("calibrate", *words, "--no-save")
        assert refused.exit_code == 2
        assert "--map says what the columns of one FILE are" in refused.stderr
    twice = run("calibrate", path, *maps, "--humans", path, "--no-save")
    assert twice.exit_code == 2
    assert "labels of people are given twice" in twice.stderr


def test_a_chance_of_labelling_may_have_another_name(tmp_path: Path) -> None:
    path, maps = tmp_path / "own.csv", [("item", "ticket"), ("label", "said")]
    maps += [("human_label", "checked"), ("label_chance", "share")]
    given = [word for column, name in maps for word in ("--map", f"{column}={name}")]
    # People labelled a third of the items.
    labels = ["pass" if at % 4 else "fail" for at in range(90)]
    rows = [f"t{at},{labels[at * 7 % 90]},{labels[at] if at < 30 else ''}" for at in range(90)]

    def table(share: object) -> list[str]:
        lines = ["ticket,said,checked,share", *(f"{row},{share}" for row in rows)]
        path.write_text("\n".join(lines), encoding="utf-8")
        return given

    def corrected(*words: str) -> dict[str, Any]:
        done = run("calibrate", path, *words, "--no-save", "--format", "json")
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)[0]["with_people"]["measures"]
        [row] = [each for each in found if each["statistic"] == "corrected_ppi"]
        return {name: row[name] for name in ("estimate", "low", "high", "reason")}

    with_chance = corrected(*table(0.3))
    assert with_chance["low"] < with_chance["estimate"] < with_chance["high"]
    # Equal chances say what --random-labels says.
    assert corrected(*given[:-2], "--random-labels") == with_chance
    assert "label_chance" in corrected(*given[:-2])["reason"]
    said = run("measure", path, *given)
    assert said.exit_code == 0, said.output
    for share in ("1.5", "0", "often"):
        refused = run("calibrate", path, *table(share), "--no-save")
        assert refused.exit_code == 2
        assert "label_chance of row 1 is" in refused.stderr
    votes = ("--map", "shown_first=said", "--map", "choice=checked", *given[:2], *given[-2:])
    assert "--map label_chance is about ratings" in run("doctor", path, *votes).stderr


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_table_of_a_spreadsheet_may_have_another_separator(
    mapped: tuple[Path, list[str]], mark: str
) -> None:
    path, maps = mapped
    commands: tuple[tuple[str, ...], ...] = (
        ("calibrate", str(path), *maps, "--no-save"),
        ("measure", str(path), *maps),
        ("calibrate", str(path), "--judge", "said", "--human", "checked", "--no-save"),
    )
    before = [run(*words) for words in commands]
    path.write_text(path.read_text(encoding="utf-8").replace(",", mark), encoding="utf-8")
    after = [run(*words) for words in commands]
    assert [done.exit_code for done in before] == [0, 0, 0]
    assert [done.stdout for done in after] == [done.stdout for done in before]


def test_questions_may_have_another_separator(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("frage;a;b\nSum, of 1 and 1?;2;3\n", encoding="utf-8-sig")
    maps = [w for m in ("question=frage", "anchor=a", "target=b") for w in ("--map", m)]
    done = run("plan", "--dataset", path, *maps)
    assert done.exit_code == 0, done.output
    # A file that cannot be read is not searched for columns.
    path.write_bytes(b"\xff\xfef\x00")
    refused = run("plan", "--dataset", path, *maps)
    assert refused.exit_code == 2
    assert "byte 0xff at position 1 is not UTF-8" in refused.stderr
    assert "has no column" not in refused.stderr


def test_an_error_about_two_names_says_what_makes_them_verdicts(
    mapped: tuple[Path, list[str]],
) -> None:
    path, maps = mapped
    line = "People's labels are C and I, which are read as names. `--pass LABEL` says"
    for command, *options in (("measure",), ("calibrate", "--no-save")):
        assert line in " ".join(run(command, path, *maps, *options).stdout.split())
    done = run("calibrate", path, *maps, "--pass", "C", "--no-save")
    assert "TPR" in done.stdout
    assert "read as names" not in done.stdout


def test_a_folder_is_found_by_its_name_unless_a_study_has_it(
    scores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scores.parent)
    Path("mine").mkdir()
    scores.rename("mine/scores.json")
    # A calibration under the name of its folder is no study.
    for _ in range(2):
        done = run("calibrate", "mine")
        assert done.exit_code == 0, done.output
        assert "against the majority of people" in done.stdout
    with duckdb.connect("voirdire.duckdb") as warehouse:
        warehouse.execute("update runs set flow = 'audit'")
    taken = run("calibrate", "mine")
    assert "Recognised" not in taken.stderr


def test_a_log_of_judges_only_cannot_be_compared(scores: Path) -> None:
    rows = [row for row in json.loads(scores.read_text()) if row["source"] == "EVAL"]
    scores.write_text(json.dumps(rows), encoding="utf-8")
    done = run("calibrate", scores, "--no-save")
    assert done.exit_code == 2
    assert "has ratings of judges only" in done.stderr


def test_ratings_are_not_saved_as_votes(scores: Path, tmp_path: Path) -> None:
    place = tmp_path / "w.duckdb"
    done = run("measure", scores, "--warehouse", place)
    assert done.exit_code == 2
    assert "--warehouse saves one file of votes whose order is known" in done.stderr
    assert "Leave out --warehouse, or save ratings" in done.stderr
    assert not place.exists()


def test_votes_of_a_log_are_saved(tmp_path: Path) -> None:
    games = [{"score": "A>B"}, {"score": "B>A"}]
    rows = [
        {"question_id": f"q{at}", "model": "mine", "judge": "gpt", "games": games}
        for at in range(12)
    ]
    path = tmp_path / "hard.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    place = tmp_path / "w.duckdb"
    done = run("measure", path, "--warehouse", place)
    assert done.exit_code == 0, done.output
    saved = run(
        "sql", "select count(*) as n from vote_log", "--warehouse", place, "--format", "json"
    )
    assert json.loads(saved.stdout) == [{"n": 24}]


def test_a_damaged_log_ends_in_one_line_and_saves_nothing(tmp_path: Path) -> None:
    game = {"question_id": "q", "model": "mine", "judge": "gpt", "games": [{"score": "A>B"}] * 2}
    text = json.dumps(game)
    path, place = tmp_path / "hard.jsonl", tmp_path / "w.duckdb"
    for damaged in (f"{text}\n{text[:-9]}", f'{text[:-1]}, "model": "x"}}', f"{text}\n[1]\n"):
        path.write_text(damaged, encoding="utf-8")
        for words in (("measure", path, "--warehouse", place), ("doctor", path)):
            done = run(*words)
            assert done.exit_code == 2, done.output
            assert done.stdout == ""
            assert done.stderr.startswith("voirdire: hard.jsonl")
            assert done.stderr.count("\n") == 1
            assert not place.exists()


def test_formulas_and_markup_of_a_log_stay_text(tmp_path: Path) -> None:
    games = [{"score": "A>B"}, {"score": "B>A"}]
    names = ("=cmd|' /C calc'!A0", "[bold]x[/bold]", "<script>alert(1)</script>")
    rows = [
        {"question_id": f"q{at}", "model": "mine", "judge": name, "games": games}
        for at in range(3)
        for name in names
    ]
    path = tmp_path / "hard.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    table = run("measure", path)
    assert table.exit_code == 0, table.output
    assert "[bold]x" in table.stdout
    cells = run("measure", path, "--only", "validity", "--format", "csv").stdout
    assert "'=cmd|" in cells
    assert ",=cmd|" not in cells


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("hello\n", "the file type '.txt' is not supported"),
        ("", "is empty"),
    ],
)
def test_doctor_of_something_else(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(content, encoding="utf-8")
    done = run("doctor", path)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "commands"),
    [
        ("cut.json", '{"results": [1, 2', ("doctor", "measure", "calibrate")),
        ("broken.eval", "no archive", ("doctor", "measure", "calibrate")),
        ("table.csv", "nr,verdict\n1,pass\n", ("doctor", "measure")),
    ],
)
def test_an_error_about_an_unknown_format_says_what_helps(
    tmp_path: Path, name: str, content: str, commands: tuple[str, ...]
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    for command in commands:
        done = run(command, path)
        assert done.exit_code == 2
        assert done.stderr.startswith(f"voirdire: {name}: neither a log in a known format")
        assert "columns of other names are named by --map" in done.stderr


def test_a_map_needs_a_path(scores: Path) -> None:
    done = run("measure", scores, "--map", "label")
    assert done.exit_code == 2
    assert "must be COLUMN=PATH" in done.stderr


def test_a_log_without_samples_is_an_error(voirdire: Callable[..., Any], tmp_path: Path) -> None:
    header = {"version": 2, "status": "started", "eval": {}, "results": {}, "stats": {}}
    (tmp_path / "empty.json").write_text(json.dumps(header))
    for command in ("doctor", "measure"):
        refused = voirdire(command, "empty.json")
        assert refused.returncode == 2
        assert "empty.json is a log (Inspect AI log) without samples" in refused.stderr
