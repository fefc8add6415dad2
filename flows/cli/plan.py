"""`voirdire plan`: what a study would ask, cost and be able to detect."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import click
import polars as pl
from pandera.typing.polars import DataFrame

from flows.cli.completion import DEFAULT_STUDY
from flows.cli.meanings import explained
from flows.cli.power_analysis import (
    advice,
    detectable_effects,
    detectable_tables,
    earlier_spreads,
    effect_advice,
    effect_table,
    freedom_of,
    left_out_line,
    questions_of,
    sample_table,
    validity_line,
)
from flows.cli.printing.live import Printer
from flows.cli.printing.tables import plain_table, print_line, print_rows
from flows.cli.printing.terminal import echo_data, echo_json, number
from flows.publishing.pages import require_data, run_of_results, saved_study, study_of
from flows.running.ballots import ballots_of, left_line, limit_line, make_pairs
from flows.running.readiness import budget_line, not_ready, not_ready_line, without_bounds
from flows.studies import STUDIES, Study, make_study
from schemas.curation import Answers, Perturbations, PerturbedAnswers, Questions, Versions
from schemas.judging import SIDES, Ballots, Judges, Pairs, Votes
from schemas.keys import unit_name
from tasks.calibration.calibrate import Terms
from tasks.calibration.planner import Simulation, describe_people, plan_annotators
from tasks.curate import cannot_compute
from tasks.engine.litellm_adapter import highest_price, price_of
from tasks.engine.queue import (
    CHARACTERS_PER_TOKEN,
    FRAME_TOKENS,
    REPLY_TOKENS,
    SHORT_TOKENS,
    THINKING_TOKENS,
    expected_tokens,
    most_tokens,
)
from tasks.gates.recommendations import of_wave
from tasks.gates.summaries import CHANCE
from tasks.inference.linearised_errors import too_few
from tasks.judge import dropped_params, judge_table
from tasks.kit.command_line import given_options, print_notice, say
from tasks.pair import background_of
from tasks.progress import current_status, usd
from tasks.prompts import prompt_of
from tasks.providers import JUDGES, provider_of
from tasks.reporting.advice import SHAM_MOVES, open_notes, open_questions
from tasks.reporting.wording import count, thousands
from tasks.validation.unknown_names import unknown
from warehouse.path_checks import default_path, studies_in
from warehouse.store import Saving, Warehouse

ENOUGH_REPLIES = 20
"""Number of earlier votes needed to estimate the tokens of a reply."""

REPLIES = f"""
    select judge, prompt, avg(completion_tokens) from votes join (
        select distinct ballot_id, judge, prompt from ballots where prompt in $prompts
    ) using (ballot_id) group by judge, prompt having count(completion_tokens) >= {ENOUGH_REPLIES}
"""  # noqa: S608 - a constant of this file

GATES = "select * from mart.scorecard where study = ?"

ASK_ABOVE_USD = 1.0

LEAST_EFFECT = 1e-6
"""Minimum effect; smaller ones would need an unrealistic number of samples."""


class Cost(NamedTuple):
    """The calls, tokens and cost of asking one judge, with one of the study's prompts."""

    judge: str
    """With its prompt if the study has several."""
    cast: int
    calls: int
    tokens: int
    reply_tokens: int
    usd: float | None
    most_usd: float | None
    """What a budget reserves: one token per byte, replies of maximum length."""
    from_history: bool = False
    """Whether the length of replies is known from earlier votes."""

    @property
    def expected_usd(self) -> float | None:
        """The estimate if it is based on earlier votes, else the maximum."""
        return self.usd if self.from_history else self.most_usd


