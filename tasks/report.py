"""Report: one self-contained page with the findings and their evidence."""

from collections.abc import Callable, Mapping
from shlex import quote
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.curation import PerturbedAnswers
from schemas.results import CHANGED, Estimates, Findings
from tasks.conclusions.cautions import MIXED
from tasks.conclusions.position_bias import POSITION
from tasks.conclusions.rules import detects_at_of
from tasks.evidence.examples import Examples, changes, examples_of
from tasks.gates.scorecard import FAILS
from tasks.kit.defaults import DEFAULTS, Thresholds
from tasks.kit.printable import same_command
from tasks.pointwise.endpoints import labelled
from tasks.progress import usd
from tasks.reporting.advice import advice, not_measured, policy, without_judges
from tasks.reporting.comparison_rows import (
    adjustment_rows,
    all_rows,
    category_groups,
    contrast_groups,
    criterion_rows,
    position_table,
)
from tasks.reporting.juries_and_models import (
    jury_cost,
    jury_sentence,
    model_rows,
    rewording,
    rule,
    without,
)
from tasks.reporting.page import drawings, page
from tasks.reporting.rows import (
    dropped_rows,
    rated_groups,
    result_groups,
    scorecard_rows,
    validity_rows,
)
from tasks.reporting.summary import is_person, not_recognised, simulated_sentence, summary
from tasks.reporting.wording import (
    DRAWN,
    GROUPS,
    count,
    endpoint_words,
    formulas,
    glossary,
    listing,
    number,
    thousands,
    written_limits,
)
from tasks.results import Conclusions

TEMPLATE = "report.html.j2"
MODE_WORDS = {
    "balanced": "balanced: each order has the same weight, a verdict needs a valid vote in each",
    "paper": "paper: the sign of the sum of all valid votes, as in arXiv:2402.10669",
}


RATED = {"mean_rating", "pass_rate"}
"""Statistics of judges of single answers."""

FLOORS = {
    "sham_floor": "the sham: a meaning-free edit of the same size, of the same answers",
    "replicate_floor": "control asked again, at the same votes per pair",
}
MOST_NUMBERS = 2500
"""Rows of the table of all numbers: more make a page slow, and the warehouse has them."""
MOST_CONTRASTS = 600
"""Rows of the tables of pairs of judges, for the same reasons."""
NO_NOISE = "no arm measures noise alone"
NO_RATE = "ratings have no attack success rate"


class ReportFacts(NamedTuple):
    """Facts about a study that its report states beyond the frames."""

    study: str
    dataset: str
    mode: str
    votes_per_pair: int
    seeds: Mapping[str, int]
    run: str
    code_version: str
    when: str
    """Start time in ISO 8601, given by the caller, so that equal facts give equal bytes."""
    warehouse: str
    asked: int
    """Ballots sent to judges in this run."""
    from_warehouse: int
    """Ballots whose vote was already stored."""
    failed: int
    """Ballots without a reply."""
    tokens: int
    cost_usd: float | None
    """Null if a price is unknown."""
    prompts: Mapping[str, str] = {}
    """Judge prompt -> digest of its file."""
    planned: int = 0
    """Ballots that the study needs."""
    gaps: str = ""
    """Why ballots got no reply."""
    persons: frozenset[str] = frozenset()
    """Judges who are people, other than users of the booth."""
    thresholds: Thresholds = DEFAULTS
    """Limits of the study."""
    wave: str = ""
    """The wave that was measured last."""
    from_file: bool = False
    """Whether the votes were read from a file, without calls, tokens and costs."""


class SavedVotes(NamedTuple):
    """What the report states about the votes of a study as they are in the warehouse."""

    people: str = ""
    """How many people voted, and which of their votes are excluded; empty if nobody did."""
    probed: str = ""
    """Judges that were asked one vote per order only, and why; empty if there is none."""
    numbers: pl.DataFrame | None = None
    """Rows of ``mart.numbers``: the estimates with everything derived from them."""
    costs: pl.DataFrame | None = None
    """Judge, prompt, ballots that runs of the study asked in this wave (``asked``), their cost in
    US dollars (``cost_usd``, null if a price is unknown); null of votes from a file."""
    examples: pl.DataFrame | None = None
    """Rows of ``mart.compared_pairs`` that changed, with the number of all of their cell."""


