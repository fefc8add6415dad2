"""A judge of the user's own, from an empty folder, as docs/how-to/own-judge.md shows it."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli.printing.terminal import number
from warehouse.store import Warehouse

Voirdire = Callable[..., Any]
pytestmark = pytest.mark.served

PAGE = Path(__file__).parents[2] / "docs/how-to/own-judge.md"
MOST_LINES = 30


def _files() -> dict[str, str]:
    """Return the files of the page, by the path in their first line."""
    blocks = re.findall(r"```toml\n# (voirdire/\S+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return dict(blocks)


def _answers(folder: Path) -> None:
    """Write 40 rows: those of the example that `init` writes, and 16 more without a label."""
    made = folder / "voirdire" / "datasets" / "answers.csv"
    rows = list(csv.DictReader(made.read_text("utf-8").splitlines()))
    more = [{**row, "question": f"Again: {row['question']}", "human_label": ""} for row in rows]
    with (folder / "voirdire" / "datasets" / "helpdesk.csv").open("w", encoding="utf-8") as file:
        columns = ["question", "answer", "human_label", "category", "label_chance"]
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for at, row in enumerate([*rows, *more][:40]):
            about = {"category": ("account", "orders")[at % 2], "label_chance": 0.6}
            writer.writerow({**row, **about})


def _strangers_are_counted(voirdire: Voirdire, folder: Path, items: list[str]) -> None:
    """Check what is said of labels of these items and of as many others."""
    named = [*items, *(f"X-{at}" for at in range(len(items)))]
    rows = [f"ann,{item},{('pass', 'fail')[at % 2]}" for at, item in enumerate(named)]
    path = folder / "half.csv"
    path.write_text("\n".join(["annotator,item,label", *rows, ""]), encoding="utf-8")
    reported = voirdire("calibrate", "helpdesk", "--humans", str(path), "--no-save").stderr
    counted = f"{len(items)} of {len(named)} labels of half.csv are about items that are not in"
    assert f"{counted} the study, such as 'X-0'." in " ".join(reported.split())


def _replies_stand_beside_disagreements(warehouse: Warehouse) -> None:
    texts = "question is not null and target is not null and anchor is null"
    replied = f"from mart.disagreements where audited = 'helpdesk' and len(replies) > 0 and {texts}"
    every = warehouse.query("select count(*) from mart.disagreements").item()
    assert warehouse.query(f"select count(*) {replied}").item() == every > 0


def _wordings_are_compared(voirdire: Voirdire, folder: Path) -> None:
    """Compare two wordings as the page does: the query shows what the audit prints."""
    page, own = PAGE.read_text("utf-8"), folder / "voirdire"
    [(wording, both)] = re.findall(r"`voirdire/prompts/(\w+)\.toml`.*`(prompts = .*?)`", page)
    prompts, study = own / "prompts", own / "studies" / "helpdesk.toml"
    earlier = (prompts / "helpdesk.toml").read_text()
    (prompts / f"{wording}.toml").write_text(earlier.replace("customer", "person"))
    study.write_text(re.sub("^prompts = .*$", both, study.read_text(), flags=re.MULTILINE))
    audited = voirdire("audit", "helpdesk")
    assert audited.returncode == 0, audited.stderr
    (query,) = re.findall(r'^voirdire sql "(.*other = judge.*)"$', page, re.MULTILINE)
    rows = json.loads(voirdire("sql", query, "--format", "json").stdout)
    assert {row["statistic"] for row in rows} == {"pass_rate_sham_contrast"}
    assert {row["prompt"].partition("@")[0] for row in rows} <= {"helpdesk", wording}
    shown = audited.stdout.partition("Prompts compared")[2]
    for row in rows:
        assert number(row["contrast"]) in shown


@pytest.mark.slow
def test_from_an_empty_folder_to_bias_and_agreement(
    voirdire: Voirdire,
    tmp_path: Path,
    emulated: Any,
    environment: dict[str, str],
    warehouse: Warehouse,
) -> None:
    files = _files()
    assert sum(len(text.splitlines()) for text in files.values()) <= MOST_LINES
    assert {Path(name).suffix for name in files} == {".toml"}
    assert voirdire("init").returncode == 0
    for name, text in files.items():
        (tmp_path / name).write_text(text.replace("http://127.0.0.1:8080/v1", emulated.base))
    _answers(tmp_path)
    # The fixture's folder of providers stands before that of the user.
    environment["VOIRDIRE_PROVIDERS"] = str(tmp_path / "voirdire" / "providers")
    emulated.behave(replies=["Fine. [[pass]]", "Sound. [[pass]]", "Wrong. [[fail]]"])

    audited = voirdire("audit", "helpdesk")
    assert audited.returncode == 0, audited.stderr
    shown = " ".join(audited.stdout.split())
    assert "desk/small fake_reference 40 " in shown
    assert "shift: change of the pass rate" in shown
    assert " 0 without a reply" in shown
    assert "Smallest detectable shift (pass rate) with " in voirdire("plan", "helpdesk").stdout

    words = ("calibrate", "helpdesk", "--slice", "category")
    compared = voirdire(*words, COLUMNS="120")
    assert compared.returncode == 0, compared.stderr
    shown = compared.stdout
    assert "desk/small against people: 24 items compared" in shown
    assert "16 without a label of people" in shown
    for row in ("agreement", "kappa", "TPR", "TNR", "bias", "corrected, PPI++"):
        assert re.search(rf"^{re.escape(row)} +[-+]?[.\d]+ +\[", shown, re.MULTILINE), row
    assert "corrected, Rogan-Gladen" in shown
    assert re.search(r"^people \\ judge +fail +pass$", shown, re.MULTILINE)
    assert re.search(r"^account +12 ", shown, re.MULTILINE)
    assert "disagreements, worst first" in shown
    assert "question: " in shown
    assert "answer: " in shown
    assert "the interval of the agreement would be about ±.05" in shown
    assert "p-values are adjusted together over" in shown
    assert "helpdesk-people" in compared.stderr

    # The study's own name finds them, with what the judge replied.
    differing = voirdire("show", "helpdesk", "--disagree", "--most", "2").stdout
    assert re.search(r": people: (pass|fail), judge: (pass|fail)$", differing, re.MULTILINE)
    assert re.search(r"control: (pass|fail): ", differing)
    _replies_stand_beside_disagreements(warehouse)
    disagreeing = voirdire("sql", "--ask", "who_disagrees_with_people")
    assert "all studies" in disagreeing.stderr
    assert "helpdesk-" in disagreeing.stdout
    assert disagreeing.stdout.count("desk/small") > 1
    assert disagreeing.stdout.index("all items") < disagreeing.stdout.index("category")
    named = voirdire("sql", "--ask", "who_disagrees_with_people", "--set", "study=helpdesk").stdout
    assert named == disagreeing.stdout

    asked = emulated.stats()["requests"]
    saved = json.loads(voirdire(*words, "--format", "json", "--no-save").stdout)
    assert {*saved[0]["with_people"]["disagreements"][0]["texts"]} == {"question", "answer"}
    assert emulated.stats()["requests"] == asked
    _strangers_are_counted(
        voirdire, tmp_path, [row["item"] for row in saved[0]["with_people"]["disagreements"]]
    )
    other = voirdire("calibrate", "helpdesk", "--slice", "team")
    assert (other.returncode, "by category only" in " ".join(other.stderr.split())) == (2, True)
    _wordings_are_compared(voirdire, tmp_path)


@pytest.mark.slow
def test_the_pass_fail_example_of_init(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    assert voirdire("init").returncode == 0
    audited = voirdire("audit", "pass_fail")
    assert audited.returncode == 0, audited.stderr
    assert "offline/dazzled" in audited.stdout
    compared = voirdire("calibrate", "pass_fail", COLUMNS="120")
    assert compared.returncode == 0, compared.stderr
    assert re.search(r"^offline/fair +2[34] ", compared.stdout, re.MULTILINE)
    assert "offline/dazzled against people: 2" in compared.stdout
    assert "All judges are simulated" in " ".join(compared.stdout.split())
    # The recommendation rests on the same kappa as the calibration.
    ends = "judge, round(estimate, 9), round(low, 9), round(high, 9)"
    kappas = f"select {ends} from human_agreements where statistic = 'kappa' and slice is null"
    gates = ends.replace("estimate", "value")
    gated = f"select {gates} from gates where gate = 'agreement' and study = 'pass_fail'"
    found = {*warehouse.query(gated).rows()}
    assert found == {*warehouse.query(kappas).rows()}
    assert {judge for judge, *_ in found} == {"offline/fair", "offline/dazzled"}
    assert "Agreement needs labels" not in audited.stdout
    # People label unperturbed answers, and one repeat at a time has changed.
    differing = voirdire("show", "pass_fail", "--disagree", "--most", "50")
    assert (differing.returncode, differing.stderr) == (0, "")
    assert "control: " in differing.stdout
    assert "perturbed, " not in differing.stdout
    flipped = voirdire("show", "pass_fail", "--most", "1").stdout
    assert re.search(r"fake_reference, repeat \d: (fail -> pass|pass -> fail)", flipped)
    assert flipped.count("control: ") == 1
    reports = tmp_path / "reports"
    reported = (reports / "pass_fail.html").read_text("utf-8")
    assert "single answers have no order: votes on the same answer are averaged" in reported
    assert re.search(r"\d+ ratings flipped</a>", reported)
    reported = (reports / "pass_fail-people.html").read_text("utf-8")
    assert "<dd><bdi>a column of the data of study pass_fail</bdi></dd>" in reported
    unlabelled = voirdire("audit", "quick", "--prompt", "binary_v1", "--limit", "6")
    assert unlabelled.returncode == 0, unlabelled.stderr
    # Pairs of answers are in the data, but these judges saw one answer at a time.
    reported = (reports / "quick.html").read_text("utf-8")
    assert "<h4>Answer</h4>" in reported
    assert "Which judges differ" in reported
    of_pairs = ("<h4>Anchor</h4>", ">MPS<", "Shrunk MPS", "LOS, difference", "their two orders")
    assert [words for words in of_pairs if words in reported] == []
    assert "anchor:" not in voirdire("show", "quick", "--flipped").stdout
    without = voirdire("calibrate", "quick")
    assert without.returncode == 2
    assert "have no labels of people. Add a column human_label" in " ".join(without.stderr.split())


LABELS_TOML = """
kind = "labels"
source = "own"
labels = ["rude", "wrong"]
user = "Question: {question} Answer: {answer} Reply with a list of R and W in faults."
verdict = { pointer = "/faults", map = { R = "rude", W = "wrong" } }
"""


def test_sets_of_labels_in_json_by_a_map(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    file = tmp_path / "voirdire" / "prompts" / "faults.toml"
    file.parent.mkdir(parents=True)
    file.write_text(LABELS_TOML, encoding="utf-8")
    done = voirdire(
        *("audit", "--prompt", "faults", "--judge", "offline/fair", "--limit", "12"),
        *("--perturbation", "fake_reference"),
    )
    assert done.returncode == 0, done.stderr
    read = warehouse.query("select distinct raw, choice, rating from votes order by raw").rows()
    assert set(read) == {
        ('{"faults": ["R", "W"]}', "rated", '{"": ["rude", "wrong"]}'),
        ('{"faults": ["R"]}', "rated", '{"": ["rude"]}'),
        ('{"faults": ["W"]}', "rated", '{"": ["wrong"]}'),
        ('{"faults": []}', "rated", '{"": []}'),
    }


WORDS_TOML = """
kind = "single"
source = "mine"
scale = { low = 1, high = 5 }
verdict = { pointer = "/items/0/g", map = { poor = 1, ok = 3, great = 5 } }
user = "{question} {answer}"
"""


def test_simulated_judges_reply_in_the_words_of_a_map(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    file = tmp_path / "voirdire" / "prompts" / "words.toml"
    file.parent.mkdir(parents=True)
    file.write_text(WORDS_TOML, encoding="utf-8")
    done = voirdire(
        *("audit", "--prompt", "words", "--judge", "offline/random", "--limit", "12"),
        *("--perturbation", "fake_reference"),
    )
    assert done.returncode == 0, done.stderr
    assert "Invalid replies" not in done.stdout
    assert warehouse.query("select distinct choice from votes").rows() == [("rated",)]
    grades = warehouse.query("select distinct rating from votes")["rating"].to_list()
    assert {*grades} == {'{"": 1.0}', '{"": 3.0}', '{"": 5.0}'}


@pytest.mark.slow
def test_results_of_an_earlier_version_of_a_prompt_say_so(
    voirdire: Voirdire, tmp_path: Path
) -> None:
    file = tmp_path / "voirdire" / "prompts" / "words.toml"
    file.parent.mkdir(parents=True)
    file.write_text(WORDS_TOML, encoding="utf-8")
    rows = [f"Why is thing {n} so?,Because of reason {n}.,{1 + n % 5}\n" for n in range(12)]
    (tmp_path / "mine.csv").write_text("question,answer,human_grade\n" + "".join(rows), "utf-8")
    audit = ("--prompt", "words", "--judge", "offline/random", "--perturbation", "fake_reference")
    done = voirdire("audit", *audit, "--dataset", "mine.csv", "--name", "mine")
    assert done.returncode == 0, done.stderr
    present = voirdire("calibrate", "mine", "--no-save")
    assert "earlier version" not in present.stderr
    file.write_text(WORDS_TOML.replace("high = 5", "high = 9"), encoding="utf-8")
    changed = " ".join(voirdire("calibrate", "mine", "--no-save").stderr.split())
    [(before, after)] = re.findall(
        r"earlier version of the judge prompt: (words@\w+), which is (words@\w+) now\.", changed
    )
    assert before != after
    assert "`voirdire audit mine --prompt words` asks the judges with the present" in changed
    again = voirdire("audit", "mine", "--prompt", "words")
    assert again.returncode == 0, again.stderr
    replaced = f"results of {after} replace those of {before} under the name 'mine'"
    assert replaced in " ".join(again.stderr.split())
    same = voirdire("audit", "mine", "--prompt", "words")
    assert same.returncode == 0, same.stderr
    assert "has changed" not in done.stderr + same.stderr
    assert "earlier version" not in voirdire("calibrate", "mine", "--no-save").stderr
    file.unlink()
    gone = " ".join(voirdire("calibrate", "mine", "--no-save").stderr.split())
    assert f"{after}, which is not there any more." in gone


@pytest.mark.slow
def test_an_empty_cell_of_a_label_is_unlabelled(voirdire: Voirdire, tmp_path: Path) -> None:
    file = tmp_path / "voirdire" / "prompts" / "faults.toml"
    file.parent.mkdir(parents=True)
    file.write_text(LABELS_TOML, encoding="utf-8")
    rude = ["yes"] * 12 + ["no"] * 9 + [""] * 9
    rows = [f"Why is thing {n}?,Reason {n}.,{said},{n % 2}\n" for n, said in enumerate(rude)]
    head = "question,answer,human_rude,human_wrong\n"
    (tmp_path / "mine.csv").write_text(head + "".join(rows), "utf-8")
    done = voirdire(
        *("audit", "--prompt", "faults", "--judge", "offline/fair", "--dataset", "mine.csv"),
        *("--perturbation", "fake_reference", "--name", "mine"),
    )
    assert done.returncode == 0, done.stderr
    compared = voirdire("calibrate", "mine", "--format", "json")
    assert compared.returncode == 0, compared.stderr
    [judge] = json.loads(compared.stdout)
    found = {
        row["criterion"]: (row["n"], row["unlabelled"])
        for row in judge["with_people"]["measures"]
        if row["statistic"] == "agreement" and not row["slice"]
    }
    assert found == {"rude": (21, 9), "wrong": (30, 0)}


HALVES_TOML = """
kind = "rubric"
source = "mine"
user = "{criteria} {question} {answer}"
criteria = [
    { name = "tone", about = "it is polite", low = 1, high = 5 },
    { name = "facts", about = "it is true", low = 1, high = 5 },
]
"""


@pytest.mark.slow
def test_why_a_grade_is_invalid_is_said_everywhere(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path, emulated: Any
) -> None:
    file = tmp_path / "voirdire" / "prompts" / "halves.toml"
    file.parent.mkdir(parents=True)
    file.write_text(HALVES_TOML, encoding="utf-8")
    rows = [f"Why is thing {n}?,Reason {n}.,{1 + n % 5},{5 - n % 5}\n" for n in range(6)]
    head = "question,answer,human_tone,human_facts\n"
    (tmp_path / "mine.csv").write_text(head + "".join(rows), "utf-8")
    emulated.behave(replies=["[[tone: 4.5]] [[facts: 3]]"])
    done = voirdire(
        *("audit", "--prompt", "halves", "--judge", "emu/one", "--dataset", "mine.csv"),
        *("--perturbation", "fake_reference", "--name", "mine"),
    )
    assert done.returncode == 0, done.stderr
    reasons = "select distinct criterion, invalid from ratings where not human order by criterion"
    fraction = "a fraction on a scale of whole numbers"
    assert warehouse.query(reasons).rows() == [("facts", None), ("tone", fraction)]
    shown = voirdire("show", "mine", "--invalid", COLUMNS="200").stdout
    assert f"control: invalid (tone: {fraction})" in shown
    compared = voirdire("calibrate", "mine", COLUMNS="200")
    assert compared.returncode == 0, compared.stderr
    assert re.search(rf"invalid labels of the judge: [^ ]+ \({fraction}\)", compared.stdout)
    assert "no rating" not in compared.stdout
