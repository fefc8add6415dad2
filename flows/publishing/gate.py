"""Gate for continuous integration: the scorecard of a study as outcome, JUnit XML and Markdown."""

from collections.abc import Collection, Mapping
from shlex import quote
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import polars as pl

from flows.publishing.pages import run_of_results, study_of
from flows.running.run_row import ENDED
from flows.studies.repeated import audit_again
from schemas.results import GATES
from schemas.results import MEASURES as CHANGES
from tasks.gates.consequences import USE
from tasks.gates.recommendations import of_wave
from tasks.kit.exit_codes import ExitCode
from tasks.kit.printable import because
from tasks.prompts import without_digest
from tasks.reporting.advice import ONLY_PEOPLE, Advice, advice, by_recommendation, literal
from tasks.reporting.rows import NOT_MEASURED, gate_verdict
from tasks.reporting.wording import PLAIN, clean, count, interval, marked, number
from tasks.validation.unknown_names import unknown
from warehouse.evidence.selection import NEWER, WITHOUT_VOTES
from warehouse.store import Warehouse

PASSED, BROKEN, INCONCLUSIVE = "passed", "broken", "inconclusive"
EXIT_CODES = {
    PASSED: ExitCode.DONE,
    BROKEN: ExitCode.FAILED,
    INCONCLUSIVE: ExitCode.WITH_GAPS,
}
CHECKS = """
    select g.* from mart.scorecard as g
    semi join mart.recommendations as r using (study, dataset, judge, prompt, wave)
    where g.study = $study
    order by g.judge, g.prompt, g.dataset, list_position($gates, g.gate), g.perturbation
"""
"""Gates of judges; people are what judges are compared with."""
RECOMMENDED = "select * from mart.recommendations where study = ?"
LAST = f"""
    select if(starts_with(state, 'completed') and {WITHOUT_VOTES}, 'silent', state) as state, error
    from runs where study = ? and flow = 'audit' order by started_at desc limit 1
"""  # noqa: S608 - SQL of our own
UNKNOWN = {**{state: ENDED[state] for state in ("failed", "killed")}, "silent": "got no vote"}
"""How the last run ended, if gates are not known because of it -> in words."""
WAVES = """
    select distinct parameters->>'wave' as wave from runs where study = ? and flow = 'audit'
"""
PEOPLE = """
    select coalesce(bool_and(coalesce(human, false)), false) as only from (
        select human from vote_log where study = $study
        union all select human from ratings where study = $study
    )
"""


class GateCheck(NamedTuple):
    """One gate of one judge."""

    judge: str
    """Its name, with the prompt and dataset where they differ, and the mark of simulated judges."""
    name: str
    verdict: str
    """``pass``, ``fail``, ``inconclusive`` or ``not measured``."""
    said: str
    """Value, interval, limit and reason."""


