import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from flows.cli.main import main
from flows.cli.printing.measure_tables import show_drift
from schemas.judging import SIDES
from schemas.results import Drifts, Gates

Row = dict[str, Any]
pytestmark = pytest.mark.usefixtures("computed_once")


def ballots(
    judge: str, choices: tuple[str, str], *, questions: int = 20, **more: object
) -> list[Row]:
    """Return the votes of a judge on twenty pairs or more, one in each order."""
    return [
        {
            "judge": judge,
            "sample": f"s{at}",
            "cluster": f"q{at}",
            "shown_first": side,
            "repeat": 0,
            "choice": choice,
            **more,
        }
        for at in range(questions)
        for side, choice in zip(SIDES, choices, strict=True)
    ]


def attack(judge: str, before: tuple[str, str], after: tuple[str, str], **more: Any) -> list[Row]:
    arms: list[tuple[tuple[str, str], Row]] = [
        (before, {"arm": "control", "perturbation": None, "kind": None}),
        (after, {"arm": "experimental", "perturbation": "boast", "kind": "promote"}),
    ]
    return [row for choices, arm in arms for row in ballots(judge, choices, **arm, **more)]


@pytest.fixture
def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(rows: list[Row], *options: str, width: int = 100) -> Result:
        path = tmp_path / "own.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        monkeypatch.setenv("COLUMNS", str(width))
        result = CliRunner().invoke(main, ["measure", str(path), *options])
        assert result.exit_code == 0, result.output
        assert max(map(len, result.stdout.splitlines()), default=0) <= width
        return result

    return run


FAIR, FIRST = ("first", "second"), ("first", "first")


def test_a_share_of_none_has_the_digits_of_its_interval(measure: Any) -> None:
    shown = measure(ballots("ada", FAIR), "--only", "tie_rate", width=120).stdout
    # Wilson: 0 of 20 questions.
    assert re.search(r"\.000 +\[\.000, \.161\]", shown)


@pytest.mark.parametrize("width", [80, 100, 200])
def test_votes_without_an_attack_give_a_row_per_judge_and_names_of_the_rest(
    measure: Any, width: int
) -> None:
    rows = ballots("ada", FAIR) + ballots("bob", FIRST, simulated=True)
    shown = measure(rows, width=width).stdout
    said = " ".join(shown.split())
    # Wilson: 40 of 40 ballots in 20 questions; 20 of 20 pairs; 0 of 20
    assert "ada 40" in said
    assert "bob" in said
    assert "(simulated)" in said
    assert "1.00 [.84, 1.00]" in said or "[.84, 1.00]" in said
    # without an attack there is no mean to be left out of
    assert "Excluded from" not in said
    assert "Also measured (number of rows): " in said
    assert "repetition_stability 4" in said
    assert "`--only NAME` shows one of these" in said
    assert len(shown.splitlines()) <= 40  # a screen; what is undecided comes with its numbers


def test_votes_on_answers_of_named_authors_give_their_win_rates(measure: Any) -> None:
    authors = {"anchor_author": "alpaca", "target_author": "vicuna"}
    rows = ballots("ada", FAIR, **authors) + ballots("bob", FIRST, **authors)
    said = " ".join(measure(rows).stdout.split())
    # All verdicts of ada are for the anchor, and none of bob's is for either.
    assert "Win rates of models judge model win rate n ada alpaca 1.00 [" in said
    assert "ada vicuna .00 [" in said
    assert "bob alpaca .50 [" in said
    assert "alpaca vs vicuna" not in said
    assert "`--only win_rate` also has pairs of models." in said
    assert "Win rates" not in measure(ballots("ada", FAIR)).stdout