def study_to_plan(study: str | None, changes: dict[str, Any], warehouse: Path | None) -> Study:
    """Return a study with changes; without ``study`` and others, that of the name in ``changes``.

    Raise an error if there is no such study, or its data file is not found from here.
    """
    place, name = warehouse or default_path(), changes.get("name")
    if study is None and name is not None:
        is_known = name in STUDIES or name in studies_in(place)
        if changes.keys() == {"name"}:
            if not is_known:
                known = sorted({*STUDIES, *studies_in(place)})
                like = f"`voirdire plan {DEFAULT_STUDY} --name {quote(name)}`"
                step = f"To plan a new study of this name, say which one it is like: {like}."
                raise unknown("study", name, known, step=step)
            study = name
        elif is_known:
            print_notice(
                f"This is the plan of study {DEFAULT_STUDY} with these options, as `voirdire audit`"
                f" runs it. `voirdire plan {quote(name)}` plans for the settings of study {name}."
            )
    study = study or DEFAULT_STUDY
    saved = saved_study(study, place)
    planned = make_study(study, changes, base=saved, called=given_options())
    require_data(planned, saved, place, "plan")
    return planned


def show_plan(study: Study, warehouse: Path | None, effect: float | None = None) -> None:
    """Print ballots, tokens and cost per judge, and the smallest detectable shift.

    With an ``effect``, also print how many samples it takes to detect a shift of that size.
    """
    if effect is not None and not LEAST_EFFECT <= effect <= 1:
        raise ValueError(
            f"--effect is {effect}; it is a shift and must be between {LEAST_EFFECT:f} and 1."
        )
    study = study.at(datetime.now(UTC))
    console = Printer()
    notes: list[str] = []
    pairs, perturbed = _prepare(study, notes.append, warehouse)
    costs = _estimate(study, pairs, warehouse)
    if notes := [*notes, *_open_questions(study, warehouse, costs)]:
        print_line(console, "\n".join([*notes, ""]))
    if any(cost.calls for cost in costs):
        _show_costs(console, costs, study)
    else:
        cast = count(sum(cost.cast for cost in costs), "ballot")
        print_line(console, f"All {cast} of this plan have votes: an audit asks nothing.")
    if unavailable := not_ready(study):
        left = f"it cannot ask {not_ready_line(unavailable)}."
        print_line(console, f"`voirdire audit` would leave gaps: {left}")
    if study.budget_usd is not None and not without_bounds(study):
        sums = (_sum([c.usd for c in costs]), _sum([c.most_usd for c in costs]))
        print_line(console, budget_line(study.budget_usd, *sums))
    table, by_perturbation = sample_table(pairs, perturbed, study)
    console.print("", table, sep="\n")
    if left_out := left_out_line(by_perturbation, perturbed):
        print_line(console, left_out)
    # Perturbations without samples must not set the number of samples of the others.
    compared = {name: number for name, number in by_perturbation.items() if number}
    samples = min(compared.values(), default=0)
    study = study.model_copy(update={"perturbations": list(compared)})
    seen = detectable_effects(study, samples, earlier_spreads(study, warehouse)) if samples else []
    questions, df = questions_of(pairs), freedom_of(pairs)
    if seen and not too_few(questions, df):
        for shown in detectable_tables(seen, samples, study.votes_per_pair):
            console.print("", shown, sep="\n")
    if seen and effect:
        console.print("", effect_table(seen, study.votes_per_pair, effect), sep="\n")
        print_line(console, effect_advice(seen, samples, study.votes_per_pair, effect))
    print_line(console, "")
    for line in advice(seen, samples, study, questions, df):
        print_line(console, line)
    if line := validity_line(pairs, study.thresholds.most_invalid):
        print_line(console, line)


