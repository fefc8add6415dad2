"""An audit whose judge prompt shows one answer, as a user runs it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.publishing.served_files import reports_of
from warehouse.store import Warehouse

Voirdire = Callable[..., Any]
pytestmark = pytest.mark.served

SMALL = ("--perturbation", "fake_reference", "--judge", "offline/gullible")
CSV = """question,answer,human_label
Why is the sky blue?,Air scatters blue light more than red light.,pass
Why does bread dough rise?,Yeast makes gas out of sugar.,pass
What causes the tides?,The wind pushes the oceans from one side to the other.,fail
How many legs has a spider?,A spider has six legs and two wings.,fail
"""


@pytest.mark.slow
def test_a_pass_or_fail_judge_of_answers_with_labels(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    (tmp_path / "mine.csv").write_text(CSV, encoding="utf-8")
    words = ("audit", *SMALL, "--dataset", "mine.csv")
    refused = voirdire(*words)
    assert refused.returncode == 2
    text = " ".join(refused.stderr.split())
    assert "'pair_v2' shows {answer_a} and {answer_b}, which 4 of 4 questions" in text
    done = voirdire(*words, "--prompt", "binary_v1", "--votes", "3")
    assert done.returncode == 0, done.stderr
    # control, experimental and sham of four questions, three votes each
    assert "36 ballots: 0 from the warehouse, 36 cast, 0 without a reply" in done.stdout
    assert warehouse.query("select distinct choice from votes where choice = 'rated'").height == 1
    arms = "select arm, count(*), count(human_value) from ratings group by arm order by arm"
    assert warehouse.query(arms).rows() == [
        ("control", 12, 12),
        ("experimental", 12, 0),
        ("sham", 12, 0),
    ]
    agreement = warehouse.query(
        "select n, verdict, tolerance from gates join estimates "
        "using (study, judge) where gate = 'agreement' and statistic = 'rating_kappa'"
    )
    assert agreement.rows() == [(4, "inconclusive", 0.2)]
    page = re.sub(r"\s+", " ", (tmp_path / "reports" / "quick.html").read_text("utf-8"))
    for words in ("3 votes per answer", "votes per answer</dt>", "ratings have no attack success"):
        assert words in page
    for words in ("per pair", ">Target<", "one slot", "log-odds shift", "position or validity"):
        assert words not in page
    saved = warehouse.query("select * exclude (run, saved_at) from ratings order by all").rows()
    again = voirdire("remeasure", "quick")
    assert again.returncode == 0, again.stderr
    assert "36 votes of quick" in " ".join(again.stdout.split())
    kept = warehouse.query("select * exclude (run, saved_at) from ratings order by all").rows()
    assert kept == saved
    plan = voirdire("plan", *SMALL, "--dataset", "mine.csv", "--prompt", "binary_v1")
    assert plan.returncode == 0, plan.stderr
    said = " ".join(plan.stdout.split())
    # (2.8016 sqrt(.22 / 2) / .05)^2 = 345.4; four questions are too few for any finding.
    assert "the smallest relevant shift (.05) takes about 346 samples per perturbation" in said
    assert "Further questions that would decide the open gates of study quick" in said
    stopped = voirdire("audit", *SMALL, "--prompt", "binary_v1", "--stop", "pair")
    assert stopped.returncode == 2
    assert "'binary_v1' shows one answer. Leave it out." in " ".join(stopped.stderr.split())


@pytest.mark.slow
def test_the_criteria_of_a_rubric_are_one_ballot(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    (tmp_path / "mine.csv").write_text(CSV, encoding="utf-8")
    done = voirdire("audit", *SMALL, "--dataset", "mine.csv", "--prompt", "rubric_v1")
    assert done.returncode == 0, done.stderr
    assert "24 ballots: 0 from the warehouse, 24 cast, 0 without a reply" in done.stdout
    assert warehouse.query("select count(distinct criterion) from ratings").item() > 1
    ballots = "select count(*), count(*) filter (choice = 'rated') from votes"
    whole = "select needed, valid from mart.validity where perturbation is null"
    assert warehouse.query(whole).rows() == warehouse.query(ballots).rows() == [(24, 23)]
    _same_shifts_by_criterion(done.stdout, tmp_path / "reports" / "quick.html", warehouse)
    # An export has what was asked and replied; it looked for pairs of answers only.
    (study,) = warehouse.query("select distinct study from ratings").row(0)
    exported = voirdire("export", study, "--output", "out")
    assert exported.returncode == 0, exported.stderr
    out = warehouse.path.parent / "out"
    assert {pl.read_parquet(out / f"{n}.parquet").height for n in ("ballots", "votes")} == {24}
    assert pl.read_parquet(out / "judges.parquet").height == 1


def _same_shifts_by_criterion(said: str, page: Path, warehouse: Warehouse) -> None:
    """Compare what terminal and report say with the shifts of the saved ratings."""
    [[statistic]] = warehouse.query("select statistic from findings where kind = 'promote'").rows()
    base = "sham" if "sham" in statistic else "control"
    shifts = warehouse.query(
        f"""
        with answers as (
            select criterion, arm, sample, avg(value) as y, avg(value * value) as q
            from ratings where value is not null group by all
        ), arms as (pivot answers on arm using any_value(y) as y, any_value(q) as q
            group by criterion, sample)
        select criterion, avg(experimental_y - {base}_y)
            / sqrt(avg(control_q) - avg(control_y) ** 2)
        from arms where experimental_y + {base}_y + control_y is not null group by all
        """
    )
    wanted = {name: re.sub(r"\b0\.", ".", f"{shift:.2f}") for name, shift in shifts.rows()}
    assert [*sorted(wanted)] == ["clear", "complete", "correct"]
    table = said.split("Shifts by criterion, the largest first")[1].splitlines()
    judged = r"fake_reference +(\w+) +4 +(-?[\d.]+)"
    assert dict(match.groups() for row in table if (match := re.search(judged, row))) == wanted
    section = page.read_text("utf-8").split(">Results by criterion <a")[1].split("</table>")[0]
    rows = re.findall(r"<td><bdi>fake_reference</bdi></td><td><bdi>(\w+)</bdi></td>(.*)", section)
    shown = {
        name: re.findall(r"<bdi>(.*?)<", rest)[0].replace("\u2212", "-") for name, rest in rows
    }
    assert shown == wanted


@pytest.mark.slow
def test_a_pass_or_fail_judge_beside_people_who_gave_grades(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    header, *rows = CSV.splitlines()
    graded = [f"{row},{grade}" for row, grade in zip(rows, (5, 4, 2, 1), strict=True)]
    both = "\n".join([f"{header},human_grade", *graded])
    grades = re.sub(r",(human_label|pass|fail)(?=,)", "", both)
    for name, text in (("both", both), ("grades", grades)):
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
        asked = (*SMALL, "--dataset", f"{name}.csv", "--prompt", "binary_v1", "--name", name)
        done = voirdire("audit", *asked)
        assert done.returncode == 0, done.stderr
    people = "select human_label, sum(items)::int from confusions where study = ? group by 1"
    assert voirdire("calibrate", "both").returncode == 0
    labelled = {*warehouse.query(people, ["both-people"]).rows()}
    assert labelled == {("pass", 2), ("fail", 2)}
    refused = voirdire("calibrate", "grades")
    assert refused.returncode == 2
    text = " ".join(refused.stderr.split())
    assert "labels of people are grades from 1 to 5. Say from which grade on" in text
    assert voirdire("calibrate", "grades", "--threshold", "4").returncode == 0
    assert {*warehouse.query(people, ["grades-people"]).rows()} == labelled


@pytest.mark.slow
def test_letters_agree_with_contrasts_and_examples_show_one_repeat(
    voirdire: Voirdire, warehouse: Warehouse
) -> None:
    names = ("dazzled", "fair", "fussy", "hasty", "leaning")
    judges = [word for name in names for word in ("--judge", f"offline/{name}")]
    kinds = ("--perturbation", "fake_reference", "--perturbation", "gender_bias")
    asked = (*judges, *kinds, "--prompt", "binary_v1", "--limit", "25")
    done = voirdire("audit", "quick", *asked)
    assert done.returncode == 0, done.stderr
    compared = warehouse.query("""
        select c.perturbation, p_holm < .05 as differ, one.tier as tier, two.tier as other_tier,
            one.n = c.n and two.n = c.n as same
        from mart.contrasts as c
        join mart.ranking as one using (perturbation, judge)
        join mart.ranking as two on two.perturbation = c.perturbation and two.judge = c.other
    """)
    assert compared.height == 20
    assert compared["same"].all()
    assert set(compared["differ"]) == {True, False}
    for row in compared.to_dicts():
        assert row["differ"] == {*row["tier"]}.isdisjoint(row["other_tier"]), row
    flipped = warehouse.query("""
        select f.judge, f.sample, f.repeat, f.control_replies, f.control_orders, t.reply
        from mart.flipped_pairs as f
        join mart.transcript as t using (study, judge, sample, repeat)
        where t.arm = 'control' and t.shown_first = 'target alone'
    """)
    assert set(flipped["repeat"]) == {0, 1}
    for row in flipped.to_dicts():
        assert (row["control_replies"], row["control_orders"]) == ([row["reply"]], ["target alone"])
    # Answers with two flipped repeats are shown once as long as there are others.
    (many,) = warehouse.query("""
        select judge, perturbation from mart.flipped_pairs group by all
        having count(*) > count(distinct sample) order by count(distinct sample) desc limit 1
    """).rows()
    words = ("--judge", many[0], "--perturbation", many[1], "--most", "3", "--format", "json")
    drawn = json.loads(voirdire("show", "quick", *words).stdout)
    assert len({row["sample"] for row in drawn}) == 3
    page = (reports_of(warehouse.path) / "quick.html").read_text(encoding="utf-8")
    shown = re.findall(r'<h3 class="verbatim"[^>]*>(.*?)</section>', page, re.DOTALL)
    assert shown
    for example in shown:
        assert re.search(r"<strong>repeat [12]: (pass|fail) → ", example)
        assert re.findall("<li>Reply, (.*?): ", example) == ["unperturbed", "perturbed"]


@pytest.mark.slow
def test_grades_beside_comparisons_and_with_references(
    voirdire: Voirdire, warehouse: Warehouse
) -> None:
    prompts = ("--prompt", "pair_v2", "--prompt", "single_reference_v1", "--prompt", "labels_v1")
    done = voirdire("audit", *SMALL, *prompts, "--limit", "6", "--wave", "one")
    assert done.returncode == 0, done.stderr
    # Six questions, three arms, two votes; single answers also twice for each anchor.
    assert "132 ballots: 0 from the warehouse, 132 cast, 0 without a reply" in done.stdout
    logged = "select prompt, count(*) from vote_log group by prompt"
    assert warehouse.query(logged).rows() == [("pair_v2", 36)]
    rated = """
        select prompt, side, count(distinct item), count(distinct criterion), count(*)
        from ratings group by prompt, side order by prompt, side
    """
    assert warehouse.query(rated).rows() == [
        ("labels_v1", "anchor", 6, 5, 60),
        ("labels_v1", "target", 6, 5, 180),
        ("single_reference_v1", "anchor", 6, 0, 12),
        ("single_reference_v1", "target", 6, 0, 36),
    ]
    # Another wave asks again; drift is of comparisons and of single answers.
    later = voirdire("audit", *SMALL, *prompts, "--limit", "6", "--wave", "two")
    assert later.returncode == 0, later.stderr
    assert "132 ballots: 0 from the warehouse, 132 cast" in later.stdout
    drifting = """
        select prompt, measure, perturbation, unit, sum(estimate) from drifts
        where measure in ('rating_drift', 'rating_shift_drift', 'mps_drift')
        group by all order by all
    """
    # A simulated judge gives the same answers in each wave.
    of = "fake_reference"
    assert warehouse.query(drifting).rows() == [
        ("labels_v1", "rating_drift", None, "share", 0),
        ("labels_v1", "rating_shift_drift", of, "share", 0),
        ("pair_v2", "mps_drift", of, "score", 0),
        ("single_reference_v1", "rating_drift", None, "points", 0),
        ("single_reference_v1", "rating_shift_drift", of, "points", 0),
    ]


@pytest.mark.slow
def test_labels_of_people_may_be_words_of_their_own(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    own = CSV.replace(",pass", ",Ja").replace(",fail", ",nein")
    (tmp_path / "mine.csv").write_text(own, encoding="utf-8")
    asked = ("audit", *SMALL, "--dataset", "mine.csv", "--prompt", "binary_v1", "--name", "own")
    refused = voirdire(*asked)
    assert refused.returncode == 2
    reported = " ".join(refused.stderr.split())
    assert (
        "field 'human_label' is 'Ja'; it must be a grade, or a word such as pass or fail"
        in reported
    )
    assert (
        "--pass LABEL (`pass_label` of the study) names a word of your own that passes" in reported
    )
    wrong = " ".join(voirdire(*asked, "--pass", "oui").stderr.split())
    assert "no label of people is 'oui'; the labels are: Ja, nein. Name the one" in wrong
    done = voirdire(*asked, "--pass", "ja")
    assert done.returncode == 0, done.stderr
    said = """
        select human_value, count(distinct item)::int from ratings where arm = 'control' group by 1
    """
    assert {*warehouse.query(said).rows()} == {(1.0, 2), (0.0, 2)}
    study = tmp_path / "voirdire" / "studies" / "words.toml"
    study.parent.mkdir(parents=True)
    data = 'dataset = "mine.csv"\nprompts = ["binary_v1"]\njudges = ["offline/gullible"]\n'
    study.write_text(f'about = "Mine."\n[study]\n{data}pass_label = "ja"\n')
    planned = voirdire("plan", "words")
    assert planned.returncode == 0, planned.stderr


RUBRIC_TOML = """
kind = "rubric"
source = "mine"
user = "{criteria} {question} {answer}"
criteria = [
    { name = "tone", about = "it is polite", low = 1, high = 5 },
    { name = "facts", about = "it is true", low = 1, high = 100, weight = 3 },
]
"""


@pytest.mark.slow
def test_criteria_of_different_scales_count_as_shares_in_the_whole(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    file = tmp_path / "voirdire" / "prompts" / "mixed.toml"
    file.parent.mkdir(parents=True)
    file.write_text(RUBRIC_TOML)
    (tmp_path / "mine.csv").write_text(CSV, encoding="utf-8")
    asked = ("--dataset", "mine.csv", "--prompt", "mixed")
    done = voirdire("audit", "quick", *SMALL, *asked, "--name", "mine")
    assert done.returncode == 0, done.stderr
    by_hand = """
        with shares as (
            select item, repeat, (value - lowest) / (highest - lowest) as share, weight from ratings
            where arm = 'control' and side = 'target'
        ), wholes as (
            select item, sum(share * weight) / sum(weight) as whole from shares
            group by item, repeat having count(share) = 2
        )
        select avg(mean) from (select avg(whole) as mean from wholes group by item)
    """
    measured = "select estimate from estimates where statistic = 'mean_rating' and subgroup = ''"
    (found,) = warehouse.query(measured)["estimate"]
    assert 0 < found < 1
    assert found == pytest.approx(warehouse.query(by_hand).item())


GRADE_TOML = """
kind = "single"
source = "mine"
scale = { low = 1, high = 5 }
user = "{question} {answer}"
"""


@pytest.mark.slow
def test_people_who_grade_on_another_scale(voirdire: Voirdire, tmp_path: Path) -> None:
    file = tmp_path / "voirdire" / "prompts" / "grade.toml"
    file.parent.mkdir(parents=True)
    file.write_text(GRADE_TOML)
    rows = [f"Why {n}?,Answer {n} is this one.,{20 + 7 * n}" for n in range(10)]
    (tmp_path / "mine.csv").write_text("\n".join(["question,answer,human_grade", *rows]))
    asked = ("--dataset", "mine.csv", "--name", "mine", "--prompt", "grade")
    judge = ("--judge", "offline/random", "--perturbation", "fake_reference")
    assert voirdire("audit", *asked, *judge).returncode == 0
    done = voirdire("calibrate", "mine", COLUMNS="200")
    assert done.returncode == 0, done.stderr
    reason = "no answer has a valid rating and a grade of people on the same scale"
    # What several rows have to say is a footnote.
    assert re.search(r"^bias +not known +\(1\)$", done.stdout, re.MULTILINE)
    assert f"\n(1) {reason}\n" in done.stdout
    assert re.search(r"^Spearman +-?\.\d+ ", done.stdout, re.MULTILINE)
    assert "offline/random against people: 10 items compared" in done.stdout
    both = (*asked, "--prompt", "single_v1")
    assert voirdire("audit", *both, *judge).returncode == 0
    named = voirdire("calibrate", "mine", COLUMNS="200").stdout
    assert re.search(r"^offline/random / grade@\w+ against people: 10 ", named, re.MULTILINE)
    assert "offline/random / single_v1 against people: 10 " in named