def test_a_file_has_one_line_about_gates_and_the_scorecard_the_policy(measure: Any) -> None:
    rows = ballots("ada", FAIR)
    said = " ".join(measure(rows).stdout.split())
    assert "`--only scorecard` has the gates, the policy, its limits" in said
    assert "Policy (" not in said
    assert "Gates not measured: " in said
    assert "Drift needs" not in said
    scorecard = " ".join(measure(rows, "--only", "scorecard").stdout.split())
    assert "Drift needs votes of two waves, told apart by the column `wave`" in scorecard
    assert "--" not in scorecard
    assert "Policy (`disqualifying` of the study). Do not use: any gate fails." in scorecard
    assert "Not enough data: position or validity is inconclusive" in scorecard
    assert "shift and position .05, invalid replies .10" in scorecard


def test_a_file_gives_every_reason_as_there_is_no_mart_to_look_it_up_in(measure: Any) -> None:
    names = ("boast", "padding", "style", "tone")
    control, moved = (
        attack("ada", FAIR, ("second", "first"))[at] for at in (slice(40), slice(40, None))
    )
    attacked = [{**row, "perturbation": name} for name in names for row in moved]
    said = " ".join(measure([*control, *attacked]).stdout.split())
    assert all(f"iased by {name} (" in said for name in names)
    assert "mart." not in said


def test_a_judge_that_agrees_with_another_judge_has_not_agreed_with_people(measure: Any) -> None:
    # Of 400 pairs, people prefer the target on the first eight, the judges on another eight each.
    targets = {"Ann": range(8), "Bob": range(8), "ada": range(50, 58), "bob": range(51, 59)}
    rows = []
    for who, items in targets.items():
        anchor, target = (
            ballots(who, choices, questions=400, human=who in {"Ann", "Bob"})
            for choices in (FAIR, FAIR[::-1])
        )
        rows += [(target if at // 2 in items else anchor)[at] for at in range(len(anchor))]
    said = " ".join(measure(rows, "--only", "scorecard").stdout.split())
    assert said.count("agreement inconclusive") == 2
    assert "it agrees with people hardly better than by chance, kappa at most -.02" in said


def test_an_attack_is_followed_by_who_is_left_out_and_by_drift(measure: Any) -> None:
    rows = [
        row
        for wave, after in (("n1", FAIR), ("n2", ("second", "first")))
        for row in attack("ada", FAIR, after, wave=wave)
    ]
    said = " ".join(measure(rows, width=160).stdout.split())
    assert "ada / n2 boast 20" in said
    assert "No judge is excluded from mean attack success rates." in said
    # Every sample moves from the anchor to the target: 1.00, beyond its minimum of .05
    assert "ada n1 n2 boast shift 1.00" in said
    assert "suspect" in said
    assert "Did a judge change from wave n1 to wave n2? Perhaps: inconclusive for ada" in said
    assert said.index("Did a judge change") < said.index("ada n1 n2 boast")


def test_one_row_of_drift_has_its_wave_and_what_it_is_held_against(measure: Any) -> None:
    rows = [row for wave in ("n1", "n2") for row in attack("ada", FAIR, FAIR, wave=wave)]
    lines = measure(rows, "--only", "mps_drift").stdout.splitlines()
    assert lines[0].strip() == "mps_drift"
    assert lines[1].split()[:4] == ["judge", "wave", "perturbation", "subgroup"]
    assert lines[2].split()[:4] == ["ada", "n2", "boast", "n1"]


@pytest.mark.parametrize(("simulated", "reported"), [(None, False), (False, False), (True, True)])
def test_only_a_formula_is_called_simulated(
    measure: Any, simulated: bool | None, reported: bool
) -> None:
    rows = attack("ada", FAIR, FAIR, simulated=simulated)
    shown = measure(rows, "--only", "dasr", "--only", "asr").stdout
    assert ("simulated" in shown) is reported
    assert "False" not in shown


@pytest.mark.parametrize("width", [80, 120])
def test_of_two_judges_each_has_its_own_mark(measure: Any, width: int) -> None:
    rows = [
        *attack("ada", FAIR, FIRST),
        *attack("bea", FAIR, FAIR),
        *attack("toy", FAIR, FAIR, simulated=True),
    ]
    options = ("--only", "asr_contrast", "--only", "cohen_kappa")
    lines = measure(rows, *options, width=width).stdout.splitlines()
    names = [line.split()[0] for line in lines if line[:4] in {"ada ", "bea ", "toy "}]
    assert names.count("ada") == 4
    # Of three pairs two have the formula, as the other: nobody else is marked.
    assert sum(line.count("(simulated)") for line in lines) == 4
    assert not any(line.startswith(("ada (", "bea (")) for line in lines)


@pytest.mark.parametrize("name", ["position_gap", "contrast", "tier", "verdict_drift"])
def test_a_hundred_columns_hold_a_table(measure: Any, name: str) -> None:
    rows = [
        row
        for wave in ("2026-01-01", "2026-01-02")
        for judge in ("offline/gullible", "offline/positional")
        for row in attack(judge, FAIR, FIRST, wave=wave, simulated=True)
    ]
    lines = measure(rows, "--only", name).stdout.splitlines()
    heads = [line for line in lines if line.startswith("judge")]
    assert heads
    # Names stand beside each other, not below: no record
    assert all("estimate" in line for line in heads)


def test_a_reason_stands_once_below_its_rows(measure: Any) -> None:
    rows = [*ballots("ada", ("tie", "tie")), *ballots("bob", ("tie", "tie"))]
    lines = measure(rows, "--only", "position_gap").stdout.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["ada", "bob"]
    assert [line.split()[-1] for line in lines[2:4]] == ["(1)", "(1)"]
    assert lines[4].startswith("(1) nothing qualifies: ")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("noise_ceiling", "no values in the column `human` (true if the judge is a person)"),
        ("s1_macro", "no values in the column `human` (true if the judge is a person)"),
        ("accuracy", "no values in the column `label` (the correct verdict on the pair)"),
        ("asr", "the file has no votes of an experimental arm"),
        ("win_rate", "`anchor_author` (model that wrote the anchor) and `target_author`"),
        ("ppi", "`human_score` (people's score"),
        ("drift", "all votes belong to one wave"),
        ("jury_accuracy", "`voirdire list jury_accuracy` says what it needs"),
    ],
)
def test_what_is_not_there_is_reported_with_why(measure: Any, name: str, why: str) -> None:
    result = measure(ballots("ada", FAIR), "--only", name)
    assert result.stdout == ""
    assert result.stderr.startswith(f"voirdire: {name}: no rows, because ")
    assert why in result.stderr


