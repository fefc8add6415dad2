"""Calibrations in the warehouse: from files, from votes, and from both."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from printed_commands import in_short
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from flows.cli.main import main
from flows.cli.printing.calibration_tables import show_table
from flows.publishing.served_files import reports_of
from flows.results.calibration import calibrate_labels
from flows.studies.calibration import Calibration
from schemas.results import Estimates
from tasks.kit.defaults import CalibrationThresholds
from warehouse.store import Warehouse

Labels = dict[str, dict[str, Any]]


def tell(labels: str, start: int = 0) -> dict[str, Any]:
    return {f"i{number:02}": label for number, label in enumerate(labels, start)}


PEOPLE: Labels = {
    "Ann": tell("abcabcabcb" * 6),
    "Bob": tell("abcabcabaa" * 6),
    "Cid": tell("abcabcacca" * 6),
}
JUDGES: Labels = {"good": tell("abcabcabca" * 6), "poor": tell("cccabcabca" * 6)}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def make(name: str, labels: Any) -> str:
        file = tmp_path / f"{name}.json"
        file.write_text(labels if isinstance(labels, str) else json.dumps(labels))
        return str(file)

    return make


@pytest.fixture
def place(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb")


@pytest.fixture(scope="module")
def measured() -> dict[str, bytes]:
    """Keep the warehouse in which votes were measured: to copy it is quicker."""
    return {}


@pytest.fixture
def votes(
    measured: dict[str, bytes],
    copy_warehouse: Callable[[Path, bytes], None],
    call: Callable[..., Result],
    place: Warehouse,
    tmp_path: Path,
) -> Path:
    """Return a file of votes of people and judges, which were measured and saved."""
    file = vote_file(tmp_path, "votes", people=True)
    if "votes" not in measured:
        assert call("measure", str(file)).exit_code == 0
        measured["votes"] = place.path.read_bytes()
    else:
        copy_warehouse(place.path, measured["votes"])
    return file


@pytest.fixture
def call(place: Warehouse) -> Callable[..., Result]:
    def run(*words: str) -> Result:
        return CliRunner().invoke(main, [*words, "--warehouse", str(place.path)])

    return run


def vote_file(folder: Path, name: str, *, people: bool) -> Path:
    """Write votes: two samples per question, people see one order of each."""
    draw = random.Random(2)
    rows = []
    skills = {"Ann": 0.8, "Bob": 0.8, "Cid": 0.75, "m/good": 0.9, "m/poor": 0.4}
    for sample in range(60):
        truth = draw.choice(["anchor", "target", "target", "tie"])
        for who, skill in skills.items():
            said = truth if draw.random() < skill else draw.choice(["anchor", "tie", "target"])
            human = who[0].isupper()
            for side in ("anchor", "target")[: 1 if human else 2]:
                choice = "tie" if said == "tie" else "first" if said == side else "second"
                rows.append(
                    {
                        "judge": who,
                        "arm": "control",
                        "sample": f"s{sample}",
                        "repeat": 0,
                        "cluster": f"q{sample // 2}",
                        "shown_first": side,
                        "choice": choice,
                        "human": human,
                        "simulated": None if human else False,
                    }
                )
    file = folder / f"{name}.jsonl"
    file.write_text("\n".join(json.dumps(r) for r in rows if people or not r["human"]))
    return file


@pytest.mark.charts
def test_files_are_kept_with_marts_and_report(
    call: Callable[..., Result], write: Callable[..., str], place: Warehouse, tmp_path: Path
) -> None:
    files = ("--humans", write("people", PEOPLE), "--judges", write("judges", JUDGES))
    done = call("calibrate", *files, "--pictures", str(tmp_path / "pictures"))
    assert done.exit_code == 0, done.output
    assert "1 of 2 judges may replace people (accuracy, additive epsilon .10)." in done.stderr
    assert "saved under the name 'people' in " in done.stderr
    tests = place.query(
        "select judge, epsilon, winning_rate, passed, advantage_probability, n, test "
        "from mart.alt_test where study = 'people' and asked order by judge"
    )
    assert tests.rows() == [
        ("good", 0.1, 1, True, 1, 60, "auto"),
        ("poor", 0.1, 0, False, pytest.approx(0.8), 60, "auto"),
    ]
    margins = place.query("select distinct epsilon from mart.alt_test order by 1")
    assert margins["epsilon"].to_list() == [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
    assert place.query("select count(*) as n from mart.advantage_probability")["n"].item() == 6
    pairs = place.query("select judge, other from mart.agreement where agreement is not null")
    assert pairs.height == 2 * 3 + 3 + 1
    labels = place.query("select human, count(*) as n from annotations group by 1 order by 1")
    assert labels.rows() == [(False, 120), (True, 180)]
    run = place.query("select flow, study, state, code_version from runs").to_dicts()[0]
    assert (run["flow"], run["study"], run["state"]) == ("calibrate", "people", "completed")
    page = tmp_path / "w-reports" / "people.html"
    assert "<strong>may replace people</strong>" in page.read_text()
    names = {file.name for file in (tmp_path / "pictures").iterdir()}
    assert {"winning_rates.svg", "winning_rates.png", "kappa_matrix.svg"} <= names

    before = page.read_bytes()
    page.unlink()
    written = call("report", "people", "--pictures", str(tmp_path / "again"))
    assert (written.exit_code, written.stdout) == (0, f"{page}\n")
    assert f"{len(names)} pictures in " in written.stderr
    assert page.read_bytes() == before
    assert {file.name for file in (tmp_path / "again").iterdir()} == names


def test_another_files_results_are_not_replaced(
    call: Callable[..., Result],
    write: Callable[..., str],
    place: Warehouse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judges = write("judges", JUDGES)
    write("people", PEOPLE)
    other = tmp_path / "other"
    other.mkdir()
    (other / "people.json").write_text(json.dumps({**PEOPLE, "Cid": tell("cbabcacbac" * 6)}))
    # Relative paths: the same text is another file in another folder.
    monkeypatch.chdir(tmp_path)
    first = ("calibrate", "--humans", "people.json", "--judges", judges)
    assert call(*first).exit_code == 0
    kept = place.query("from alt_tests").rows()
    monkeypatch.chdir(other)
    refused = call(*first)
    assert refused.exit_code == 2
    assert f"already has a calibration named 'people' from people's labels in {tmp_path}" in (
        refused.stderr.replace("\n", " ")
    )
    assert "Choose another name with --name" in refused.stderr
    assert place.query("from alt_tests").rows() == kept
    # What is wrong with the labels comes first.
    alone = call("calibrate", "--humans", "people.json")
    assert (alone.exit_code, "labels of judges are missing" in alone.stderr) == (2, True)
    # Nothing stands in the way of the same files, of looking only, or of who gives a name.
    assert call(*first, "--no-save").exit_code == 0
    assert call(*first, "--name", "others").exit_code == 0
    assert call(*first, "--name", "people").exit_code == 0
    assert call(*first).exit_code == 0
    assert place.query("select distinct study from alt_tests order by 1")["study"].to_list() == [
        "others",
        "people",
    ]


def test_a_report_has_no_column_that_is_empty_in_every_row(
    call: Callable[..., Result],
    write: Callable[..., str],
    votes: Path,
    place: Warehouse,
) -> None:
    def first_heads(name: str) -> list[list[str]]:
        page = (reports_of(place.path) / f"{name}.html").read_text(encoding="utf-8")
        heads = re.findall(r"<thead>(.*?)</thead>", page, re.DOTALL)
        return [re.findall(r"<th[^>]*>(.*?)</th>", head) for head in heads[:2]]

    # Verdicts on pairs have no bias, and these votes no texts.
    assert call("calibrate", votes.stem).exit_code == 0
    assert first_heads(f"{votes.stem}-people") == [
        ["Judge", "Items", "agreement", "kappa"],
        ["Measure", "Estimate", "95\N{NO-BREAK SPACE}%", "Compare with"],
    ]
    passed = {who: tell("".join(said)) for who, said in (("Ann", "10" * 20), ("Bob", "10" * 20))}
    judges = {who: tell("1001" * 10) for who in ("mini", "large")}
    files = ("--humans", write("crowd", passed), "--judges", write("panel", judges))
    assert call("calibrate", *files, "--pass", "1").exit_code == 0
    assert first_heads("crowd")[0] == [
        *("Judge", "Items", "agreement", "kappa", "TPR", "TNR", "bias", "Finding on the bias")
    ]


def test_unreadable_replies_are_told_apart_from_those_that_are_missing(
    call: Callable[..., Result], tmp_path: Path
) -> None:
    sides = {"anchor": "first", "target": "second"}
    said = [
        *[("first", "second")] * 5,  # the anchor in both orders, as Ann says
        *[("invalid", "invalid")] * 3,
        ("first", "invalid"),
        ("abstain", "second"),
        (),
        ("first",),
    ]
    rows = [
        {"judge": "Ann", "human": True, "sample": f"s{at:02}", "shown_first": side, "choice": own}
        for at in range(12)
        for side, own in sides.items()
    ] + [
        {"judge": judge, "sample": f"s{at:02}", "shown_first": side, "choice": choice}
        for judge in ("mumbling", "mute")
        for at, choices in enumerate(said)
        for side, choice in zip(sides, choices, strict=False)
    ]
    for row in rows:
        row |= {"arm": "control", "repeat": 0, "cluster": row["sample"]}
        if row["judge"] == "mute":
            row["choice"] = "invalid"
    # The judge was asked in both orders, and one reply never came.
    rows.append({**rows[-1], "judge": "mumbling", "shown_first": "target", "choice": None})
    file = tmp_path / "unread.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    measured = call("measure", str(file))
    done = call("calibrate", "unread", "--no-save")
    assert done.exit_code == 0, done.output
    for each in (measured, done):
        shown = " ".join(each.stdout.split())
        assert (
            "mumbling against people: 5 items compared; left out: 2 without a reply of the judge "
            "and 5 with an invalid label of the judge invalid labels of the judge: s05 (no "
            "verdict), s06 (no verdict), s07 (no verdict) and 2 more. "
        ) in shown
        assert (
            "mute against people: 0 items compared; left out: 1 without a reply of the judge and "
            "11 with an invalid label of the judge"
        ) in shown


def test_saved_labels_can_be_calibrated_again(
    call: Callable[..., Result], write: Callable[..., str]
) -> None:
    files = ("--humans", write("people", PEOPLE), "--judges", write("judges", JUDGES))
    first = call("calibrate", *files, "--format", "json", "--epsilon", "0.2")
    again = call("calibrate", "people", "--format", "json", "--epsilon", "0.2", "--no-save")
    # Votes bring clusters, here of one item each, which sum in another order.
    assert _rounded(again) == _rounded(first)


def test_every_proportion_has_the_interval_that_is_asked_for(
    call: Callable[..., Result], write: Callable[..., str], place: Warehouse
) -> None:
    files = ("--humans", write("people", PEOPLE), "--judges", write("judges", JUDGES))
    done = call("calibrate", *files, "--interval", "clopper_pearson", "--format", "json")
    assert done.exit_code == 0, done.output
    good, _ = json.loads(done.stdout)
    # Clopper and Pearson (1934): k of k hits have the lower end .025^(1/k).
    lowest = 0.025 ** (1 / 60)
    assert good["advantage_probability"] == 1
    assert [row["low"] for row in good["annotators"]] == pytest.approx([lowest] * 3)
    assert good["low"] == pytest.approx(lowest)
    # The judge agrees with each person on 54 of 60, which CR2 weights make worth 59 items.
    ends = proportion_confint(0.9 * 59, 59, method="beta")
    for row in good["agreement"]["people"]:
        found = row["agreement"]
        assert (found["low"], found["high"]) == pytest.approx(ends)
    methods = place.query(
        "select method from advantages where low is not null union select method from "
        "human_agreements where statistic like '%agreement' and low is not null union "
        "select method from estimates where statistic = 'agreement'"
    )["method"]
    assert methods.to_list() == ["cluster-adjusted Clopper-Pearson"]
    report = (place.path.parent / "w-reports" / "people.html").read_text()
    assert "cluster-adjusted Clopper-Pearson, at the effective size" in report


def _rounded(result: Result) -> Any:
    return json.loads(result.stdout, parse_float=lambda text: round(float(text), 12))


@pytest.mark.usefixtures("votes")
def test_votes_of_people_and_judges(
    call: Callable[..., Result], place: Warehouse, tmp_path: Path
) -> None:
    kept = place.read(Estimates)
    done = call("calibrate", "votes", "--epsilon", "0.2", "--format", "json")
    assert done.exit_code == 0, done.output
    good, poor = json.loads(done.stdout)
    assert (good["judge"], poor["judge"]) == ("m/good", "m/poor")
    assert good["advantage_probability"] > poor["advantage_probability"]
    assert [row["annotator"] for row in good["annotators"]] == ["Ann", "Bob", "Cid"]
    assert good["instances"] == 60
    assert {row["n"] for row in good["annotators"]} == {60}
    # nothing of the study is touched: the calibration has a name of its own
    names = place.query("select distinct study from annotations order by 1")["study"]
    assert names.to_list() == ["votes", "votes-people"]
    study = place.query("select * from estimates where study = 'votes'")
    assert study.height == kept.height
    # samples of a question are no independent items
    clusters = place.query(
        "select distinct clusters from estimates where study = 'votes-people' "
        "and statistic = 'noise_ceiling'"
    )
    assert clusters["clusters"].item() == 30
    assert call("report", "votes").exit_code == 0
    assert "How biased are the judges?" in (tmp_path / "w-reports" / "votes.html").read_text()
    assert (
        "may these judges replace people?"
        in (tmp_path / "w-reports" / "votes-people.html").read_text()
    )


@pytest.mark.usefixtures("votes")
def test_people_from_a_file_and_judges_from_votes(
    call: Callable[..., Result], write: Callable[..., str], tmp_path: Path
) -> None:
    assert call("measure", str(vote_file(tmp_path, "alone", people=False))).exit_code == 0
    crowd = {
        who: {f"s{i}": ("anchor", "tie", "target")[(i + at) % 3] for i in range(60)}
        for at, who in enumerate(("Ann", "Bob", "Cid"))
    }
    done = call("calibrate", "alone", "--humans", write("crowd", crowd), "--format", "json")
    assert done.exit_code == 0, done.output
    assert "saved under the name 'crowd' in " in done.stderr
    good, _ = json.loads(done.stdout)
    assert (good["judge"], good["instances"], good["dropped"]) == ("m/good", 60, 0)
    own = {"mine": {f"s{i}": "tie" for i in range(60)}}
    done = call("calibrate", "votes", "--judges", write("own", own), "--format", "json")
    assert "saved under the name 'votes-own-people' in " in done.stderr
    assert [row["judge"] for row in json.loads(done.stdout)] == ["mine"]


@pytest.mark.parametrize("option", ["--humans", "--judges"])
def test_a_file_may_hold_items_that_the_study_lacks(
    call: Callable[..., Result], write: Callable[..., str], votes: Path, option: str
) -> None:
    """An item that no vote is on is a cluster of its own, and counts only if others share it."""
    names = ("Ann", "Bob", "Cid") if option == "--humans" else ("mine",)
    labels = {
        who: {f"s{i}": ("anchor", "tie", "target")[(i + at) % 3] for i in range(61)}
        for at, who in enumerate(names)
    }
    done = call("calibrate", votes.stem, option, write("own", labels), "--format", "json")
    assert done.exit_code == 0, done.output
    assert {(row["instances"], row["dropped"]) for row in json.loads(done.stdout)} == {(60, 1)}
    far = {who: {f"x{i}": "tie" for i in range(40)} for who in names}
    done = call("calibrate", "votes", option, write("far", far))
    assert "no item has labels of a judge and of a person" in done.stderr
    assert "'x0'" in done.stderr


@pytest.mark.parametrize("metric", ["accuracy", "jaccard", "hamming", "macro_jaccard"])
@pytest.mark.parametrize("lists", [False, True])
def test_labels_that_nobody_else_gives_are_doubted(
    call: Callable[..., Result], write: Callable[..., str], metric: str, lists: bool
) -> None:
    def reported(labels: Labels, form: Callable[[str], str]) -> Labels:
        return {
            who: {
                item: [form(each), form("z")] if lists else form(each) for item, each in own.items()
            }
            for who, own in labels.items()
        }

    people = write("people", reported(PEOPLE, str))
    doubt = "the judge uses no label that people use"
    for form, doubted in ((str.upper, len(JUDGES)), (str, 0)):
        judges = write("judges", reported(JUDGES, form))
        files = ("--humans", people, "--judges", judges)
        done = call("calibrate", *files, "--metric", metric, "--no-save")
        assert done.output.count(doubt) == doubted, done.output


def test_nobody_in_it(call: Callable[..., Result], tmp_path: Path) -> None:
    assert call("measure", str(vote_file(tmp_path, "votes", people=False))).exit_code == 0
    done = call("calibrate", "votes")
    assert done.exit_code == 2
    assert "study 'votes' has votes of models only" in done.stderr
    assert "`voirdire booth votes`" in in_short(done.stderr)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            [],
            "are missing. Give --judges FILE --humans FILE, a FILE that has the labels of both",
        ),
        (
            ["--humans", "people"],
            "labels of judges are missing. Give --judges FILE, a FILE",
        ),
        (["nothing"], "there is no warehouse at"),
        (["--humans", "people", "--judges", "judges", "--name", "a/b"], "or leave --name out."),
    ],
)
def test_errors_say_what_to_do(
    call: Callable[..., Result], write: Callable[..., str], words: list[str], says: str
) -> None:
    files = {"people": write("people", PEOPLE), "judges": write("judges", JUDGES)}
    done = call("calibrate", *(files.get(word, word) for word in words))
    assert done.exit_code == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_audits_name_is_taken(call: Callable[..., Result], votes: Path) -> None:
    done = call("calibrate", "votes", "--name", "votes")
    assert done.exit_code == 2
    assert "already has results of a study named 'votes'" in done.stderr
    assert call("calibrate", "votes", "--name", "other").exit_code == 0
    assert call("calibrate", "votes", "--name", "other", "--epsilon", ".2").exit_code == 0
    other = votes.rename(votes.with_stem("other"))
    assert "already has another study named 'other'" in call("measure", str(other)).stderr


@pytest.mark.usefixtures("votes")
def test_an_unknown_study_is_named_with_those_there_are(call: Callable[..., Result]) -> None:
    done = call("calibrate", "voted")
    assert "no votes of study 'voted'" in done.stderr
    assert "Known: votes." in done.stderr


HOSTILE: dict[str, tuple[Labels, Labels, str]] = {
    "no overlap": (
        {**PEOPLE, "Zoe": tell("ab" * 20, 70)},
        JUDGES,
        "Not tested: Zoe (no instance has labels of the judge and of another person).",
    ),
    "all labels equal": (
        {who: tell("a" * 60) for who in PEOPLE},
        {"ada": tell("a" * 60)},
        "ada: all labels of people are equal",
    ),
    "mixed types": (
        {who: {**own, "i00": 3, "i01": ["a"], "i02": True} for who, own in PEOPLE.items()},
        JUDGES,
        "good",
    ),
    "a judge that labels nothing": (
        PEOPLE,
        {"mute": {}, "void": {"i00": None}, **JUDGES},
        "mute: the judge gave no valid label.",
    ),
    "a judge of other items": (
        PEOPLE,
        {"far": tell("abc" * 20, 100), **JUDGES},
        "far: no instance has labels of the judge and of two people.",
    ),
    "html and formulas": (
        {f"=1+1{who}": {i: f"<b>={x}" for i, x in own.items()} for who, own in PEOPLE.items()},
        {"<script>": {i: f"<b>={x}" for i, x in JUDGES["good"].items()}},
        "<script>",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_labels_are_calibrated_and_kept(
    call: Callable[..., Result],
    write: Callable[..., str],
    place: Warehouse,
    tmp_path: Path,
    case: str,
) -> None:
    humans, judges, says = HOSTILE[case]
    files = ("--humans", write("people", humans), "--judges", write("judges", judges))
    done = call("calibrate", *files)
    assert done.exit_code == 0, done.output
    assert says in done.stdout
    reported = place.query("select winning_rate, reason from mart.alt_test where asked")
    assert all(row["winning_rate"] is not None or row["reason"] for row in reported.to_dicts())
    page = (tmp_path / "w-reports" / "people.html").read_text()
    ours = page.count("</script>") - page.count('<script type="application/json"')
    assert page.count("<script>") == ours <= 2


REFUSED: dict[str, tuple[Any, list[str], str]] = {
    "epsilon of one": (PEOPLE, ["--epsilon", "1"], "must be at least 0 and below 1"),
    "two labels": ('{"Ann": {"1": "a", "1": "b"}}', [], "'Ann' has the item '1' more than once"),
    "one name for two": ({**PEOPLE, "good": {}}, [], "the name of a person and of a judge"),
    "no name": ({"": {"i00": "a"}}, [], "annotator '' or one of their items has an empty name"),
    "no name of an item": (
        {"Ann": {"": "a"}},
        [],
        "annotator 'Ann' or one of their items has an empty name",
    ),
}


NOT_COMPARED: dict[str, tuple[Labels, Labels, list[str], str]] = {
    "one annotator": (
        {"Ann": tell("abc" * 20, 100)},
        JUDGES,
        [],
        (
            "no item has labels of a judge and of a person. Items are called, for example, 'i100' "
            "in the labels of people and 'i00' in those of judges: give them the same names."
        ),
    ),
    "no overlap": (
        PEOPLE,
        {"far": tell("abc" * 20, 100)},
        [],
        (
            "no item has labels of a judge and of a person. Items are called, for example, 'i00' "
            "in the labels of people and 'i100' in those of judges: give them the same names."
        ),
    ),
    "numbers of a judge's text": (
        {who: tell("123" * 20) for who in PEOPLE},
        JUDGES,
        ["--metric", "neg_rmse"],
        (
            "metric neg_rmse needs numbers, but no label of a judge is readable as such: 0 labels "
            "of people and 120 of judges are not."
        ),
    ),
    "mute judges": (
        PEOPLE,
        {"mute": {}, "void": {"i00": None}},
        [],
        "no label of a judge is readable",
    ),
    "no label of a judge": (
        PEOPLE,
        {"mute": {}},
        [],
        "there are no labels of a judge. Name a file that has some with --judges.",
    ),
    "nothing at all": (
        {"Ann": {}, "Bob": {"i00": None}},
        {"ada": {"i00": ""}},
        [],
        "the labels of people are all empty. Name a file that has some with --humans.",
    ),
}
UNTESTED: dict[str, tuple[Labels, Labels, list[str], str]] = {
    "an item is one person's": (
        {"Ann": tell("ab" * 20), "Bob": tell("ab" * 20, 40)},
        {"ada": tell("ab" * 40)},
        [],
        "no item has labels of a judge and of two people (80 items have labels",
    ),
    "numbers of text": (
        PEOPLE,
        JUDGES,
        ["--metric", "neg_rmse"],
        (
            "metric neg_rmse needs numbers, but no label of people is readable as such: 180 labels "
            "of people and 120 of judges are not. Choose another --metric (see `voirdire list "
        ),
    ),
    "few": (
        {who: tell("ab" * 7) for who in PEOPLE},
        {"ada": tell("ab" * 20)},
        [],
        (
            "no annotator has 30 instances with labels of a judge and of another person (the "
            "maximum is 14). Let people label more items, or lower --min-instances."
        ),
    ),
}


@pytest.mark.parametrize("case", NOT_COMPARED)
def test_labels_that_cannot_be_compared_are_refused(
    call: Callable[..., Result],
    write: Callable[..., str],
    place: Warehouse,
    tmp_path: Path,
    case: str,
) -> None:
    humans, judges, options, says = NOT_COMPARED[case]
    files = ("--humans", write("people", humans), "--judges", write("judges", judges))
    done = call("calibrate", *files, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("voirdire: judges and people cannot be compared: ")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not place.path.is_file()
    assert not (tmp_path / "w-reports").exists()


@pytest.mark.parametrize("case", UNTESTED)
def test_what_can_be_computed_without_the_test_is_shown(
    call: Callable[..., Result], write: Callable[..., str], place: Warehouse, case: str
) -> None:
    humans, judges, options, says = UNTESTED[case]
    files = ("--humans", write("people", humans), "--judges", write("judges", judges))
    done = call("calibrate", *files, *options, "--name", "own")
    assert done.exit_code == 0, done.output
    assert f"The alternative annotator test was not run: {says}" in " ".join(done.stdout.split())
    assert "kappa" in done.stdout
    saved = place.query("select distinct judge from mart.human_agreement where study = 'own'")
    assert {*saved["judge"]} >= {*judges}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_saves_nothing(
    call: Callable[..., Result], write: Callable[..., str], place: Warehouse, case: str
) -> None:
    humans, options, says = REFUSED[case]
    files = ("--humans", write("people", humans), "--judges", write("judges", JUDGES))
    done = call("calibrate", *files, *options)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not place.path.is_file()


def test_a_gigabyte_is_refused_before_it_is_read(
    call: Callable[..., Result], write: Callable[..., str], tmp_path: Path
) -> None:
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(1 << 30)  # sparse: it takes no room
    done = call("calibrate", "--humans", str(large), "--judges", write("judges", JUDGES))
    large.unlink()
    assert done.exit_code == 2
    assert f"large.csv has {1 << 30} bytes; at most {512 << 20} are allowed" in done.stderr


def test_the_terminal_names_the_limit_of_the_calibration(
    write: Callable[..., str], place: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    calibration = Calibration(
        humans=write("people", PEOPLE),
        judges=write("judges", JUDGES),
        thresholds=CalibrationThresholds(least_winning_rate=0.6),
    )
    show_table(calibration, calibrate_labels(calibration, place))
    reported = " ".join(capsys.readouterr().out.split())
    assert "a judge passes at .60." in reported
    assert "winning rate of at least .60" in reported
