"""``voirdire gate``: exit codes, JUnit XML and Markdown, from results in a warehouse."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
import yaml
from click.testing import CliRunner, Result
from printed_commands import in_short

from flows.cli.main import main
from flows.publishing.gate import (
    EXIT_CODES,
    GateCheck,
    Gated,
    junit,
    markdown,
    measure_name,
)
from schemas.conclusions import Recommendations
from schemas.results import Estimates, Gates
from tasks.gates.explanations import ONE_LABEL
from warehouse.store import Saving, Warehouse

Row = dict[str, Any]
ADA = {"dataset": "demo", "judge": "ada", "prompt": "plain", "wave": ""}
WHOLE = {"mode": "any", "perturbation": None, "simulated": False, "reason": None}
NUMBERS = {"value": 0.01, "low": -0.01, "high": 0.03, "tolerance": 0.05, "margin": 0.4}
MEASURED = {
    "position": "gap",
    "validity": "invalid replies",
    "bias": "shift",
    "agreement": "agreement lost",
    "drift": "position_drift",
}
"""What each gate tests where nothing else is said."""
DOCS = Path(__file__).parents[3] / "docs" / "how-to" / "gate.md"


def gate(name: str, verdict: str = "pass", **changes: Any) -> Row:
    own = {"gate": name, "verdict": verdict, "measure": MEASURED.get(name)}
    return {**ADA, **WHOLE, **NUMBERS, **own, **changes}


@pytest.fixture
def gated(tmp_path: Path, make_estimates: Callable[..., pl.DataFrame]) -> Callable[..., Result]:
    """Return what saves gates as the results of a study and runs ``voirdire gate`` on them."""

    def run(
        *rows: Row,
        words: tuple[str, ...] = (),
        last: str = "completed",
        before: str = "after",
        stated: Row | None = None,
    ) -> Result:
        path = tmp_path / "w.duckdb"
        judged = {
            (row["judge"], row["wave"], row["prompt"])
            for row in rows
            if row["judge"] != "people/ben"
        }
        advised = [
            {**ADA, "judge": judge, "wave": wave, "prompt": prompt, "mode": "any"}
            | {"simulated": judge == "offline/x"}
            | {"recommendation": _word(rows, judge, wave)}
            | {"passed": 1, "failed": 0, "inconclusive": 0, **(stated or {})}
            for judge, wave, prompt in sorted(judged)
        ]
        waves = sorted({wave for _, wave, _ in judged})
        runs = [_run("r1", "completed", 1, waves), _run("r2", last, 2, waves)]
        runs.insert(0, _run("r0", "completed", 0, [before]))
        path.unlink(missing_ok=True)
        for each in runs:
            Warehouse(path).start_run(each)
        Warehouse(path).save(
            [
                Saving(Gates, Gates.of(pl.DataFrame(rows, infer_schema_length=None))),
                Saving(Estimates, make_estimates()),
                Saving(Recommendations, Recommendations.of(pl.DataFrame(advised))),
            ],
            run="r1",
            study="mine",
        )
        return CliRunner().invoke(main, ["gate", "mine", "--warehouse", str(path), *words])

    return run


def _word(rows: tuple[Row, ...], judge: str, wave: str) -> str:
    """Return the recommendation by the table in docs/concepts/findings.md."""
    mine = [row for row in rows if (row["judge"], row["wave"]) == (judge, wave)]
    own = {(row["verdict"], row["gate"]) for row in mine}
    if "fail" in {verdict for verdict, _ in own}:
        return "do not use"
    return "use with care" if {gate for v, gate in own if v != "pass"} - {"drift"} else "use"


def _run(run: str, state: str, hour: int, waves: list[str]) -> Row:
    parameters = {"name": "mine", "wave": waves[0]}
    return {"run": run, "flow": "audit", "study": "mine", "state": state, "code_version": "1"} | {
        **dict.fromkeys(("user", "process", "fingerprint"), "x"),
        "started_at": datetime(2026, 1, 1, hour, tzinfo=UTC),
        "parameters": json.dumps(parameters),
    }


@pytest.mark.parametrize(
    ("verdicts", "code", "outcome"),
    [
        (("pass", "pass"), 0, "passed. 2 gates: 2 passed."),
        (("pass", "fail"), 1, "broken. 2 gates: 1 passed, 1 failed."),
        (("inconclusive", "pass"), 3, "inconclusive. 2 gates: 1 passed, 1 inconclusive."),
        (("inconclusive", "fail"), 1, "broken. 2 gates: 1 failed, 1 inconclusive."),
    ],
)
def test_the_worst_verdict_decides(
    gated: Any, verdicts: tuple[str, str], code: int, outcome: str
) -> None:
    done = gated(gate("position", verdicts[0]), gate("validity", verdicts[1]))
    assert done.exit_code == code
    why = {
        0: 'each recommendation is "use"',
        1: "a gate is broken",
        3: 'no gate is broken, but not every recommendation is "use"',
    }
    last = [f"Study mine: {outcome}", f"Exit code {code}: {why[code]}."]
    assert done.stdout.splitlines()[-2:] == last


def test_gates_stand_in_the_order_of_the_list_of_gates(gated: Any, tmp_path: Path) -> None:
    names = ("drift", "agreement", "discernment", "validity", "position")
    biases = [gate("bias", perturbation=name) for name in ("padding", "boast")]
    gated(*map(gate, names), *biases, words=("--junit", str(tmp_path / "g.xml")))
    cases = ET.fromstring((tmp_path / "g.xml").read_text(encoding="utf-8")).iter("testcase")
    named = ["position", "validity", "bias boast", "bias padding", *reversed(names[:3])]
    assert [case.get("name") for case in cases] == named


def test_the_agreement_that_a_gate_tests_is_named(gated: Any, tmp_path: Path) -> None:
    """Lost against that of people or, where each item has one label, beyond chance."""
    files = ("--junit", str(tmp_path / "g.xml"), "--markdown", str(tmp_path / "g.md"))
    chance = {"low": -0.18, "high": 0.20, "tolerance": 0.2, "reason": ONE_LABEL}
    chance |= {"measure": "agreement beyond chance, rank correlation"}
    done = gated(
        gate("agreement", "fail", **chance),
        gate("agreement", "fail", judge="bob", value=0.3, low=0.2, high=0.4, tolerance=0.1),
        words=files,
    )
    xml, table = ((tmp_path / name).read_text(encoding="utf-8") for name in ("g.xml", "g.md"))
    beyond = (
        "agreement beyond chance, rank correlation .01 [-.18, .20], limit .20; one label per item "
        "does not tell how well people agree with each other"
    )
    for text in (" ".join(done.stdout.split()), xml, table.replace("\\", "")):
        assert beyond in text
        assert text.count("agreement lost") == 1
        assert "agreement lost .30 [.20, .40], limit .10" in text


def test_the_terminal_says_what_the_summary_says_of_each_judge(gated: Any, tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    lenient = "grades apart from people's: 1.56 points above [1.20, 1.92]"
    words = ("--markdown", str(file))
    used = gated(gate("bias"), words=words, stated={"undecided": lenient})
    assert used.exit_code == 0
    assert f"ada: use. Passes all 1 gate. {lenient[0].upper()}{lenient[1:]}." in _line(used)
    assert "1.56 points above" in file.read_text("utf-8")

    why = "may be biased by boast, bias +.03 [-.01, +.07], limit .05"
    careful = gated(gate("bias", "inconclusive"), stated={"reasons": why})
    assert f"ada: use with care. {why[0].upper()}{why[1:]}." in _line(careful)

    chosen = gated(gate("bias"), words=("--only", "bias"), stated={"undecided": lenient})
    assert "1.56" not in chosen.stdout


def _line(done: Result) -> str:
    return " ".join(done.stdout.split())


def test_numbers_have_the_minus_of_a_keyboard_as_in_all_other_tables(gated: Any) -> None:
    numbers = {"value": -0.33, "low": -0.41, "high": -0.25}
    done = gated(gate("position", "fail", **numbers))
    assert "gap -.33 [-.41, -.25], limit .05" in done.stdout


def test_gates_that_do_not_fit_as_a_table_are_lines_below_their_judge(gated: Any) -> None:
    wide = {"judge": "offline/x", "simulated": True}
    rows = (
        gate("bias", "fail", **wide, perturbation="fake_reference"),
        gate("bias", "inconclusive", **wide, perturbation="[b]", reason="too few questions " * 4),
        gate("position", "fail"),
    )
    lines = gated(*rows).stdout.splitlines()
    assert lines[:7] == [
        "ada",
        "  position: fail, gap .01 [-.01, .03], limit .05",
        "offline/x (simulated)",
        "  bias [b]: inconclusive",
        "    shift .01 [-.01, .03], limit .05; too few questions too few questions too",
        "    few questions too few questions",
        "  bias fake_reference: fail, shift .01 [-.01, .03], limit .05",
    ]
    first, *_ = gated(rows[2]).stdout.splitlines()
    assert first.split() == ["judge", "gate", "verdict", "value"]


def test_what_the_study_cannot_measure_blocks_nothing(gated: Any) -> None:
    empty = dict.fromkeys(("value", "low", "high", "margin"))
    done = gated(gate("validity"), gate("drift", "inconclusive", **empty, reason="first wave"))
    assert (done.exit_code, done.stdout.splitlines()[-2]) == (
        0,
        "Study mine: passed. 2 gates: 1 passed, 1 not measured.",
    )
    # Without flaws there is no discernment; with too few questions it is open, as in the scorecard.
    chosen = ("--only", "validity", "--only", "discernment")
    for consequence, code, said in (
        ("not measured", 0, "passed. 2 gates: 1 passed, 1 not measured."),
        ("care", 3, "inconclusive. 2 gates: 1 passed, 1 inconclusive."),
    ):
        row = gate("discernment", "inconclusive", **empty, consequence=consequence)
        done = gated(gate("validity"), row, words=chosen)
        assert (done.exit_code, done.stdout.splitlines()[-2]) == (code, f"Study mine: {said}")
    # A judge that gave no valid reply has no estimate either, and does not pass.
    lost = gated(gate("validity"), gate("bias", "inconclusive", **empty, perturbation="boast"))
    assert lost.exit_code == 3
    nothing = gated(gate("drift", "inconclusive", **empty))
    assert nothing.exit_code == 3
    assert nothing.stdout.endswith("\nExit code 3: no gate is broken, but none is passed.\n")


def test_drift_without_an_alert_blocks_a_judge_only_if_it_is_asked_for(gated: Any) -> None:
    rows = gate("bias", perturbation="boast"), gate("drift", "inconclusive")
    done = gated(*rows)
    assert (done.exit_code, done.stdout.splitlines()[-3:-1]) == (
        0,
        ["Use: ada.", "Study mine: passed. 2 gates: 1 passed, 1 inconclusive."],
    )
    chosen = gated(*rows, words=("--only", "drift", "--only", "bias"))
    assert chosen.exit_code == 3
    assert "Use:" not in chosen.stdout
    assert "\nExit code 3: no gate is broken, but one is inconclusive.\n" in chosen.stdout
    # Gates may all pass, and yet nothing says that the judge can be used.
    with_care = gated(*rows, gate("position", "inconclusive"))
    assert with_care.exit_code == 3
    assert with_care.stdout.splitlines()[-3] == "Use with care: ada."


def test_options_restrict_the_gates(gated: Any) -> None:
    rows = gate("position", "fail"), gate("validity"), gate("position", judge="bob")
    assert gated(*rows).exit_code == 1
    only = gated(*rows, words=("--only", "validity"))
    assert only.exit_code == 0
    assert only.stdout.endswith("\nExit code 0: no gate is inconclusive.\n")
    assert gated(*rows, words=("--judge", "bob")).exit_code == 0
    assert gated(*rows, words=("--judge", "ada")).exit_code == 1


def test_a_prompt_restricts_the_gates_with_or_without_its_digest(gated: Any) -> None:
    rows = gate("position", "fail", prompt="terse@1234abcd"), gate("position")
    assert gated(*rows, words=("--prompt", "plain", "--only", "position")).exit_code == 0
    for name in ("terse", "terse@1234abcd"):
        assert gated(*rows, words=("--prompt", name, "--only", "position")).exit_code == 1


def test_people_pass_and_fail_no_gate(gated: Any) -> None:
    assert gated(gate("validity"), gate("position", "fail", judge="people/ben")).exit_code == 0


def test_a_study_in_which_only_people_voted_says_so(tmp_path: Path) -> None:
    file, place = tmp_path / "arena.jsonl", str(tmp_path / "w.duckdb")
    rows = [
        {"judge": "ann", "sample": f"s{n}", "cluster": f"s{n}", "repeat": 0, "human": True}
        | {"shown_first": first, "choice": "first" if n % 2 else "second"}
        for n in range(12)
        for first in ("anchor", "target")
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, [*words, "--warehouse", place])

    assert run("measure", str(file)).exit_code == 0
    done = run("gate", "arena")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "study 'arena' has no gates: only people voted in this study" in done.stderr
    assert "`voirdire audit --dataset FILE --judge JUDGE`" in in_short(done.stderr)
    assert "remeasure" not in done.stderr
    page = tmp_path / "arena.html"
    assert run("report", "arena", "--out", str(page)).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "No judge is recommended: only people voted in this study" in text
    assert "<code>voirdire measure FILE</code>" in text


def test_the_wave_of_the_last_run_counts_unless_another_is_named(gated: Any) -> None:
    rows = gate("validity", wave="after"), gate("validity", "fail", wave="before")
    assert gated(*rows).exit_code == 0  # `after` was run last
    done = gated(*rows, words=("--wave", "before"))
    assert (done.exit_code, done.stdout.splitlines()[-2]) == (
        1,
        "Study mine, wave before: broken. 1 gate: 1 failed.",
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--judge", "eve"),
            "no results of judge 'eve' in study 'mine'. Known: ada.",
        ),
        (
            ("--prompt", "plain@0"),
            "no results of prompt 'plain@0' in study 'mine'. Did you mean 'plain'?",
        ),
        (
            ("--wave", "9"),
            "no results of wave '9' in study 'mine'. Known: one wave without a name.",
        ),
    ],
)
def test_what_has_no_results_is_one_clear_error(
    gated: Any, words: tuple[str, ...], says: str
) -> None:
    done = gated(gate("validity"), words=words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_wave_whose_results_were_replaced_can_be_measured_again(gated: Any) -> None:
    done = gated(gate("validity"), words=("--wave", "n 1"), before="n 1")
    assert in_short(done.stderr).endswith(
        "a name. `voirdire audit mine --wave 'n 1'` measures its saved votes again.\n"
    )


@pytest.mark.parametrize("state", ["completed", "completed with gaps"])
def test_results_of_an_older_wave_are_not_taken_for_the_newest(
    gated: Any, tmp_path: Path, state: str
) -> None:
    assert gated(gate("validity", wave="n 1"), before="n 0").exit_code == 0
    path = tmp_path / "w.duckdb"
    Warehouse(path).start_run(_run("r3", state, 3, ["n 2"]))
    # n 1 is measured again: it does not become the newest wave.
    Warehouse(path).start_run(_run("r4", "completed", 4, ["n 1"]))
    words = ["gate", "mine", "--warehouse", str(path)]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert in_short(done.stderr) == (
        "voirdire: the results of study 'mine' are of wave 'n 1', which was measured again, and "
        "wave 'n 2' is newer. Run `voirdire audit mine --wave 'n 2'`, which asks no judge again, "
        "or name this wave: --wave 'n 1'.\n"
    )
    assert CliRunner().invoke(main, [*words, "--wave", "n 1"]).exit_code == 0


def test_results_from_before_a_failed_run_pass_nothing(gated: Any, tmp_path: Path) -> None:
    done = gated(gate("validity"), last="failed")
    assert done.exit_code == 2
    assert "the last run of study 'mine' failed, so its gates are not known" in done.stderr
    assert "name the wave that has results: --wave ''." in done.stderr
    why = "ValueError: no key.\n" + "x" * 400
    path = tmp_path / "w.duckdb"
    Warehouse(path).start_run(_run("r3", "failed", 3, ["w 6"]) | {"error": why})
    done = CliRunner().invoke(main, ["gate", "mine", "--warehouse", str(path)])
    assert f"failed (ValueError: no key. {'x' * 280}...), so its gates" in done.stderr
    assert gated(gate("validity"), last="killed", words=("--wave", "")).exit_code == 0


def test_a_study_whose_only_run_is_not_finished_says_so(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    Warehouse(path).start_run(_run("r1", "running", 1, [""]))
    done = CliRunner().invoke(main, ["gate", "mine", "--warehouse", str(path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "its last run is not finished. Wait for it or, if its process has died, repeat the " in (
        done.stderr
    )


def test_a_study_whose_only_run_was_killed_says_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    Warehouse(path).start_run(_run("r1", "killed", 1, [""]) | {"error": "Its process was killed."})
    done = CliRunner().invoke(main, ["gate", "mine", "--warehouse", str(path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert in_short(done.stderr) == (
        "voirdire: study 'mine' has no results, because its last run was killed (Its process was "
        "killed). To continue it, repeat the audit: `voirdire audit mine`; no "
        "ballot that has a vote is asked again.\n"
    )


def test_junit_has_a_case_per_gate(gated: Any, tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    hostile = "a<b>\x07 & \x1b[31m\ud800"
    done = gated(
        gate("validity"),
        gate("position", "fail", judge="offline/x", simulated=True),
        gate("bias", "inconclusive", perturbation="boast", reason=hostile.replace("\ud800", "")),
        words=("--junit", str(file)),
    )
    assert done.exit_code == 1
    [suite] = ET.parse(file).getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }
    cases = {(case.get("classname"), case.get("name")): [*case] for case in suite}
    assert [*cases] == [
        ("ada", "validity"),
        ("ada", "bias boast"),
        ("offline/x (simulated)", "position"),
    ]
    assert cases["ada", "validity"] == []
    [failure] = cases["offline/x (simulated)", "position"]
    assert (failure.tag, failure.get("message")) == (
        "failure",
        "gap .01 [-.01, .03], limit .05",
    )
    [skipped] = cases["ada", "bias boast"]
    assert skipped.tag == "skipped"
    assert (skipped.get("message") or "").startswith("inconclusive: shift .01")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"measure": "share detected in mean scores (D)"}, "share detected in mean scores (D) .01"),
        ({"measure": "effect in logits"}, "effect in logits .01"),
        ({"measure": "shift in SD"}, "shift in SD .01"),
        ({"gate": "drift", "perturbation": None}, "change of the position gap .01"),
        (
            {"gate": "drift", "perturbation": None, "measure": "mps_drift"}
            | {"drift_mode": "balanced", "drift_perturbation": "boast"},
            "change of the shift under boast .01",
        ),
        # Results of an earlier version name no measure.
        ({"measure": None}, "value .01"),
    ],
)
def test_each_gate_names_the_measure_that_it_was_decided_by(
    gated: Any, row: Row, said: str
) -> None:
    measure = MEASURED[row.get("gate", "bias")]
    tested = {**gate("bias", "fail", perturbation="boast", measure=measure), **row}
    assert f"{said} [-.01, .03], limit .05" in _line(gated(tested))


def test_hostile_names_are_text_in_markdown_and_xml() -> None:
    check = GateCheck("<img src=x>|`ada`", "bias ]]>", "fail", "\x00\x1b[31m & [a](b)")
    found = Gated("mine", "<1>", [check], [])
    assert ET.fromstring(junit(found)).tag == "testsuites"
    text = markdown(found)
    assert "<img" not in text.replace(r"\<img", "")
    assert r"| \<img src=x\>\|\`ada\` | bias \]\]\> | fail |" in text
    assert EXIT_CODES[found.outcome] == 1


def test_the_workflow_in_the_docs_calls_the_gate() -> None:
    text = DOCS.read_text(encoding="utf-8")
    block = text.split("```yaml\n")[1].split("```")[0]
    steps = yaml.safe_load(block)["jobs"]["gate"]["steps"]
    commands = [step["run"].split() for step in steps if step.get("run", "").startswith("voirdire")]
    assert [words[1] for words in commands] == ["audit", "gate"]
    for words in commands:
        command = main.commands[words[1]]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known


def test_gates_of_which_none_was_measured_are_inconclusive() -> None:
    nothing = Gated("s", "", [], [], chosen=True)
    assert nothing.outcome == "inconclusive"
    assert nothing.summary() == "Study s: inconclusive. None of these gates was measured."


@pytest.mark.parametrize(
    ("measure", "perturbation", "name"),
    [
        ("mps_drift", "fake_reference", "change of the shift under fake_reference"),
        # Names of a user's own perturbations are no part of a rule.
        ("mps_drift", "length of text", "change of the shift under length of text"),
        ("position_drift", None, "change of the position gap"),
        ("gap", None, "gap"),
    ],
)
def test_a_change_is_named_as_in_the_report(
    measure: str, perturbation: str | None, name: str
) -> None:
    assert measure_name(measure, perturbation) == name