def _open_questions(study: Study, warehouse: Path | None, costs: list[Cost]) -> Iterator[str]:
    """Say what the results of a study leave inconclusive of its judges and judge prompts."""
    store = Warehouse(warehouse)
    if not store.path.is_file():
        return
    planned = pl.col("judge").is_in(study.judges) & pl.col("prompt").is_in(study.prompts)
    # Results of an earlier version do not say what they leave open.
    found = of_wave(store.query(GATES, [study.name]), study.wave)
    found = found.filter(planned, pl.col("consequence").is_not_null())
    if lines := open_questions(found):
        yield f"Further questions that would decide the open gates of study {study.name}, {CHANCE}:"
        yield from lines
        if any(SHAM_MOVES in line for line in lines):
            other = "first" if study.sham == "second" else "second"
            yield (
                "Where the sham itself moves a judge, more questions do not decide, but another "
                f"sham may not move it: `voirdire audit {quote(study.name)} --sham {other} --name "
                "NAME`."
            )
        # As it was asked, perhaps with another limit than this plan.
        asked = study_of(run_of_results(store, study.name))
        # Those of drift must be the baseline's.
        needed = found.filter(pl.col("gate") != "drift")["more_questions"].max()
        if asked.dataset == study.dataset and (line := left_line(asked, needed)):
            yield line
        planned_for = study.model_dump(include={"judges", "prompts", "budget_usd"})
        same = asked.model_copy(update=planned_for) == study
        unanswered = sum(cost.calls for cost in costs if cost.cast) if same else 0
        fewest = study.thresholds.fewest_questions
        yield from open_notes(found, study.name, fewest, unanswered)


def show_label_plan(people: pl.DataFrame, terms: Terms, form: str, source: str) -> None:
    """Print the chance that a judge as accurate as these people passes, by number of instances."""
    epsilon, kind, test = terms.epsilon, terms.kind, terms.test
    if terms.metric != "accuracy":
        raise ValueError(
            f"--plan cannot plan for metric {terms.metric}: it simulates labels that are right or "
            "wrong. Use --metric accuracy."
        )
    like = describe_people(people, source)
    plan = plan_annotators(like, Simulation(epsilon, kind, test))
    chances = [{"instances": size, "chance": chance} for size, chance in plan.chances.items()]
    if form == "csv":
        echo_data(pl.DataFrame(chances).write_csv())
        return
    if form == "json":
        found = {
            "annotators": like.annotators,
            "agreement": like.agreement,
            "accuracy": like.accuracy,
            "epsilon": epsilon,
            "epsilon_kind": kind,
            "test": test,
            "chances": chances,
            "instances": plan.instances,
            "worst_judge": plan.worst,
        }
        echo_json(found)
        return
    rows = [(size, number(chance, 3)) for size, chance in plan.chances.items()]
    Printer().print(plain_table(("instances", "chance to pass"), rows))
    say(
        f"Simulated: {like.annotators} people and a judge, all equally accurate. Two people give "
        f"the same one of {len(like.frequencies)} labels with probability "
        f"{number(like.agreement)}, so each is taken to be right with probability "
        f"{number(like.accuracy)}. Margin: {kind} epsilon {number(epsilon)}."
    )
    if plan.instances is None:
        say("None of these numbers of instances gives a chance of .80.")
    else:
        gap = number(plan.worst)
        say(
            f"{plan.instances} instances, each labelled by all, give a chance of at least .80. At "
            f"that number a judge whose accuracy is lower by {gap} passes half of the time."
        )


