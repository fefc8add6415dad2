"""Results of votes, computed alike for audits, `measure`, `remeasure` and benchmarks."""

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple, get_args, get_type_hints

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.conclusions import (
    CategoryShifts,
    JuryFindings,
    PanelMeans,
    PanelMembers,
    Rankings,
    Recommendations,
    Waves,
    WinChecks,
)
from schemas.frame import Frame
from schemas.judging import Contests, Shifts, Tallies, Verdicts, VoteLog
from schemas.results import (
    Annotations,
    Contrasts,
    Drifts,
    Estimates,
    Exclusions,
    Findings,
    Gates,
    KeptFindings,
)
from tasks.aggregate import count_votes, measure_all
from tasks.annotate import annotate
from tasks.conclude import category_shifts, conclude, endpoints, kept_findings
from tasks.conclusions.comparisons import contrasts, win_checks
from tasks.conclusions.exclusions import exclude
from tasks.conclusions.position_bias import POSITION
from tasks.conclusions.rules import detects_at_of
from tasks.counting.contests import match_models
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.drift.alerts import fresh_votes
from tasks.drift.waves import waves_of
from tasks.gates.recommendations import recommend
from tasks.gates.scorecard import scorecard
from tasks.kit.defaults import DEFAULTS, DETECTS_AT, Thresholds, limited_by
from tasks.panels.jury_findings import PRICES, jury_costs, jury_findings
from tasks.panels.members import panel_means, panel_members
from tasks.panels.panels import people_of
from tasks.panels.rankings import rankings
from tasks.progress import step
from tasks.statistics import STATISTICS, with_floors


class ResultSteps(NamedTuple):
    """The steps from votes to findings: these functions, cached tasks, or functions of counts."""

    count: Callable[[Any], Any] = count_votes
    tally: Callable[[Any, str], Any] = tally_votes
    match_arms: Callable[[Any], Any] = match_groups
    match_models: Callable[[Any], Any] = match_models
    annotate: Callable[[Any], Any] = annotate
    measure: Callable[..., DataFrame[Estimates]] = measure_all
    conclude: Callable[..., DataFrame[Findings]] = conclude


class CountedVotes(NamedTuple):
    """Votes counted, verdicts of pairs, and arms side by side."""

    tallies: DataFrame[Tallies]
    verdicts: DataFrame[Verdicts]
    shifts: DataFrame[Shifts]


class Results(NamedTuple):
    """Everything that follows from the votes of one study."""

    tallies: DataFrame[Tallies]
    verdicts: DataFrame[Verdicts]
    shifts: DataFrame[Shifts]
    contests: DataFrame[Contests]
    annotations: DataFrame[Annotations]
    estimates: DataFrame[Estimates]
    findings: DataFrame[Findings]
    ratings: DataFrame[Ratings]

    def tables(self) -> list[tuple[type[Frame], pl.DataFrame]]:
        """Return the frames that are saved besides :class:`Conclusions`."""
        return [(Verdicts, self.verdicts), (Shifts, self.shifts), (Annotations, self.annotations)]

    def concluded(
        self,
        drifts: DataFrame[Drifts],
        thresholds: Thresholds = DEFAULTS,
        prices: pl.DataFrame | None = None,
    ) -> "Conclusions":
        """Return estimates, findings, drifts and everything that follows from them."""
        return conclusions_of(
            self.estimates,
            self.findings,
            drifts,
            thresholds,
            tallies=self.tallies,
            prices=prices,
            ratings=self.ratings,
        )


RESULT_STEPS = ResultSteps()


class Conclusions(NamedTuple):
    """Estimates, findings, drifts and what follows from them, each saved in its own table.

    Computed once per measurement: reports and terminal tables read these frames.
    """

    estimates: DataFrame[Estimates]
    findings: DataFrame[Findings]
    drifts: DataFrame[Drifts]
    exclusions: DataFrame[Exclusions]
    kept_findings: DataFrame[KeptFindings]
    contrasts: DataFrame[Contrasts]
    jury_findings: DataFrame[JuryFindings]
    gates: DataFrame[Gates]
    panel_members: DataFrame[PanelMembers]
    panel_means: DataFrame[PanelMeans]
    rankings: DataFrame[Rankings]
    win_checks: DataFrame[WinChecks]
    waves: DataFrame[Waves]
    category_shifts: DataFrame[CategoryShifts]
    recommendations: DataFrame[Recommendations]

    def tables(self) -> list[tuple[type[Frame], pl.DataFrame]]:
        """Return each frame with its model, as they are saved."""
        return list(zip(CONCLUDED, self, strict=True))

    def drawn(self) -> dict[str, pl.DataFrame]:
        """Return the frames that charts read, by name; charts show no finding about position."""
        cells = Findings.of(self.findings.filter(pl.col("kind") != POSITION))
        return {**self._asdict(), "findings": cells}

    def in_mode(self, mode: str) -> "Conclusions":
        """Keep the rows of one mode (a way to make verdicts), and rows of mode *any*."""
        own = pl.col("mode").is_in([mode, "any"])
        kept: list[Any] = [
            frame.filter(own) if "mode" in frame.columns else frame for frame in self
        ]
        return Conclusions(*kept)