def report(
    facts: ReportFacts,
    concluded: Conclusions,
    perturbed: DataFrame[PerturbedAnswers],
    saved: Callable[[], SavedVotes] = SavedVotes,
) -> str:
    """Render the report as one HTML file that loads no other resources.

    ``saved`` is called when everything else is ready, as the results may still be being saved.
    """
    concluded = concluded.in_mode(facts.mode)
    estimates, findings = concluded.estimates, concluded.findings
    about_position = pl.col("kind") == POSITION
    cells = Findings.of(findings.filter(~about_position))
    rated = pl.col("unit").is_in(["sd", "share"]).fill_null(value=False)
    left_out = without(concluded.exclusions, concluded.kept_findings)
    # With votes alone, the report is about position bias.
    rested = cells if cells.height else findings
    cell = ["statistic", "dataset", "judge", "prompt", "wave", "mode", "perturbation"]
    primary = estimates.join(rested.select(cell), on=cell, how="semi", nulls_equal=True)
    positions = position_table(
        Findings.of(findings.filter(about_position)), estimates, facts.persons
    )
    # Gates are for judges; people are the standard that judges are compared with.
    found: pl.DataFrame = concluded.gates
    people = [judge for judge in found["judge"].unique() if is_person(judge, facts.persons)]
    found = found.filter(~pl.col("judge").is_in(people))
    gates, judged, footnotes = scorecard_rows(found)
    advised = concluded.recommendations
    groups = result_groups(Findings.of(cells.filter(~rated)), estimates, left_out, facts.persons)
    ratings = rated_groups(Findings.of(cells.filter(rated)), estimates, left_out, facts.persons)
    unit = "answer" if ratings and not groups else "pair"
    sections: dict[str, Any] = {
        "choices": _choices(estimates, findings),
        "simulated": _simulated(estimates, findings, facts.persons),
        "gaps": _gaps(facts),
        "advice": [line.typeset() for line in advice(advised, facts.wave, None)],
        "no_judge": without_judges(estimates["judge"], facts.persons),
        "policy": [
            not_measured(advised, people=len(facts.persons))
            if facts.from_file
            else not_measured(advised, facts.study),
            policy(facts.thresholds, advised, detects_at_of(findings), gates=found),
        ],
        "summary": summary(findings, *_questions(primary, findings, facts.persons), gates=found),
        "groups": groups,
        "rated": ratings,
        "unit": unit,
        "positions": positions,
        # Findings against a judge are never grey.
        "telling": [*FAILS, MIXED],
        "rule": rule(concluded.exclusions),
        "adjustments": adjustment_rows(cells),
        "categories": category_groups(concluded.category_shifts, estimates),
        "criteria": criterion_rows(estimates, cells),
        "contrasts": contrast_groups(concluded.contrasts, estimates, MOST_CONTRASTS),
        "models": model_rows(estimates, concluded.win_checks),
        "jury": jury_sentence(concluded.jury_findings, estimates),
        "jury_cost": jury_cost(concluded.jury_findings),
        "drifted": concluded.drifts["state"].is_in(CHANGED).any(),
        "drawn_how": DRAWN,
        "command": f"voirdire show {quote(facts.study)}",
        "browsed": f"voirdire browse {quote(facts.study)}",
        "gates": gates,
        "scorecard": judged,
        "footnotes": footnotes,
        "dropped": dropped_rows(perturbed),
        "provenance": _provenance(facts, estimates, rested, primary, unit),
        "glossary": glossary(facts.thresholds, unit),
        "limits": written_limits(facts.thresholds),
        "queries": {mart: _query(mart, facts.study) for mart in ("numbers", "contrasts")},
    }
    charts = drawings(**concluded.drawn())
    votes = saved()
    every: pl.DataFrame = estimates
    if votes.numbers is not None:
        every = votes.numbers.filter(pl.col("mode").is_in([facts.mode, "any"]))
    shown: list[Examples] = []
    if votes.examples is not None:
        shown = examples_of(votes.examples, facts.study, several=facts.votes_per_pair > 1)
    return page(
        TEMPLATE,
        charts,
        **sections,
        facts=facts,
        votes=votes,
        examples=shown,
        validity=validity_rows(estimates, votes.costs),
        changed=changes(shown, unit),
        linked={(each.judge, each.perturbation): each for each in shown},
        everything=all_rows(_whole_first(every), facts.persons),
        numbers=every.height,
    )