def confirm_spending(
    study: Study,
    warehouse: Path | None,
    asking: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> bool:
    """Ask for confirmation if the cost exceeds ``ASK_ABOVE_USD`` or is unknown.

    While it waits for the answer, it is in the context ``asking``. Return whether it read the data,
    and so has said what cannot be computed from them.

    Raise ValueError if standard input is no terminal, or the answer is no.
    """
    if study.budget_usd is not None or all(provider_of(j).simulated for j in study.judges):
        return False
    # What the columns do not suffice for is said before money is spent on them.
    pairs, _ = _prepare(study, current_status().tell, warehouse)
    costs = _estimate(study.at(datetime.now(UTC)), pairs, warehouse)
    due = [cost for cost in costs if cost.calls]
    total = sum(cost.expected_usd or 0.0 for cost in due)
    unknown = [cost.judge for cost in due if cost.expected_usd is None]
    if total <= ASK_ABOVE_USD and not unknown:
        return True
    about = sum(cost.usd or 0.0 for cost in due)
    text = f"{count(sum(cost.calls for cost in due), 'call')}, estimated at {about:.2f} USD"
    if all(cost.from_history for cost in due):
        text += " from earlier votes"
    else:
        text += f", at most {sum(cost.most_usd or 0.0 for cost in due):.2f} USD"
    text += f", and an unknown amount for {', '.join(unknown)}" if unknown else ""
    if sys.stdin.isatty():
        with asking():
            confirmed = click.confirm(f"This audit makes {text}. Continue?")
        if confirmed:
            return True
    raise ValueError(
        f"the audit was not confirmed, so nothing was asked: it would make {text}. Confirm with "
        "--yes, or set a limit with --budget USD (give an unknown price or token limit as "
        "usd_per_million and max_tokens in the provider's file)."
    )


def _prepare(
    study: Study, tell: Callable[[str], None], warehouse: Path | None
) -> tuple[DataFrame[Pairs], DataFrame[PerturbedAnswers]]:
    made = make_pairs(study)
    place = Warehouse(warehouse)
    if place.path.is_file():
        # What an audit would refuse is no plan.
        models = (Questions, Answers, Versions, Perturbations, PerturbedAnswers, Judges)
        frames = (*made.dataset[:3], made.perturbations, made.perturbed, judge_table(study.judges))
        pairs = zip(models, frames, strict=True)
        place.require_unchanged([Saving(*each) for each in pairs])  # type: ignore[arg-type]
    if line := cannot_compute(study.dataset, made.dataset):
        tell(line)
    if line := limit_line(study, made.dataset.questions.height):
        tell(line)
    return made.shown, made.perturbed


def _estimate(study: Study, pairs: DataFrame[Pairs], warehouse: Path | None) -> list[Cost]:
    left_out = {name: dropped_params(study.judges, name) for name in study.prompts}
    ballots = ballots_of(study, pairs, judge_table(study.judges), left_out)
    store, cast = Warehouse(warehouse), Votes.empty()
    reply_tokens: dict[tuple[str, str], float] = {}
    if store.path.is_file():
        cast = store.read(Votes, among=ballots.select("ballot_id"))
        earlier = store.query(REPLIES, {"prompts": study.prompts})
        reply_tokens = {(judge, prompt): mean for judge, prompt, mean in earlier.iter_rows()}
    return _costs(ballots, cast, pairs, reply_tokens)


def _costs(
    ballots: DataFrame[Ballots],
    cast: DataFrame[Votes],
    pairs: DataFrame[Pairs],
    reply_tokens: dict[tuple[str, str], float],
) -> list[Cost]:
    """Return the cost of each judge and prompt.

    ``reply_tokens`` are the mean tokens of earlier replies, by judge and prompt.
    """
    around = pl.DataFrame(
        [
            (judge, prompt, len(text), len(text.encode()))
            for judge, prompt in ballots.select("judge", "prompt").unique().iter_rows()
            # The text of the prompt around the question and the two answers.
            for messages in [prompt_of(prompt).messages("", "", "", before=JUDGES[judge].system)]
            for text in ["".join(message["content"] for message in messages)]
        ],
        schema=["judge", "prompt", "characters_around", "octets_around"],
        orient="row",
    )
    waits = pl.col("known").is_null()
    asked = (
        ballots.unique("ballot_id")
        .join(_lengths(pairs, ballots), on=["pair_id", "prompt", "shown_first"])
        .join(around, on=["judge", "prompt"])
        .with_columns(
            characters=pl.col("characters") + pl.col("characters_around"),
            # Two messages, each with the overhead that the engine reserves.
            octets=pl.col("octets") + pl.col("octets_around") + 2 * FRAME_TOKENS,
        )
        .join(cast.select("ballot_id", "prompt_tokens", known=True), on="ballot_id", how="left")
        .group_by("judge", "prompt", maintain_order=True)
        .agg(
            cast=pl.col("known").count(),
            calls=waits.sum(),
            characters=pl.col("characters").filter(waits).sum(),
            octets=pl.col("octets").filter(waits).sum(),
            longest=pl.col("octets").filter(waits).max(),
            characters_counted=pl.col("characters").filter(pl.col("prompt_tokens") > 0).sum(),
            tokens_counted=pl.col("prompt_tokens").sum(),
            votes_counted=(pl.col("prompt_tokens") > 0).sum(),
        )
        .sort("judge", "prompt")
    )
    prompts = ballots["prompt"].unique().to_list()
    return [
        _cost(row, prompts, reply_tokens.get((row["judge"], row["prompt"])))
        for row in asked.iter_rows(named=True)
    ]


def _lengths(pairs: DataFrame[Pairs], ballots: DataFrame[Ballots]) -> pl.DataFrame:
    """Return the size of the texts that each prompt shows of each pair."""
    found = []
    for prompt in ballots["prompt"].unique().sort():
        form = prompt_of(prompt)
        background = background_of(form)
        for side in SIDES:
            shown = ["question", *([side] if form.pointwise else SIDES), *background]
            texts = pl.col(shown).str
            found.append(
                pairs.select(
                    "pair_id",
                    prompt=pl.lit(prompt),
                    shown_first=pl.lit(side),
                    characters=pl.sum_horizontal(texts.len_chars()),
                    octets=pl.sum_horizontal(texts.len_bytes()),
                )
            )
    return pl.concat(found)


def _cost(row: dict[str, Any], prompts: list[str], reply_tokens: float | None) -> Cost:
    """Return the cost of the calls that a row counts; ``reply_tokens`` are those of a reply."""
    judge, calls = row["judge"], row["calls"]
    asked, simulated = JUDGES[judge], provider_of(judge).simulated
    known = row["votes_counted"] >= ENOUGH_REPLIES
    per_token = row["characters_counted"] / row["tokens_counted"] if known else CHARACTERS_PER_TOKEN
    tokens = round(row["characters"] / per_token)
    replies = round(calls * (expected_tokens(asked) if reply_tokens is None else reply_tokens))
    price = price_of(asked, simulated=simulated)
    usd = None if price is None else tokens * price.prompt + replies * price.completion
    most = 0.0 if simulated or not calls else None
    highest, reply = highest_price(asked, row["longest"]), most_tokens(asked)
    if most is None and highest is not None and (reply is not None or not highest.completion):
        most = row["octets"] * highest.prompt + calls * (reply or 0) * highest.completion
    unit = unit_name(judge, row["prompt"], prompts)
    return Cost(unit, row["cast"], calls, tokens, replies, usd, most, reply_tokens is not None)


def _show_costs(console: Printer, costs: list[Cost], study: Study) -> None:
    rows: list[tuple[Any, ...]] = [
        (*cost[:5], _usd([cost.usd]), _usd([cost.most_usd])) for cost in costs
    ]
    sums = [sum(row[column] for row in rows) for column in range(1, 5)]
    totals = _usd([cost.usd for cost in costs]), _usd([cost.most_usd for cost in costs])
    rows.append(("all", *sums, *totals))
    columns = ("judge", "cast", "calls", "tokens in", "out", "USD", "at most")
    print_rows(console, columns, rows, "Calls and cost")
    notes = (
        f"{explained(('cast', 'calls', 'at most'), 'plan')} Assumed: prompts and replies as in the "
        f"judge's earlier votes if there are {ENOUGH_REPLIES}, else {CHARACTERS_PER_TOKEN} "
        f"characters per token and {REPLY_TOKENS} tokens per reply ({THINKING_TOKENS} of judges "
        f"that reason or may use more than {thousands(SHORT_TOKENS)})."
    )
    if study.stop != "none" or study.probe:
        notes += " Early stopping may reduce the number of calls."
    print_line(console, notes, style="dim")


def _usd(costs: list[float | None]) -> str:
    total = _sum(costs)
    return "unknown" if total is None else usd(total)


def _sum(costs: list[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