CONCLUDED: tuple[type[Frame], ...] = tuple(
    get_args(hint)[0] for hint in get_type_hints(Conclusions).values()
)
"""Models of the frames of :class:`Conclusions`, in the same order."""


def conclusions_of(
    estimates: DataFrame[Estimates],
    findings: DataFrame[Findings],
    drifts: DataFrame[Drifts],
    thresholds: Thresholds = DEFAULTS,
    *,
    tallies: DataFrame[Tallies] | None = None,
    prices: pl.DataFrame | None = None,
    ratings: DataFrame[Ratings] | None = None,
) -> Conclusions:
    """Conclude on judges, pairs of judges, the jury, wins of models and waves.

    ``tallies`` tell who is a person, and in which orders pairs were shown; ``prices`` (columns
    ``PRICES``) what the votes of each judge cost; ``ratings`` what they measure.
    """
    tallies = Tallies.empty() if tallies is None else tallies
    prices = pl.DataFrame(schema=PRICES) if prices is None else prices
    step("concluding: recommendations, comparisons of judges")
    with limited_by(thresholds), ThreadPoolExecutor(1) as beside:
        exclusions = exclude(estimates)
        # A third of the time, so in a thread of its own.
        again = partial(kept_findings, estimates, findings, exclusions, thresholds)
        kept = beside.submit(copy_context().run, again)
        people = people_of(tallies)
        members = panel_members(estimates, exclusions, people)
        gates = scorecard(estimates, findings, drifts, people)
        between = contrasts(estimates)
        juries = jury_findings(estimates, detects_at_of(findings), jury_costs(members, prices))
        advice = recommend(gates, estimates)
        return Conclusions(
            estimates,
            findings,
            drifts,
            exclusions,
            kept.result(),
            between,
            juries,
            gates,
            members,
            panel_means(estimates, exclusions, members),
            rankings(estimates, ratings),
            win_checks(estimates),
            waves_of(tallies, drifts),
            category_shifts(estimates),
            advice,
        )


def results_of(
    votes: Any,
    mode: str,
    *,
    ratings: DataFrame[Ratings] | None = None,
    detects_at: float = DETECTS_AT,
    thresholds: Thresholds = DEFAULTS,
    steps: ResultSteps = RESULT_STEPS,
    only: Collection[str] = (),
) -> Results:
    """Return the results of a vote log, or of other votes that ``steps.count`` takes.

    Parameters
    ----------
    mode
        How the votes of a pair make a verdict, ``balanced`` or ``paper``.
    ratings
        Ratings of single answers, if there are any.
    detects_at
        Share of flaws that a judge must detect for the finding *detects*.
    thresholds
        Further limits of findings.
    only
        The statistics to compute, if not all. Contests and annotations are empty unless one of
        them reads these, and findings rest on their estimates alone.
    """
    ratings = Ratings.empty() if ratings is None else ratings
    read = {frame for name in only or STATISTICS for frame in STATISTICS[name].reads}
    step("counting votes")
    tallies, verdicts, shifts = counted_votes(votes, mode, steps)
    step("comparing models, annotating")
    contests = steps.match_models(tallies) if "contests" in read else Contests.empty()
    annotations = steps.annotate(tallies) if "annotations" in read else Annotations.empty()
    step("measuring")
    estimates = steps.measure(
        **({"only": only} if only else {}),
        thresholds=thresholds,
        tallies=tallies,
        shifts=shifts,
        contests=contests,
        annotations=annotations,
        ratings=ratings,
    )
    step("concluding: findings")
    findings = steps.conclude(endpoints(estimates), detects_at, thresholds)
    return Results(tallies, verdicts, shifts, contests, annotations, estimates, findings, ratings)


def results_of_file(vote_log: DataFrame[VoteLog], mode: str) -> Results:
    """Return the results of a file of votes; its drift is of fresh votes only.

    A file may hold votes that a later wave took from a cache; in a warehouse no vote serves two
    waves.
    """
    found = results_of(vote_log, mode)
    fresh = fresh_votes(vote_log)
    if fresh["choice"].null_count() == vote_log["choice"].null_count():
        return found
    drift = STATISTICS["drift"]
    tallies, _, shifts = counted_votes(fresh, mode)
    others = found.estimates.filter(~pl.col("statistic").is_in(drift.gives))
    changed = drift.draft(tallies=tallies, shifts=shifts)
    estimates = Estimates.of(with_floors(pl.concat([others, changed])))
    return found._replace(estimates=estimates)


def counted_votes(votes: Any, mode: str, steps: ResultSteps = RESULT_STEPS) -> CountedVotes:
    """Count votes, make verdicts of them and lay the arms side by side."""
    tallies = steps.count(votes)
    verdicts = steps.tally(tallies, mode)
    return CountedVotes(tallies, verdicts, steps.match_arms(verdicts))