class Gated(NamedTuple):
    """The gates of a study in one wave."""

    study: str
    wave: str
    checks: list[GateCheck]
    advised: list[Advice]
    chosen: bool = False
    """Whether the gates are not all, so that they, not the recommendations, decide."""

    @property
    def outcome(self) -> str:
        """Return ``broken`` if a gate fails, ``passed`` if each recommendation is *use*.

        Chosen gates pass if none is inconclusive.
        """
        verdicts = {check.verdict for check in self.checks}
        if "fail" in verdicts:
            return BROKEN
        usable = all(one.recommendation == USE for one in self.advised)
        passed = "inconclusive" not in verdicts if self.chosen else usable
        return PASSED if passed and "pass" in verdicts else INCONCLUSIVE

    def number_of(self, verdict: str) -> int:
        """Return how many gates have a verdict."""
        return sum(check.verdict == verdict for check in self.checks)

    def recommended(self) -> str:
        """Say in a line which judges to use, unless only some gates are checked."""
        return "" if self.chosen else clean(by_recommendation(self.advised))

    def summary(self) -> str:
        """Say what the outcome is and why, in one sentence."""
        none = "None of these gates was measured"
        several = count(len(self.checks), "gate") if self.checks else none
        words = {"pass": "passed", "fail": "failed"}
        parts = [
            f"{self.number_of(verdict)} {words.get(verdict, verdict)}"
            for verdict in ("pass", "fail", "inconclusive", NOT_MEASURED)
            if self.number_of(verdict)
        ]
        wave = f", wave {self.wave}" if self.wave else ""
        counts = f": {', '.join(parts)}" if parts else ""
        return clean(f"Study {self.study}{wave}: {self.outcome}. {several}{counts}.")

    def exit_line(self) -> str:
        """Say with which exit code the command ends, and why."""
        if self.outcome == BROKEN:
            why = "a gate is broken"
        elif self.outcome == PASSED:
            why = "no gate is inconclusive" if self.chosen else 'each recommendation is "use"'
        elif not self.number_of("pass"):
            why = "no gate is broken, but none is passed"
        elif self.chosen:
            why = "no gate is broken, but one is inconclusive"
        else:
            why = 'no gate is broken, but not every recommendation is "use"'
        return f"Exit code {EXIT_CODES[self.outcome]}: {why}."


def gate_of(
    warehouse: Warehouse,
    study: str,
    wave: str | None = None,
    among: Mapping[str, Collection[str]] | None = None,
    gates: Collection[str] = (),
) -> Gated:
    """Return the gates of a study, of one wave: the one named, or the last that was measured.

    ``among`` names the ``judge`` or the ``prompt`` to keep; a prompt with or without its digest.

    Raise LookupError if the study has no results, or none of this wave, or of one of these judges
    or prompts; ValueError if no wave is named and the last run failed or got no vote, because its
    judges may have changed, or a newer wave has other results.
    """
    run = study_of(run_of_results(warehouse, study))
    found, recommended, last, waves, people, newer = warehouse.query_all(
        (CHECKS, {"study": study, "gates": [*GATES]}),
        (RECOMMENDED, [study]),
        (LAST, [study]),
        (WAVES, [study]),
        (PEOPLE, {"study": study}),
        (NEWER, {"study": study, "wave": run.wave}),
    )
    if wave is None and last.height and last["state"].item() in UNKNOWN:
        ended = f"{UNKNOWN[last['state'].item()]}{because(last['error'].item())}"
        raise ValueError(
            f"the last run of study {study!r} {ended}, so its gates are not known. Run `voirdire "
            f"audit {study}` again, or name the wave that has results: --wave {quote(run.wave)}."
        )
    if wave is None and newer.height:
        newest = newer["wave"][-1]
        raise ValueError(
            f"the results of study {study!r} are of wave {run.wave!r}, which was measured again, "
            f"and wave {newest!r} is newer. Run `{audit_again(warehouse.path, study, newest)}`, "
            f"which asks no judge again, or name this wave: --wave {quote(run.wave)}."
        )
    if found.is_empty():
        if people["only"].item():
            raise ValueError(f"study {study!r} has no gates: {ONLY_PEOPLE}")
        raise ValueError(
            f"study {study!r} has no judge with a scorecard. Results of earlier versions get "
            f"theirs by `voirdire remeasure {study}`."
        )
    if wave is not None:
        again = f"`{audit_again(warehouse.path, study, wave)}` measures its saved votes again."
        _require("wave", {wave}, {*found["wave"]}, study, again if wave in waves["wave"] else "")
    judges, prompts = ((among or {}).get(name, ()) for name in ("judge", "prompt"))
    _require("judge", judges, {*found["judge"]}, study)
    labels = {label: without_digest(label) for label in found["prompt"]}
    _require("prompt", prompts, {*labels, *labels.values()}, study)
    chosen = [label for label, name in labels.items() if {label, name} & {*prompts}]
    wanted = {"judge": [*judges], "prompt": chosen}
    among_these = [pl.col(column).is_in(names) for column, names in wanted.items() if names]
    kept = [frame.filter(pl.lit(value=True), *among_these) for frame in (found, recommended)]
    rows, advised = (of_wave(frame, wave if wave is not None else run.wave) for frame in kept)
    if gates:
        rows = rows.filter(pl.col("gate").is_in(sorted(gates)))
    differing = [
        name
        for name in ("prompt", "dataset", "mode")
        if rows.filter(pl.col(name) != "any")[name].n_unique() > 1
    ]
    checks = [_check(row, differing) for row in rows.to_dicts()]
    shown = str(rows["wave"].item(0)) if rows.height else ""
    return Gated(study, shown, checks, advice(advised), bool(gates))