def _query(mart: str, study: str) -> str:
    name = "'" + study.replace("'", "''") + "'"
    return f"voirdire sql --format csv {quote(f'from mart.{mart} where study = {name}')}"


def _whole_first(numbers: pl.DataFrame) -> pl.DataFrame:
    """Return as many rows as a page can hold; whole cells take precedence over parts of them."""
    placed = numbers.with_row_index("place").sort(pl.col("subgroup") != "", "place")
    return placed.head(MOST_NUMBERS).sort("place").drop("place")


def _choices(
    estimates: DataFrame[Estimates], findings: DataFrame[Findings]
) -> dict[str, list[str]]:
    """Return the judges and perturbations that a reader may choose; nothing without a choice."""
    judges = sorted({*estimates["judge"], *findings["judge"]} - {*GROUPS})
    ordered = findings.drop_nulls("perturbation").sort(pl.col("kind") != "promote", "perturbation")
    perturbations = ordered["perturbation"].unique(maintain_order=True).to_list()
    choices = {"Judge": judges, "Perturbation": perturbations}
    return {name: texts for name, texts in choices.items() if len(texts) > 1}


def _gaps(facts: ReportFacts) -> str:
    """State how many ballots got no reply, and why; empty if none."""
    if not facts.failed:
        return ""
    rest = "The results rest on the other ballots. " if facts.failed < facts.planned else ""
    return (
        f"Completed with gaps: {thousands(facts.failed)} of {count(facts.planned, 'ballot')} got "
        f"no reply. {rest}Reason: {facts.gaps or 'not known'}. "
        f"Run {same_command(facts.wave)} again: it asks only the missing ballots."
    )


def _simulated(
    estimates: DataFrame[Estimates], findings: DataFrame[Findings], persons: frozenset[str]
) -> str:
    """State which judges, except people, are simulated, and what these do not recognise."""
    known = {*estimates["judge"], *findings["judge"]} - {*GROUPS}
    judges = {judge for judge in known if not is_person(judge, persons)}
    said = simulated_sentence(judges, formulas(estimates) | formulas(findings))
    unknown = not_recognised(findings.filter("simulated")["perturbation"])
    return f"{said}. {unknown}." if unknown else said


def _provenance(
    facts: ReportFacts,
    estimates: DataFrame[Estimates],
    findings: DataFrame[Findings],
    primary: pl.DataFrame,
    unit: str,
) -> dict[str, str]:
    shown = pl.concat([primary, estimates.filter(pl.col("statistic").is_in(MAIN), subgroup="")])
    methods = shown.filter(pl.col("level").is_not_null())["method"].str.split("; ").list.first()
    return {
        "study": facts.study,
        "dataset": facts.dataset,
        "judge prompts": _prompts(facts, estimates),
        "waves": _values(estimates, "wave") or "one",
        "verdicts": _verdicts(facts, estimates),
        f"votes per {unit}": thousands(facts.votes_per_pair),
        **_sizes(primary, estimates),
        "primary endpoint": endpoint_words(findings, labelled(estimates)),
        "floor": _floor(estimates),
        **rewording(estimates),
        "intervals": f"level {_values(estimates, 'level') or 'not stated'}, by "
        f"{'; '.join(sorted(methods.unique())) or 'no method'}. The table of all numbers has the "
        "method of each. The independent unit is the question",
        "minimum shift that matters": _values(findings, "minimum") or "not stated",
        "adjustment": f"Benjamini-Hochberg over {count(findings['p_adjusted'].count(), 'cell')}"
        " with a p-value and enough questions",
        "seeds": ", ".join(f"{name} {seed}" for name, seed in facts.seeds.items()) or "none",
        **_calls(facts),
        "run": facts.run,
        "code version": facts.code_version,
        "run begun": facts.when,
        "warehouse": facts.warehouse,
    }