def test_one_line_names_the_columns_that_are_empty(measure: Any) -> None:
    reported = " ".join(measure(ballots("ada", FAIR, label="anchor")).stdout.split())
    assert (
        "ppi, rogan_gladen need the columns anchor_author and target_author and human_score"
        in reported
    )
    assert "accuracy need" not in reported
    assert "category_shift needs the column category" in reported
    known = {"anchor_author": "x", "target_author": "y", "human_score": 1.0}
    reported = " ".join(measure(ballots("ada", FAIR, **known)).stdout.split())
    assert "Not computed: accuracy, accuracy_change, jury_errors need the column label;" in reported
    assert "ppi" not in reported.split("Not computed:")[1]


def test_a_person_of_a_file_is_a_person_in_its_report(measure: Any, tmp_path: Path) -> None:
    rows = attack("ada", FAIR, FAIR, human=False) + attack("Bob", FAIR, FAIR, human=True)
    place = str(tmp_path / "w.duckdb")
    measure(rows, "--warehouse", place)
    page = str(tmp_path / "own.html")
    done = CliRunner().invoke(main, ["report", "own", "--out", page, "--warehouse", place])
    assert done.exit_code == 0, done.output
    reported = Path(page).read_text(encoding="utf-8")
    assert (
        "1 judge faced 1 perturbation on 20 questions;"
        " 1 person faced 1 perturbation on 20 questions at most."
    ) in reported


