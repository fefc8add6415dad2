"""The record of one run: what it saved, what it asked, how it ended."""

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

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
    not_ready_line,
    partial_judges,
    partial_line,
)
from flows.running.recovery import discard_journal, journal_of, mark_dead_runs, recover
from flows.running.run_row import end_of, failure_recorded, first_row, one_line
from flows.studies import Study
from schemas.curation import PerturbedAnswers
from schemas.frame import Frame
from schemas.judging import Ballots, VoteLog, Votes
from tasks.engine.redaction import redact
from tasks.judging.sequential_stopping import probed
from tasks.perturb import NO_SHAM
from warehouse.store import Saving, Warehouse, WarehouseBusyError, WarehouseError

SECONDS_BETWEEN_SIGNS = 20.0


CALIBRATED = """
    select bool_or(flow = 'calibrate') and not bool_or(flow in ('audit', 'measure')) from runs
    where study = ? and state <> 'failed'
"""


def require_free(study: str, warehouse: Warehouse) -> None:
    """Refuse the name of a calibration, whose results a study's would replace.

    Raises
    ------
    ValueError
        Before anything is asked.
    """
    if warehouse.path.is_file() and warehouse.query(CALIBRATED, [study]).item():
        raise ValueError(
            f"{warehouse.path} holds a calibration named {study!r}, whose results would be "
            "replaced. Give the study another name with --name."
        )