MAIN = ("asr", "position_gap", "position_consistency", "mean_rating", "pass_rate")
"""Statistics beside the endpoint whose intervals the main tables show."""


def _sizes(primary: pl.DataFrame, estimates: DataFrame[Estimates]) -> dict[str, str]:
    """Return the sample sizes of the findings or, without any, of verdicts on control pairs."""
    control = estimates.filter(statistic="position_consistency", subgroup="")
    found = primary if primary.height else control
    of = "" if found["perturbation"].count() else "control alone: "
    if found.is_empty():
        return {}
    sizes = [f"up to {thousands(_largest(found, column))}" for column in ("clusters", "n")]
    return {"questions, samples": f"{of}{', '.join(sizes)}"}


def _floor(estimates: DataFrame[Estimates]) -> str:
    """State which arms measure noise, and for which perturbations."""
    attacked = {*estimates.filter(statistic="asr")["perturbation"].drop_nulls()}
    floors = []
    for statistic, what in FLOORS.items():
        # Rows of a floor have the perturbation that they are a floor for.
        own = {*estimates.filter(statistic=statistic)["perturbation"].drop_nulls()}
        of = f" (none for {listing(sorted(attacked - own))})" if attacked - own else ""
        floors += [what + of] if own else []
    rated = not attacked and bool(RATED & {*estimates["statistic"]})
    none = NO_NOISE if attacked else NO_RATE if rated else "nothing was perturbed"
    return "; ".join(floors) or f"none: {none}"


def _verdicts(facts: ReportFacts, estimates: DataFrame[Estimates]) -> str:
    """State how votes become verdicts: of pairs in two orders, and of single answers."""
    shown = {*estimates["statistic"]}
    single = ["single answers have no order: votes on the same answer are averaged"]
    pairs = (
        []
        if shown & RATED and "tie_rate" not in shown
        else [MODE_WORDS.get(facts.mode, facts.mode)]
    )
    return "; ".join([*pairs, *(single if shown & RATED else [])])


def _calls(facts: ReportFacts) -> dict[str, str]:
    if facts.from_file:
        return {"votes": "from a file, which does not record calls, tokens or costs"}
    return {
        "ballots asked in this run": thousands(facts.asked),
        "served from the warehouse in this run": thousands(facts.from_warehouse),
        "failed": thousands(facts.failed),
        "tokens": thousands(facts.tokens),
        "cost": "not known" if facts.cost_usd is None else f"{usd(facts.cost_usd)} USD",
    }


def _questions(
    primary: pl.DataFrame, findings: DataFrame[Findings], persons: frozenset[str]
) -> tuple[int, frozenset[str], int]:
    """Return the questions that judges got, the people among the judges, and their questions."""
    judges = findings["judge"].unique()
    people = frozenset(judge for judge in judges if is_person(judge, persons))
    by_people = pl.col("judge").is_in(sorted(people))
    models, theirs = primary.filter(~by_people), primary.filter(by_people)
    return _largest(models, "clusters"), people, _largest(theirs, "clusters")


def _largest(frame: pl.DataFrame, column: str) -> int:
    return max(frame[column].to_list(), default=0)


def _prompts(facts: ReportFacts, estimates: DataFrame[Estimates]) -> str:
    names = sorted({*facts.prompts, *estimates["prompt"]})
    digests = {name: facts.prompts.get(name, "") for name in names}
    return listing([f"{name} ({digest})" if digest else name for name, digest in digests.items()])


def _values(frame: pl.DataFrame, column: str) -> str:
    values = sorted(set(frame[column].drop_nulls()))
    return listing([number(v) if isinstance(v, float) else str(v) for v in values if v != ""])