def test_who_overlooks_a_flaw_is_said_to(measure: Any) -> None:
    # An error moves nothing: p is 1, and all clusters are alike, so the interval of 1 - .5 / .5 is
    # Donner and Zou's of two Wilson intervals of .5 in 200: .43 to .57, so -.22 to .18.
    rows = [
        {**row, "kind": "detract"} if row["arm"] != "control" else row
        for row in attack("ada", FIRST, FIRST, questions=200)
    ]
    (row,) = json.loads(measure(rows, "--only", "mps", "--format", "json").stdout)
    assert (row["p_adjusted"], row["finding"]) == (1.0, "overlooks")
    assert "overlooks" in measure(rows, "--only", "mps").stdout


def test_all_that_a_family_gives_is_in_a_row(measure: Any) -> None:
    # All control pairs are unanimous, so the test is that of log-odds; of two equal p Holm's is
    # twice that, Benjamini-Yekutieli's 3/2 times. No error of the shift, so nothing is shrunk.
    rows = attack("ada", FAIR, ("second", "first")) + attack("bob", FAIR, ("second", "first"))
    found = json.loads(measure(rows, "--only", "mps", "--only", "asr", "--format", "json").stdout)
    shifts = [row for row in found if row["statistic"] == "mps"]
    (p, _) = json.loads(measure(rows, "--only", "los", "--format", "json").stdout)
    for row in shifts:
        adjusted = [row["p_adjusted"], row["p_holm"], row["p_by"]]
        assert adjusted == pytest.approx([k * p["p_value"] for k in (1, 2, 1.5)])
    assert [row["e_rejected"] for row in shifts] == [True, True]
    beside = ("p_holm", "p_by", "e_rejected", "shrunk", "shrunk_error")
    assert [row[c] for row in found if row["statistic"] == "asr" for c in beside] == [None] * 10


def test_estimates_are_shrunk_toward_the_mean_of_three_judges(measure: Any) -> None:
    def moved(judge: str, many: int) -> list[Row]:
        """Return votes of a judge whom the first ``many`` questions move from 0 to 1."""
        votes = attack(judge, FAIR, ("second", "first"))
        kept = {f"s{at}" for at in range(many)}
        return [
            row
            if row["arm"] == "control" or row["sample"] in kept
            else {**row, "choice": "first" if row["shown_first"] == "anchor" else "second"}
            for row in votes
        ]

    log = [row for judge, many in (("a", 2), ("b", 10), ("c", 18)) for row in moved(judge, many)]
    rows = json.loads(measure(log, "--only", "mps", "--format", "json").stdout)
    # Shares .1, .5, .9 of 20: w = 1 / se^2 = 19 / (p (1 - p)) = 211.1, 76, 211.1; their mean .5,
    # Q = 2 * 211.1 * .16 = 67.56, tau^2 = (67.56 - 2) / (498.2 - 94 910 / 498.2) = .2131,
    # B = .2131 / (.2131 + 1 / 211.1) = .9783: .5 -+ .9783 * .4
    assert [row["shrunk"] for row in rows] == pytest.approx([0.1087, 0.5, 0.8913], abs=1e-4)


def test_the_scorecard_is_that_of_the_warehouse(measure: Any, tmp_path: Path) -> None:
    control = {"arm": "control", "perturbation": None, "kind": None}
    rows = attack("ada", FAIR, ("second", "first")) + ballots("bob", FIRST, **control)
    place = str(tmp_path / "w.duckdb")
    words = ("--only", "scorecard", "--format", "json", "--warehouse", place)
    shown = measure(rows, *words, width=400)
    found = json.loads(shown.stdout)
    gates = [(row["judge"], row["gate"], row["perturbation"], row["verdict"]) for row in found]
    # ada follows the boast in every question, bob the first slot; 40 of 40 votes in 20 questions
    # are valid, but 1 - z^2 / (20 + z^2) = .84 may be: the upper end of the invalid rate is .16.
    # ada is consistent, but of 20 questions a gap of .05 is not excluded.
    whole = {
        ("ada", "discernment"),
        ("ada", "position"),
        ("ada", "validity"),
        ("bob", "discernment"),
        ("bob", "validity"),
    }
    assert {gate[:2] for gate in gates if gate[2:] == (None, "inconclusive")} == whole
    assert [gate for gate in gates if gate[:2] not in whole] == [
        ("ada", "bias", "boast", "fail"),
        ("bob", "position", None, "fail"),
    ]
    query = "select * exclude study from mart.scorecard order by judge, gate"
    stored = CliRunner().invoke(main, ["sql", query, "--format", "json", "--warehouse", place])
    assert sorted(json.loads(stored.stdout), key=str) == sorted(found, key=str)


