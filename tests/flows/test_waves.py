"""A study of several waves, as a user runs it, with a hosted judge that changes without a word."""

import json
import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hints import in_short

from flows.cli.printing.terminal import number
from flows.publishing.served_files import reports_of
from schemas.results import MEASURES
from warehouse.store import Warehouse

Voirdire = Callable[..., Any]
pytestmark = [pytest.mark.served, pytest.mark.slow]

STEADY = {"omega": 1.5, "nu": 0.5, "seed": 1}
CHANGED = {**STEADY, "kappa": 6}
"""From the third wave on it takes the first slot nearly always."""

FAILS = "Wrong. [[fail]]"
WAVES = [f"2026-11-{day}" for day in range(20, 25)]
WORDS = (
    "audit",
    "--judge",
    "emu/one",
    "--judge",
    "emu/two",
    "--perturbation",
    "fake_reference",
    "--limit",
    "20",
    "--name",
    "waves",
)


def test_five_waves_with_a_judge_that_changes_on_the_third(
    voirdire: Voirdire,
    warehouse: Warehouse,
    emulated: Any,
    ask_server: Callable[..., Any],
    errors_of: Callable[[str], list[str]],
) -> None:
    emulated.provider(repeat_as_seed=True)
    two = {**STEADY, "seed": 2}
    for place, wave in enumerate(WAVES, 1):
        # Each wave's votes are drawn anew, as at a temperature above 0: the other judge varies too.
        emulated.behave(traits={"one": CHANGED if place >= 3 else STEADY, "two": two}, vary=True)
        done = voirdire(*WORDS, "--wave", wave)
        assert done.returncode == 0, done.stderr
        # control, experimental and sham of 20 questions, two votes, two judges
        assert "240 ballots: 0 from the warehouse, 240 cast, 0 without a reply" in done.stdout
    runs = warehouse.query("select run, state, error from runs order by started_at").rows()
    assert [row[1:] for row in runs] == [("completed", None)] * len(WAVES)
    assert errors_of(runs[-1][0]) == []
    _has_one_alert(warehouse)
    for more, named in (
        (("--judge", "offline/honest"), "offline/honest with prompt pair_v2"),
        (("--perturbation", "padding"), "padding"),
    ):
        late = voirdire(*WORDS, *more, "--wave", WAVES[0])
        assert late.returncode != 0
        reported = " ".join((late.stderr + late.stdout).split())
        assert f"had no part of {named}: replies of today are not of that day" in reported
    assert warehouse.query("select count(*) as n from votes")["n"].item() == 240 * len(WAVES)
    shown = voirdire("remeasure", "waves")
    assert shown.returncode == 0, shown.stderr
    # The table of the last wave and all drift are what they were.
    _has_one_alert(warehouse)
    report = reports_of(warehouse.path) / "waves.html"
    assert voirdire("report", "waves").returncode == 0
    page = report.read_text(encoding="utf-8")
    assert ">None<" not in page
    assert all(wave in page for wave in (WAVES[0], WAVES[-1]))
    csv = voirdire("sql", "select * from mart.numbers", "--format", "csv")
    assert csv.returncode == 0
    # The drift in it rests on the votes of all waves.
    files = warehouse.path.parent / "files"
    done = voirdire("export", "waves", "--output", str(files), "--format", "csv")
    assert done.returncode == 0, done.stderr
    for name in ("ballots", "votes"):
        assert pl.read_csv(files / f"{name}.csv").height == 240 * len(WAVES)
    artifacts = ask_server("/artifacts/filter", {"limit": 200})
    of_waves = [a for a in artifacts if "waves" in (a["description"] or "")]
    assert [a["key"] for a in of_waves].count("answer") == len(WAVES)
    answers = [a["data"] for a in of_waves if a["key"] == "answer"]
    assert sum("## Drift" in text for text in answers) == len(WAVES) - 1
    assert [text for text in answers if "? Yes: emu/one changed (" in text]
    # An earlier wave is measured again: everything is as it was then, and says so.
    again = voirdire(*WORDS, "--wave", WAVES[2])
    newer = f"replace those of newer waves ({WAVES[3]}, {WAVES[4]})"
    assert newer in " ".join(again.stdout.split())
    assert warehouse.query("select * from drifts where state = 'alert'").is_empty()
    gate = voirdire("gate", "waves")
    assert (gate.returncode, gate.stdout) == (2, "")
    assert f"Run `voirdire audit waves --wave {WAVES[4]}`" in gate.stderr
    assert "replace those" not in voirdire(*WORDS, "--wave", WAVES[4]).stdout
    _has_one_alert(warehouse)
    assert voirdire("gate", "waves").returncode == 1


def _has_one_alert(warehouse: Warehouse) -> None:
    alerts = warehouse.query(
        "select distinct judge, wave from drifts where study = 'waves' and state = 'alert'"
    ).rows()
    # Suspected in the third wave, the fourth confirms it; what follows has a new baseline.
    assert alerts == [("emu/one", WAVES[3])]


def _is_one_verdict(voirdire: Voirdire, word: str) -> None:
    """Check that the gate and the question about drift have one word and the same change."""
    gate = " ".join(voirdire("gate", "strict", "--only", "drift", COLUMNS="200").stdout.split())
    [row] = json.loads(voirdire("sql", "--ask", "what_drifted", "--format", "json").stdout)
    change, low, high = (number(row[name]) for name in ("change", "low", "high"))
    assert row["drift"] == word
    quantity = f"change of the {MEASURES[row['measure']]} under {row['perturbation']}"
    said = f"{quantity} {change} [{low}, {high}]"
    assert f"drift {word} {said}" in gate