class Record:
    """A run in the warehouse, from start to end."""

    def __init__(self, flow: str, run: str, study: Study, warehouse: Warehouse) -> None:
        self.flow, self.run, self.study, self.warehouse = flow, run, study, warehouse
        self.started_at = datetime.now(UTC)
        self.counts: Counter[str] = Counter()
        self.cost_usd: float | None = 0.0
        self.errors: Counter[str] = Counter()
        self.notes: list[str] = []
        self.left_out: dict[str, list[str]] = {}
        """Parameters that are not sent, by judge."""
        self.unsaved: list[str] = []
        """What earlier runs left and could not be saved."""
        self.journal = journal_of(warehouse, run)
        self.partial: dict[str, Gap] = {}
        """Judges that lack more ballots than the study allows."""
        self.kept: datetime | None = None
        """When the complete results were saved that this run does not replace; null: it does."""
        self.unwritten: list[str] = []
        """What could not be written though the results are saved."""
        self.stopped = 0
        self.probed = ""
        """Which judges were asked one vote per order, and why."""
        self.all_saved = True
        """False while votes have come in that are not in the warehouse yet."""
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        with failure_recorded(self._begin, self.warehouse):
            require_free(self.study.name, self.warehouse)
            mark_dead_runs(self.warehouse)
            self.unsaved = recover(self.warehouse)
        for note in self.unsaved:
            get_run_logger().warning(note)
        self.warehouse.start_run({**self._begin(), "state": "running"})
        threading.Thread(target=self._give_signs, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._ended.set()
        if isinstance(error, WarehouseBusyError):
            # The next run finds this one's process gone, and its journal.
            raise WarehouseBusyError(f"{error} {self._kept()}.") from error
        ended = {"state": self._state(), "error": self._causes(), "ended_at": datetime.now(UTC)}
        self.warehouse.update_run(
            self.run,
            **(end_of(error) if error else ended),
            **self._end(self.counts, self.cost_usd),
        )
        # Whoever is interrupted may leave calls in flight, whose replies are in the journal only;
        # the next run saves them.
        if kind is None and self.all_saved:
            discard_journal(self.journal)

    def save(self, *frames: tuple[type[Frame], pl.DataFrame]) -> None:
        """Save frames in one transaction."""
        savings = [Saving(model, frame) for model, frame in frames]
        self.warehouse.save(savings, run=self.run, study=self.study.name)

    def count_dropped(self, perturbed: DataFrame[PerturbedAnswers]) -> None:
        """Count what failed a validity check, and what has no sham though it should."""
        failed = perturbed.filter(pl.col("failure").is_not_null())
        shamless = perturbed.filter(
            pl.col("failure").is_null(), pl.col("sham_failure").fill_null(NO_SHAM) != NO_SHAM
        )
        verb = "dropped" if self.study.checks == "drop" else "used despite a failed check"
        self.notes = [*_tell(failed, verb), *_tell(shamless, "without a sham")]

    def notes_line(self) -> str:
        """Say what was dropped; empty if nothing was."""
        return f"Answers {'; '.join(self.notes)}; reasons in mart.dropped" if self.notes else ""

    def waiting(self, ballots: DataFrame[Ballots]) -> DataFrame[Ballots]:
        """Return the ballots that have not been cast, and count them all."""
        cast = self.warehouse.read(Votes, among=ballots.select("ballot_id"))
        waiting = Ballots.of(ballots.join(cast, on="ballot_id", how="anti"))
        planned = ballots["ballot_id"].n_unique()
        self.counts["planned"] = planned
        self.counts["from_warehouse"] = planned - waiting["ballot_id"].n_unique()
        return waiting

    def claim(self, ballots: DataFrame[Ballots]) -> tuple[DataFrame[Ballots], DataFrame[Ballots]]:
        """Return the ballots that are this run's to ask, and those that another one asks now."""
        mine = self.warehouse.claim(ballots, self.run)
        ours = ballots.join(mine, on="ballot_id", how="semi")
        rest = ballots.join(mine, on="ballot_id", how="anti")
        cast = self.warehouse.read(Votes, among=rest.select("ballot_id")) if rest.height else rest
        self.counts["from_warehouse"] += cast.height
        return Ballots.of(ours), Ballots.of(rest.join(cast, on="ballot_id", how="anti"))

    async def save_votes(
        self,
        votes: DataFrame[Votes],
        errors: list[str],
        *,
        release: pl.DataFrame | None = None,
        patience_seconds: float | None = None,
    ) -> None:
        """Save a batch of votes as soon as it is there; the first vote of a ballot stays.

        The claims on the ballots to ``release`` are given up. Nothing is counted that is not saved.
        """
        came = Counter(
            asked=votes.height,
            failed=len(errors),
            invalid=votes.filter(choice="invalid").height,
            **{name: int(votes[name].sum()) for name in ("prompt_tokens", "completion_tokens")},
        )
        known = not votes["cost_usd"].has_nulls() and self.cost_usd is not None
        cost_usd = (self.cost_usd or 0.0) + float(votes["cost_usd"].sum()) if known else None
        counts = {**self._end(self.counts + came, cost_usd), "seen_at": datetime.now(UTC)}
        await asyncio.to_thread(
            self.warehouse.save,
            [Saving(Votes, votes, first_wins=True)],
            run=self.run,
            counts=counts,
            release=release,
            patience_seconds=patience_seconds,
        )
        self.counts.update(came)
        self.cost_usd = cost_usd
        # They come from everywhere, and are printed, logged and shown.
        told = {error: redact(error) for error in {*errors}}
        self.errors.update(told[error] for error in errors)

    def count_stopped(self, stops: pl.DataFrame, votes: DataFrame[Votes]) -> None:
        """Count the ballots that others made needless, and those that failed others kept back."""
        self.stopped = stops.filter(pl.col("stopped").is_not_null())["ballot_id"].n_unique()
        same = stops.filter(pl.col("stopped") == "deterministic").select("judge").unique()
        if same.height:
            asked = Ballots.of(
                stops.join(same, on="judge", how="semi").select(Ballots.dtypes().keys())
            )
            self.probed = alike_line(probed(asked, votes).rows())
        gaps = self.counts["planned"] - votes.height - self.stopped
        if (kept_back := gaps - self.counts["failed"]) > 0:
            self.errors["not asked: its pair's vote before it failed"] += kept_back
        self.counts["failed"] = gaps

    def leave_gaps(
        self, ballots: DataFrame[Ballots], waiting: DataFrame[Ballots], hindered: Mapping[str, str]
    ) -> DataFrame[Ballots]:
        """Count the waiting ballots of judges that cannot be asked; return the others.

        Raises
        ------
        ValueError
            If that leaves nothing to measure: no ballot of the study has a vote or can get one.
        """
        cannot = pl.col("judge").is_in(sorted(hindered))
        rest = Ballots.of(waiting.filter(~cannot))
        # Judges that ask the same share a vote.
        left = waiting.filter(cannot).join(rest, on="ballot_id", how="anti")
        if left.is_empty():
            return rest
        reasons = {judge: hindered[judge] for judge in left["judge"].unique().sort()}
        if waiting["ballot_id"].n_unique() == ballots["ballot_id"].n_unique() and rest.is_empty():
            raise ValueError(
                f"no judge can be asked, and no earlier vote is there. {not_ready_line(reasons)}. "
                "Nothing was asked."
            )
        once = left.unique("ballot_id", keep="first")
        for judge, count in once.group_by("judge").len().sort("judge").iter_rows():
            self.errors[f"not asked: {reasons[judge]}"] += count
        self.counts["failed"] += once.height
        get_run_logger().warning(f"Not asked, which leaves gaps: {not_ready_line(reasons)}")
        return rest

    def count_gaps(self, vote_log: DataFrame[VoteLog]) -> None:
        """Find out which judges lack too many ballots, and whether complete results stand."""
        self.partial = partial_judges(vote_log, self.study.gaps_allowed)
        self.kept = complete_before(self.study, vote_log, self.warehouse)

    def not_written(self, what: str, error: Exception, step: str) -> None:
        """Note what could not be written, and the next step: the results are saved."""
        note = f"the {what} was not written: {one_line(error)} ({step})"
        get_run_logger().warning(note)
        self.unwritten.append(note)

    def votes(self, ballots: DataFrame[Ballots]) -> DataFrame[Votes]:
        """Return the votes on ``ballots``."""
        return self.warehouse.read(Votes, among=ballots.select("ballot_id"))

    def summary(self) -> str:
        """Say in one line what was asked."""
        counts = self.counts
        text = (
            f"{counts['planned']} ballots: {counts['from_warehouse']} from the warehouse, "
            f"{counts['asked']} cast, {counts['failed']} without a reply"
        )
        text = f"{text}, {self.stopped} not needed" if self.stopped else text
        text = f"{text} ({self.probed})" if self.probed else text
        invalid = counts["invalid"]
        text = (
            f"{text}, {invalid} {'reply' if invalid == 1 else 'replies'} without a verdict"
            if invalid
            else text
        )
        text = f"{text} ({causes})" if (causes := self._causes()) else text
        unsent = "; ".join(f"{', '.join(names)} of {j}" for j, names in self.left_out.items())
        text = f"{text}. Not sent, as unsupported: {unsent}" if unsent else text
        notes = self.notes_line()
        return f"{text}. {notes}" if notes else text

    def row(self) -> dict[str, Any]:
        """Return the run's row as it stands."""
        return {**self._begin(), **self._end(self.counts, self.cost_usd), "error": self._causes()}

    def outcome(self) -> State[None]:
        """Return the state of the flow run: completed, or completed with gaps."""
        gaps = self.counts["failed"] > 0
        return Completed(name=GAPS if gaps else None, message=self.summary())

    def _give_signs(self) -> None:
        """Give signs of life until the run ends; who was taken for dead meanwhile, runs again."""
        while not self._ended.wait(SECONDS_BETWEEN_SIGNS):
            # A file that is busy for a minute leaves time for two more signs.
            with suppress(WarehouseError):
                self.warehouse.sign_of_life(self.run)

    def _kept(self) -> str:
        """Say what becomes of the replies if nothing can be saved any more."""
        if self.all_saved:
            return "All votes are saved: the next run asks none of them again"
        return (
            f"Every reply that came is in the journal {self.journal}: the next run saves them and "
            "asks none of them again"
        )

    def _causes(self) -> str | None:
        causes = [f"{n} x {error}" for error, n in self.errors.most_common(3)]
        more = [f"and {len(self.errors) - 3} other errors"] if len(self.errors) > 3 else []
        why = "; ".join([*causes, *more, *self.unsaved, *self.unwritten])
        partial = partial_line(self.partial, self.study.gaps_allowed, self.kept)
        return ". ".join(filter(None, [partial, why])) or None

    def _begin(self) -> dict[str, Any]:
        return first_row(self.flow, self.run, self.study, self.started_at)

    @staticmethod
    def _end(counts: Counter[str], cost_usd: float | None) -> dict[str, Any]:
        return {**{name: counts[name] for name in COUNTED}, "cost_usd": cost_usd}

    def _state(self) -> str:
        return "completed with gaps" if self.counts["failed"] else "completed"


COUNTED = ("planned", "from_warehouse", "asked", "failed", "prompt_tokens", "completion_tokens")


def _tell(perturbed: pl.DataFrame, verb: str) -> list[str]:
    counts = Counter(perturbed["perturbation"].to_list())
    listed = ", ".join(f"{n} {perturbation}" for perturbation, n in sorted(counts.items()))
    return [f"{verb}: {listed}"] if listed else []