def junit(gated: Gated) -> str:
    """Write JUnit XML: a test case per gate; inconclusive gates are skipped tests.

    Characters that XML 1.0 does not have are replaced.
    """
    suites = Element("testsuites", name="voirdire")
    skipped = gated.number_of("inconclusive") + gated.number_of(NOT_MEASURED)
    suite = SubElement(
        suites,
        "testsuite",
        name=clean(f"{gated.study} {gated.wave}"),
        tests=str(len(gated.checks)),
        failures=str(gated.number_of("fail")),
        errors="0",
        skipped=str(skipped),
    )
    for check in gated.checks:
        case = SubElement(suite, "testcase", classname=clean(check.judge), name=clean(check.name))
        if check.verdict == "fail":
            SubElement(case, "failure", message=clean(check.said), type="gate")
        elif check.verdict != "pass":
            SubElement(case, "skipped", message=clean(f"{check.verdict}: {check.said}"))
    indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def markdown(gated: Gated) -> str:
    """Write a summary in Markdown: outcome, recommendations, and the gates that do not pass."""
    lines = [f"## {literal(gated.summary())}", ""]
    lines += [line.markdown() for line in gated.advised]
    open_ = [check for check in gated.checks if check.verdict != "pass"]
    if open_:
        lines += ["", "| judge | gate | verdict | value |", "| --- | --- | --- | --- |"]
        lines += [f"| {' | '.join(literal(clean(text)) for text in check)} |" for check in open_]
    return "\n".join(lines) + "\n"


def measure_name(measure: str | None, perturbation: str | None) -> str:
    """Name the quantity that a gate tests; of drift, the change of it under a perturbation."""
    if measure not in CHANGES:
        return measure or "value"
    return f"change of the {CHANGES[measure]}" + (f" under {perturbation}" if perturbation else "")


def _check(row: dict[str, Any], differing: list[str]) -> GateCheck:
    judge = " / ".join([row["judge"], *(str(row[name]) for name in differing)])
    known = row["value"] is not None and row["low"] is not None
    limit = f", limit {number(row['tolerance'])}" if row["tolerance"] is not None else ""
    what = measure_name(row["measure"], row["drift_perturbation"])
    ends = interval(row["low"], row["high"])
    numbers = f"{what} {number(row['value'])} {ends}{limit}" if known else ""
    return GateCheck(
        marked(judge, simulated=row["simulated"]),
        row["gate"] if row["perturbation"] is None else f"{row['gate']} {row['perturbation']}",
        gate_verdict(row),
        # Reasons have the minus of a keyboard, and so do XML and terminals.
        "; ".join(filter(None, [numbers, row["reason"]])).translate(PLAIN),
    )


def _require(
    what: str, given: Collection[str], known: Collection[str], study: str, help_: str = ""
) -> None:
    if missing := sorted({*given} - {*known}):
        listed = sorted(filter(None, known)) or [f"one {what} without a name"]
        everything = "`voirdire sql` lists all in mart.scorecard"
        where = f"in study {study!r}"
        raise unknown(f"results of {what}", missing[0], listed, everything, where=where, step=help_)