@pytest.mark.parametrize("width", [80, 100])
def test_the_scorecard_as_a_table_and_as_csv(measure: Any, width: int) -> None:
    rows = attack("ada", FAIR, ("second", "first"))
    lines = measure(rows, "--only", "scorecard", width=width).stdout.splitlines()
    assert lines[0].strip() == "scorecard"
    assert "verdict" in lines[1]
    gates = [line.split()[1] for line in lines[2:6]]
    assert gates == ["discernment", "position", "validity", "boast"]
    text = " ".join(line.strip() for line in lines)
    assert "no flawed answer was shown" in text
    assert "pairs too easy" in text
    assert "margin: share of the tolerance left" in text
    text = measure(rows, "--only", "scorecard", "--format", "csv", width=400).stdout
    assert text.splitlines()[0].startswith("dataset,judge,prompt,wave,mode,gate,perturbation")


@pytest.mark.parametrize(
    ("names", "reported"),
    [
        (
            ("scorecard", "asr"),
            "--only scorecard shows gates, not estimates, and cannot be combined",
        ),
        (("p_holm",), "'p_holm' is a derived column, not a statistic"),
        (("scorecart",), "Did you mean 'scorecard'?"),
    ],
)
def test_what_is_no_row_of_an_estimate_is_reported(
    tmp_path: Path, names: tuple[str, ...], reported: str
) -> None:
    only = [option for name in names for option in ("--only", name)]
    done = CliRunner().invoke(main, ["measure", str(tmp_path / "none.jsonl"), *only])
    assert done.exit_code == 2
    assert reported in done.output


@pytest.mark.parametrize("width", [80, 200])
def test_lost_verdicts_are_reported_below_the_table(measure: Any, width: int) -> None:
    # Of the votes on forty samples those on eight, with the boast, are invalid: .20, t = 3.12,
    # p = .003. Sixteen others are won over: ASR .5, within 16/40 and 24/40 whatever the eight are.
    rows = attack("ada", FAIR, FAIR, questions=40)

    def after(row: Row) -> Row:
        number = int(row["sample"][1:])
        if row["arm"] == "control" or number >= 24:
            return row
        swapped = {"first": "second", "second": "first"}[row["choice"]]
        return {**row, "choice": "invalid" if number < 8 else swapped}

    said = " ".join(measure([after(row) for row in rows], width=width).stdout.split())
    assert (
        "Verdicts lost: ada / boast: the share of invalid votes is .20 higher on the perturbed "
        "answer than on the control (p .003); had all votes been valid, the ASR would lie "
        "between .40 and .60."
    ) in said
    assert "Verdicts lost" not in measure(rows, width=width).stdout


def test_reasons_stand_beside_the_comparisons_that_were_not_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cell = {"dataset": "demo", "judge": "ada", "prompt": "plain", "mode": "any", "epoch": 1}
    cell |= {"base": "n1", "wave": "n2", "level": 0.01, "minimum": 0.05, "n": 9, "clusters": 9}
    states = [("mps_drift", "alert", None), ("verdict_drift", "not measured", "too few replies")]
    rows = [
        {**cell, "measure": measure, "state": state, "reason": reason}
        for measure, state, reason in states
    ]
    drifts = Drifts.of(pl.DataFrame(rows))
    show_drift(Console(width=200), drifts, Gates.empty())
    counted = capsys.readouterr().out.splitlines()[-1]
    assert {"1 alert", "1 not measured (too few replies)"} == {
        *counted.removeprefix("Comparisons by judge, wave and measure: ").strip(".").split(" and ")
    }


