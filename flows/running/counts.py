"""Counts of a run (ballots, votes, costs, errors, gaps) and their summary."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame
from prefect import get_run_logger
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.results.vote_summary import alike_line
from flows.running.gaps import (
    GAPS,
    Gap,
    complete_before,
    partial_judges,
    partial_line,
    results_before,
)
from flows.running.readiness import not_ready_line
from flows.running.run_row import one_line
from flows.studies import Study
from schemas.curation import PerturbedAnswers
from schemas.judging import RATED, VALID, Ballots, VoteLog, Votes
from schemas.keys import unit_name
from tasks.judging.sequential_stopping import probed
from tasks.kit.printable import redact, several, thousands
from tasks.perturb import NO_SHAM
from warehouse.store import Warehouse

COUNTED = ("planned", "from_warehouse", "asked", "failed", "prompt_tokens", "completion_tokens")
NO_VOTES = Votes.empty()


class RunCounts:
    """The counts of one run of a study."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.numbers: Counter[str] = Counter()
        self.cost_usd: float | None = 0.0
        self.errors: Counter[str] = Counter()
        self.notes: list[str] = []
        self.left_out: dict[str, list[str]] = {}
        """Unsupported parameters that are not sent, by judge."""
        self.unsaved: list[str] = []
        """Journals of earlier runs that could not be saved."""
        self.partial: dict[str, Gap] = {}
        """Judges that lack more ballots than the study allows, with the prompt if it has several.
        """
        self.voteless = False
        """Whether no ballot has a vote, also of people."""
        self.kept: datetime | None = None
        """When the complete results were saved that this run keeps; null if it replaces them."""
        self.unwritten: list[str] = []
        """Files that could not be written; the results are saved."""
        self.stopped = 0
        self.unread = 0
        """Replies without a verdict among all votes of the results."""
        self.probed = ""
        """Judges that were asked for one vote per order, and why."""

    def add_votes(self, votes: DataFrame[Votes], errors: Collection[str]) -> None:
        """Count saved votes, and the errors of ballots without a vote."""
        # In place, because claims are counted in other threads.
        self.cost_usd = self._cost_with(votes)
        self.numbers.update(_numbers_of(votes, errors))
        # Errors are text from outside that is printed, logged and shown.
        redacted = {error: redact(error) for error in {*errors}}
        self.errors.update(redacted[error] for error in errors)

    def columns(
        self, votes: DataFrame[Votes] = NO_VOTES, errors: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return columns of ``runs``: the counts including these votes and errors."""
        numbers = self.numbers + _numbers_of(votes, errors)
        return {**{name: numbers[name] for name in COUNTED}, "cost_usd": self._cost_with(votes)}

    def _cost_with(self, votes: DataFrame[Votes]) -> float | None:
        if self.cost_usd is None or votes["cost_usd"].has_nulls():
            return None
        return self.cost_usd + float(votes["cost_usd"].sum())

    def count_dropped(self, perturbed: DataFrame[PerturbedAnswers]) -> None:
        """Count perturbed answers that failed a validity check, or lack their sham."""
        failed = perturbed.filter(pl.col("failure").is_not_null())
        shamless = perturbed.filter(
            pl.col("failure").is_null(), pl.col("sham_failure").fill_null(NO_SHAM) != NO_SHAM
        )
        verb = "dropped" if self.study.checks == "drop" else "used despite a failed check"
        self.notes = [*_counted(failed, verb), *_counted(shamless, "without a sham")]

    def notes_line(self) -> str:
        """Describe the dropped answers; empty if there are none."""
        return f"Answers {'; '.join(self.notes)}; reasons in mart.dropped" if self.notes else ""

    def count_stopped(self, stops: pl.DataFrame, votes: DataFrame[Votes]) -> None:
        """Count ballots that were not needed, or not asked because an earlier one failed."""
        self.unread = _without_verdict(votes)
        self.stopped = stops.filter(pl.col("stopped").is_not_null())["ballot_id"].n_unique()
        unit = ["judge", "prompt"]
        same = stops.filter(pl.col("stopped") == "deterministic").select(unit).unique()
        if same.height:
            asked = Ballots.of(
                stops.join(same, on=unit, how="semi").select(Ballots.dtypes().keys())
            )
            self.probed = alike_line(
                (unit_name(judge, prompt, self.study.prompts), alike, probes)
                for judge, prompt, alike, probes in probed(asked, votes).rows()
            )
        gaps = self.numbers["planned"] - votes.height - self.stopped
        if (kept_back := gaps - self.numbers["failed"]) > 0:
            self.errors["not asked: the vote before it on the same pair failed"] += kept_back
        self.numbers["failed"] = gaps

    def leave_gaps(
        self, ballots: DataFrame[Ballots], waiting: DataFrame[Ballots], hindered: Mapping[str, str]
    ) -> DataFrame[Ballots]:
        """Count the waiting ballots of judges that cannot be asked; return the others.

        Raise ValueError if no ballot of the study has a vote or can get one.
        """
        cannot = pl.col("judge").is_in(sorted(hindered))
        rest = Ballots.of(waiting.filter(~cannot))
        # Judges with equal requests share a vote.
        left = waiting.filter(cannot).join(rest, on="ballot_id", how="anti")
        if left.is_empty():
            return rest
        reasons = {judge: hindered[judge] for judge in left["judge"].unique().sort()}
        if waiting["ballot_id"].n_unique() == ballots["ballot_id"].n_unique() and rest.is_empty():
            raise ValueError(
                f"no judge can be asked, and no earlier vote exists. {not_ready_line(reasons)}. "
                "Nothing was asked. Correct this, or choose other judges."
            )
        once = left.unique("ballot_id", keep="first")
        for judge, count in once.group_by("judge").len().sort("judge").iter_rows():
            self.errors[f"not asked: {reasons[judge]}"] += count
        self.numbers["failed"] += once.height
        get_run_logger().warning(f"Not asked, which leaves gaps: {not_ready_line(reasons)}")
        return rest

    def count_gaps(
        self, vote_log: DataFrame[VoteLog], warehouse: Warehouse, rated: pl.DataFrame
    ) -> None:
        """Find judges with too many gaps, and results that must not be replaced.

        Votes on a part of the ballots replace no complete results. A run without any vote replaces
        no results at all.

        ``rated`` are the ballots that show one answer with their votes, see ``votes_on``.
        """
        kinds = [pl.col(name).cast(kind) for name, kind in rated.schema.items()]
        log = pl.concat([vote_log.select(kinds), rated])
        self.partial = partial_judges(log, self.study.gaps_allowed)
        self.kept = complete_before(self.study, log, warehouse)
        asked = log.filter(~pl.col("human").fill_null(value=False))
        self.voteless = bool(self.partial) and asked["choice"].is_null().all()
        if self.voteless and self.kept is None:
            self.kept = results_before(self.study, warehouse)

    def not_written(self, what: str, error: Exception, step: str) -> None:
        """Record a file that could not be written, and the next step; the results are saved."""
        note = f"the {what} was not written: {one_line(error)} ({step})"
        get_run_logger().warning(note)
        self.unwritten.append(note)

    def summary(self) -> str:
        """Return the summary of the run in one line."""
        numbers = self.numbers
        text = (
            f"{several(numbers['planned'], 'ballot')}: {thousands(numbers['from_warehouse'])} from "
            f"the warehouse, {thousands(numbers['asked'])} cast, {thousands(numbers['failed'])} "
            "without a reply"
        )
        if self.stopped:
            text += f", {thousands(self.stopped)} not needed"
        if self.probed:
            text += f" ({self.probed})"
        new = numbers["invalid"]
        if unread := max(self.unread, new):
            text += f", {several(unread, 'reply', 'replies')} without a verdict"
            text += "" if unread == new else f" ({thousands(new) if new else 'none'} of them new)"
        if causes := self.causes():
            text += f" ({causes})"
        unsent = "; ".join(f"{', '.join(names)} of {j}" for j, names in self.left_out.items())
        text = f"{text}. Not sent, as unsupported: {unsent}" if unsent else text
        notes = self.notes_line()
        return f"{text}. {notes}" if notes else text

    def outcome(self) -> State[None]:
        """Return the state of the flow run: completed, or completed with gaps."""
        gaps = self.numbers["failed"] > 0
        return Completed(name=GAPS if gaps else None, message=self.summary())

    def causes(self) -> str | None:
        """Return the most frequent errors and other problems; null if there are none."""
        causes = [f"{n} x {error}" for error, n in self.errors.most_common(3)]
        more = [f"and {len(self.errors) - 3} other errors"] if len(self.errors) > 3 else []
        why = "; ".join([*causes, *more, *self.unsaved, *self.unwritten])
        partial = partial_line(
            self.partial, self.study.gaps_allowed, self.kept, voteless=self.voteless
        )
        return ". ".join(filter(None, [partial, why])) or None

    def state(self) -> str:
        """Return the state of the run when it ends."""
        return "completed with gaps" if self.numbers["failed"] else "completed"


def _numbers_of(votes: DataFrame[Votes], errors: Collection[str]) -> Counter[str]:
    return Counter(
        asked=votes.height,
        failed=len(errors),
        invalid=_without_verdict(votes),
        **{name: int(votes[name].sum()) for name in ("prompt_tokens", "completion_tokens")},
    )


def _without_verdict(votes: pl.DataFrame) -> int:
    return votes.filter(~pl.col("choice").is_in([*VALID, RATED])).height


def _counted(perturbed: pl.DataFrame, verb: str) -> list[str]:
    counts = Counter(perturbed["perturbation"].to_list())
    listed = ", ".join(f"{n} {perturbation}" for perturbation, n in sorted(counts.items()))
    return [f"{verb}: {listed}"] if listed else []