def _shows_what_it_said_before_and_after(voirdire: Voirdire, said: list[str]) -> None:
    """Check that an alert leads to the votes that changed, which have both replies."""
    command = "voirdire show strict --judge emu/one --changed"
    for text in said[:2]:
        assert command not in text
    assert f"Replies before and after: `{command}" in said[2]
    assert said[3].split("next:")[1].strip().startswith(command)
    assert "Has changed since its baseline: ratings" in said[3]
    shown = " ".join(voirdire("show", "strict", "--changed", "--most", "2").stdout.split())
    assert f"emu/one, wave {WAVES[0]} -> {WAVES[3]} control: pass -> fail" in shown
    # A judge of single answers rates the anchor as well.
    for wave, verdict in ((WAVES[0], "pass: "), (WAVES[3], f"fail: {FAILS}")):
        assert re.search(rf"wave {wave}(, the anchor)?: {re.escape(verdict)}", shown)
    changed, compared = re.search(r"([0-9 ]+) of ([0-9 ]+) votes changed", shown).groups()  # type: ignore[union-attr]
    drawn = "drawn at random (the same each time), votes on unperturbed answers before others"
    assert f"2 of {changed.strip()}, {drawn}; --most {changed.strip()} shows all." in shown
    assert 0 < int(changed.replace(" ", "")) < int(compared.replace(" ", ""))


def _leads_back_to_the_change(voirdire: Voirdire) -> None:
    """Check that the change is found again after its wave has become the baseline."""
    shown = in_short(" ".join(voirdire("show", "strict", "--changed").stdout.split()))
    assert "No vote of study strict changed since the wave that drift compares with." in shown
    said = f"The last confirmed change is that of wave {WAVES[3]} since {WAVES[0]}. "
    again, command = re.search(
        re.escape(said) + "`([^`]+)` measures .* then `([^`]+)`", shown
    ).groups()  # type: ignore[union-attr]
    assert command == f"voirdire show strict --wave {WAVES[3]} --changed"
    assert voirdire(*again.split()[1:]).returncode == 0
    found = voirdire(*command.split()[1:], "--most", "1").stdout
    assert f"emu/one, wave {WAVES[0]} -> {WAVES[3]} " in found


def test_a_pass_or_fail_judge_that_fails_everything_from_the_third_wave_on(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    emulated.provider(repeat_as_seed=True)
    words = (*WORDS[:3], *WORDS[5:7], "--prompt", "binary_v1", "--votes", "1", "--limit", "12")
    said, rated = [], []
    passed = "select avg(value) from ratings where arm = 'control'"
    for place, wave in enumerate(WAVES[:4], 1):
        emulated.behave(
            replies=[FAILS] if place >= 3 else ["Fine. [[pass]]", "So. [[pass]]", FAILS]
        )
        done = voirdire(*words, "--name", "strict", "--wave", wave)
        assert done.returncode == 0, done.stderr
        said.append(" ".join(done.stdout.split()))
        if place == 2:
            _is_one_verdict(voirdire, "inconclusive")
        rated.append(warehouse.query(passed).item())
    assert "no earlier named wave asked these judges the same questions" in said[0]
    asked = [f"Did a judge change from wave {WAVES[0]} to wave {wave}?" for wave in WAVES]
    # The p-value is of few flips at most, so an unchanged judge may differ by more than .05.
    assert f"{asked[1]} Not shown: no alert for emu/one (intervals reach" in said[1]
    suspect = "inconclusive for emu/one (suspect, which the next wave must confirm: ratings)"
    assert f"{asked[2]} Perhaps: {suspect}" in said[2]
    assert f"{asked[3]} Yes: emu/one changed (ratings since wave {WAVES[2]}: -" in said[3]
    _shows_what_it_said_before_and_after(voirdire, said)
    # No number of questions shows what would move a judge that fails everything.
    assert all("more answers cannot show a shift" in text for text in said[2:])
    assert "fake reference is inconclusive (about" not in said[2].lower()
    rates = """
        select wave, round(estimate, 2), unit, state from drifts
        where study = 'strict' and measure = 'rating_drift' order by wave
    """
    before = rated[0]
    assert 0.3 < before < 1
    assert warehouse.query(rates).rows() == [
        (WAVES[1], 0.0, "share", "quiet"),
        (WAVES[2], round(-before, 2), "share", "suspect"),
        (WAVES[3], round(-before, 2), "share", "alert"),
    ]
    # A change is one row, with the wave that made it suspect.
    changed = voirdire("sql", "--ask", "what_drifted", "--format", "json")
    [row] = [each for each in json.loads(changed.stdout) if each["drift"] == "alert"]
    assert (row["measure"], row["since"], row["wave"]) == ("rating_drift", WAVES[2], WAVES[3])
    # All waves were asked on one day; the cost of a night is that of a wave.
    costs = voirdire("sql", "--ask", "cost_per_judge_per_night", "--format", "json")
    nights = [each for each in json.loads(costs.stdout) if each["judge"] == "all"]
    assert [each["wave"] for each in nights] == WAVES[3::-1]
    gates = "select verdict from gates where study = 'strict' and gate = 'drift' order by wave"
    assert warehouse.query(gates).rows()[-1] == ("fail",)
    assert f"Has changed since its baseline: ratings since wave {WAVES[2]} (" in said[3]
    assert voirdire(*words, "--name", "strict", "--wave", WAVES[4]).returncode == 0
    _leads_back_to_the_change(voirdire)