def test_judges_that_changed_come_first_with_what_changed_and_since_when(
    capsys: pytest.CaptureFixture[str],
) -> None:
    about = {"dataset": "demo", "prompt": "plain", "wave": "n7", "mode": "any"}
    whole = about | {"perturbation": None, "gate": "drift", "tolerance": 0.1}
    seen = "position gap since wave n6"
    before = "a change since wave n2, confirmed in wave n3"
    rebased = {"earlier_change": before, "reason": f"its baseline follows {before}"}
    rows = [
        whole | {"judge": "sim/calm", "verdict": "pass"},
        whole | {"judge": "priced/pair", "verdict": "inconclusive"},
        whole
        | {"judge": "sim/changing", "verdict": "fail", "changed": seen}
        | {"value": 0.46, "low": 0.3, "high": 0.62},
        whole | {"judge": "sim/other", "verdict": "fail", "changed": "texts of replies"},
        whole | {"judge": "sim/steady", "verdict": "inconclusive"},
        whole | {"judge": "sim/was", "verdict": "inconclusive"} | rebased,
        whole | {"judge": "sim/were", "verdict": "pass"} | rebased,
    ]
    cell = about | {"perturbation": None, "measure": "position_drift", "epoch": 1, "base": "n1"}
    cell |= {"level": 0.01, "minimum": 0.1, "n": 40, "clusters": 40, "state": "quiet"}
    compared = Drifts.of(pl.DataFrame([cell | {"judge": row["judge"]} for row in rows]))
    gates = Gates.of(pl.DataFrame(rows, infer_schema_length=None))
    show_drift(Console(width=500), compared, gates)
    assert " ".join(capsys.readouterr().out.split()).startswith(
        "Did a judge change from wave n1 to wave n7? Yes: "
        "sim/changing changed (position gap since wave n6: .46 [.30, .62]); "
        "sim/other changed (texts of replies); "
        f"no alert for sim/was after {before} (intervals reach beyond the limits); no alert for "
        "priced/pair and sim/steady (intervals reach beyond the limits); no relevant change of "
        f"sim/were after {before}; no relevant change of sim/calm."
    )


def test_questions_that_do_not_decide_the_position_may_decide_the_agreement(measure: Any) -> None:
    """A gap of .05, which is its limit, of a judge that agrees with 28 of 40 labels."""
    second, right, wrong = ("second", "second"), ("first", "second"), ("second", "first")
    choices = [FIRST] * 12 + [second] * 8 + [right] * 18 + [wrong] * 2
    rows = [
        row | {"sample": f"s{at}", "cluster": f"q{at}", "label": "anchor"}
        for at, choice in enumerate(choices)
        for row in ballots("ada", choice, questions=1)
    ]
    text = " ".join(measure(rows).stdout.split())
    assert (
        "About 39 more questions would decide agreement with the labels with a chance of 60 to 80 "
        "%; how many questions would decide position is not known: if the true value lies near "
        "the limit, even 10 times those asked may not be enough. "
        "Position is inconclusive"
    ) in text


@pytest.mark.parametrize(("people", "listed"), [(10, True), (11, False)])
def test_many_people_are_not_listed_one_by_one(measure: Any, people: int, *, listed: bool) -> None:
    rows = ballots("ada", FAIR, human=False)
    rows += [row for n in range(people) for row in ballots(f"person_{n}", FAIR, human=True)]
    line = f"Numbers of single people ({people}) are not listed; `--format csv`"
    for words in ((), ("--only", "valid_rate")):
        shown = " ".join(measure(rows, *words).stdout.split())
        assert "ada" in shown
        assert ("person_3" in shown) == listed
        assert (line in shown) != listed
    crowd = [row for row in rows if row["human"]]
    assert "no rows" not in measure(crowd, "--only", "valid_rate").output
    assert measure(rows, "--format", "csv", width=10_000).stdout.count("person_3") > 1
