"""Judge: pairs to ballots, and ballots to votes."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.digests import content_keys
from schemas.judging import SIDES, Ballots, Judges, Pairs, Prompts, Votes
from schemas.keys import content_key, whole
from tasks.engine.journal import Reply
from tasks.engine.litellm_adapter import refused_params
from tasks.engine.worker_client import Session
from tasks.judging.rating_parser import Rated
from tasks.judging.turns import earlier_turn
from tasks.kit.random_numbers import uniform
from tasks.pair import BACKGROUND
from tasks.prompting.prompt import Prompt
from tasks.prompts import PROMPTS, REWORDED, label_of, prompt_of, variants_of
from tasks.providers import JUDGES, PROVIDERS, Judge, provider_of, usable_api_base

SHARD = 256
"""Ballots per task run: few enough to lose little in a crash, enough to limit overhead."""

REFUSED = {"content_filter", "refusal"}
ANCHOR, TARGET = (pl.lit(side) for side in SIDES)


REQUEST = ["provider", "model", "params", "request", "repeat", "wave"]
"""The columns that can change a reply, and no others."""


Messages = list[dict[str, str]]
Receive = Callable[[str, dict[str, Any] | None, str | None], None]
"""Callback with the judge, the vote as a row, and the error; one of the last two is None."""


class Design(NamedTuple):
    """How often and in which order each pair is shown; a single answer has no order."""

    votes_per_pair: int
    mode: str
    """``balanced``: both orders equally often; ``paper``: the order of each vote is random."""
    wave: str
    seed: int


def judge_table(judges: Sequence[str]) -> DataFrame[Judges]:
    """Return the frame of the named judges."""
    return Judges.of(
        pl.DataFrame(
            [
                {
                    **JUDGES[name].model_dump(include={"judge", "provider", "model", "system"}),
                    "params": _asked_with(JUDGES[name]),
                    "simulated": provider_of(name).simulated,
                }
                for name in judges
            ]
        )
    )


def _asked_with(judge: Judge) -> str:
    """Return, as JSON, how a judge is called: address, parameters, and how they are sent."""
    provider = PROVIDERS[judge.provider].provider
    address = usable_api_base(provider)
    where = {"api_base": address} if address else {}
    dropping = {"unsupported": "drop"} if judge.unsupported == "drop" else {}
    # Redundant if the parameters have a seed; simulated judges always get one.
    seeded = provider.repeat_as_seed and not provider.simulated and "seed" not in judge.params
    seeding = {"repeat_as_seed": True} if seeded else {}
    return json.dumps(whole({**judge.params, **where, **dropping, **seeding}), sort_keys=True)


def prompt_table(prompts: Sequence[str], *, reworded: bool = False) -> DataFrame[Prompts]:
    """Return the frame of the named judge prompts and, if ``reworded``, of their variants."""
    forms = {label_of(name): prompt_of(name) for name in prompts}
    for name in prompts if reworded else ():
        forms |= {f"{label_of(name)}{REWORDED}{v}": form for v, form in variants_of(name).items()}
    rows = [
        {
            **form.model_dump(include={"kind", "source", "system", "user"}),
            "prompt": label,
            "verdict": form.verdict_form,
            "digest": form.digest,
        }
        for label, form in forms.items()
    ]
    return Prompts.of(pl.DataFrame(rows))


def dropped_params(judges: Sequence[str], prompt: str) -> dict[str, list[str]]:
    """Return the unsupported parameters that are not sent, for judges that drop them."""
    dropping = [JUDGES[name] for name in judges if JUDGES[name].unsupported == "drop"]
    asked = [
        (judge.model, {**judge.params, **prompt_of(prompt).params, **_seed(judge, 0)})
        for judge in dropping
    ]
    refused = zip(dropping, refused_params(asked), strict=True)
    return {judge.judge: names for judge, names in refused if names}


def merge_dropped(found: Iterable[dict[str, list[str]]]) -> dict[str, list[str]]:
    """Return the unsupported parameters of each judge under any of several prompts."""
    names: dict[str, set[str]] = {}
    for each in found:
        for judge, dropped in each.items():
            names.setdefault(judge, set()).update(dropped)
    return {judge: sorted(dropped) for judge, dropped in names.items()}


def draw_ballots(
    pairs: DataFrame[Pairs],
    judges: DataFrame[Judges],
    prompt: str,
    design: Design,
    dropped: dict[str, list[str]] | None = None,
) -> DataFrame[Ballots]:
    """Draw the ballots of every judge, in balanced orders or with random positions as in the paper.

    Balanced: ``votes_per_pair / 2`` repeats in each order. Paper: the order of each vote is drawn
    from ``seed``, pair and judge. A ballot's id is a hash of all that can change the reply, so
    equal requests (a control pair seen from both sides) share one. Replicates ask the same as
    control, so their repeats continue its numbering and no vote serves both. The arm
    ``reworded`` is asked with the prompt's own variants only. ``dropped`` maps judges to the
    parameters that are not sent (``dropped_params``).

    A pointwise prompt shows the target alone, ``votes_per_pair`` times, and in control also the
    anchor, where there is one.
    """
    other = pl.col("arm") == "reworded"
    own = pairs.filter(~other | pl.col("perturbation").is_in([*variants_of(prompt)]))
    pairs = cast("DataFrame[Pairs]", own)
    if prompt_of(prompt).pointwise:
        slots = _counted_on(_alone(pairs, judges["judge"], design), pairs, design.votes_per_pair)
    else:
        # In mode `paper` all votes may have the same order.
        most = design.votes_per_pair // (1 if design.mode == "paper" else 2)
        slots = _counted_on(_slots(pairs["pair_id"], judges["judge"], design), pairs, most)
    sent = _sent(judges, prompt, dropped or {})
    forms = sent.select("system", "left_out").unique()
    asked = slots.join(sent, on="judge").join(
        _requests(pairs, prompt, forms), on=["pair_id", "shown_first", "system", "left_out"]
    )
    asked = asked.with_columns(prompt=pl.lit(label_of(prompt)), wave=pl.lit(design.wave))
    return Ballots.of(asked.with_columns(content_keys(asked, REQUEST).alias("ballot_id")))


def by_form(ballots: DataFrame[Ballots]) -> tuple[DataFrame[Ballots], DataFrame[Ballots]]:
    """Return the ballots whose prompt compares two answers, and those that show one."""
    names = [name for name in ballots["prompt"].unique() if prompt_of(name).pointwise]
    alone = pl.col("prompt").is_in(names)
    return Ballots.of(ballots.filter(~alone)), Ballots.of(ballots.filter(alone))


def shards(waiting: DataFrame[Ballots]) -> list[DataFrame[Ballots]]:
    """Split ballots into batches of one judge each, with every ballot_id once."""
    once = waiting.unique("ballot_id", maintain_order=True)
    return [
        Ballots.of(rows.slice(start, SHARD))
        for rows in once.partition_by("judge", maintain_order=True)
        for start in range(0, rows.height, SHARD)
    ]


async def cast_votes(
    ballots: DataFrame[Ballots], pairs: DataFrame[Pairs], session: Session, receive: Receive
) -> None:
    """Ask the judge of one batch; pass on each vote immediately, so that it can be stored."""

    async def cast(ballot: dict[str, Any], messages: Messages, params: dict[str, Any]) -> None:
        judge = JUDGES[ballot["judge"]]
        reply, cast_at, _ = await session.ask(judge, messages, params, ballot["ballot_id"])
        vote = None
        if reply.error is None:
            vote = vote_row(ballot["ballot_id"], ballot["prompt"], reply, cast_at)
        receive(ballot["judge"], vote, reply.error)

    await asyncio.gather(*(cast(*asked) for asked in askings(ballots, pairs)))


def askings(
    ballots: DataFrame[Ballots], pairs: DataFrame[Pairs]
) -> Iterator[tuple[dict[str, Any], Messages, dict[str, Any]]]:
    """Yield each ballot with its messages and the parameters that are added to its judge's."""
    asked = pairs.filter(pl.col("pair_id").is_in(ballots["pair_id"].implode()))
    rows = {row["pair_id"]: row for row in asked.iter_rows(named=True)}
    for ballot in ballots.iter_rows(named=True):
        pair, judge = rows[ballot["pair_id"]], JUDGES[ballot["judge"]]
        prompt = _worded(ballot["prompt"], pair)
        messages = _messages(prompt, pair, ballot["shown_first"], judge.system)
        params = {**prompt.params, **_seed(judge, ballot["repeat"])}
        if PROVIDERS[judge.provider].provider.simulated:
            params |= {"wave": ballot["wave"], **_shown(prompt, ballot, pair)}
        yield ballot, messages, params


def _messages(
    prompt: Prompt, pair: dict[str, Any], shown_first: str, before: str
) -> list[dict[str, str]]:
    texts = (pair["question"], *_in_order(pair, shown_first))
    reference, context = (pair.get(name) for name in BACKGROUND)
    earlier = earlier_turn(pair, shown_first)
    return prompt.messages(*texts, before, reference=reference, context=context, earlier=earlier)


def _shown(prompt: Prompt, ballot: dict[str, Any], pair: dict[str, Any]) -> dict[str, Any]:
    """Return what a simulated judge gets beside the messages.

    It finds the texts of pairs in the bundled wordings, and in no others.
    """
    texts = [pair["question"], *_in_order(pair, ballot["shown_first"])]
    if prompt.pointwise:
        grading = prompt.grading.model_dump(mode="json")
        reference = pair.get("reference")
        return {"shown": {"texts": texts[:2], "reference": reference, "grading": grading}}
    if ballot["prompt"] in PROMPTS:
        return {}
    return {"shown": {"texts": texts, "replies": prompt.replies}}


def vote_row(ballot_id: str, prompt: str, reply: Reply, cast_at: datetime | None) -> dict[str, Any]:
    """Read the choice or rating in a reply; a reply without one is an invalid vote, kept."""
    refused = reply.finish_reason in REFUSED
    rated = Rated("abstain", {}) if refused else prompt_of(prompt).rate(reply.text)
    return {
        "ballot_id": ballot_id,
        "choice": rated.choice,
        "rating": rated.as_json,
        "raw": reply.text,
        **{k: v for k, v in reply._asdict().items() if k not in {"text", "error"}},
        "cast_at": cast_at or datetime.now(UTC),
    }


def vote_frame(rows: Sequence[dict[str, Any]]) -> DataFrame[Votes]:
    """Return votes given as rows as a frame."""
    return Votes.of(pl.DataFrame(rows, schema=Votes.dtypes())) if rows else Votes.empty()


def _slots(pairs: pl.Series, judges: pl.Series, design: Design) -> pl.DataFrame:
    """Cross pairs and judges with the orders and repeats in which each pair is shown."""
    votes = design.votes_per_pair
    everyone = judges.to_frame().join(pairs.to_frame(), how="cross")
    if design.mode == "paper":
        asked = everyone.join(pl.DataFrame({"repeat": range(votes)}), how="cross")
        sides = [
            SIDES[uniform(design.seed, "position", pair_id, judge, repeat) < 0.5]
            for judge, pair_id, repeat in asked.iter_rows()
        ]
        # As with balanced orders, repeats are numbered within each order.
        placed = asked.with_columns(pl.Series("shown_first", sides, pl.String))
        within = pl.int_range(pl.len()).over("judge", "pair_id", "shown_first")
        return placed.with_columns(repeat=within)
    if votes % 2:
        raise ValueError(
            f"votes_per_pair ({votes}) must be even when orders are balanced. "
            "Take an even number, or mode 'paper'."
        )
    repeats = pl.DataFrame({"repeat": range(votes // 2)})
    return everyone.join(repeats, how="cross").join(
        pl.DataFrame({"shown_first": SIDES}), how="cross"
    )


def _alone(pairs: DataFrame[Pairs], judges: pl.Series, design: Design) -> pl.DataFrame:
    """Cross judges with the answers that are shown alone, and with their repeats."""
    rated = pl.col("arm").cast(pl.String) == "control"
    anchors = pairs.filter(rated & (pl.col("anchor") != "")).select("pair_id", shown_first=ANCHOR)
    answers = pl.concat([pairs.select("pair_id", shown_first=TARGET), anchors])
    repeats = pl.DataFrame({"repeat": range(design.votes_per_pair)})
    return judges.to_frame().join(answers, how="cross").join(repeats, how="cross")


def _counted_on(slots: pl.DataFrame, pairs: DataFrame[Pairs], first: int) -> pl.DataFrame:
    """Let the repeats of replicates continue the numbering of control, from ``first``."""
    again = pairs.filter(pl.col("arm") == "replicate")["pair_id"]
    return slots.with_columns(
        pl.col("repeat")
        + pl.when(pl.col("pair_id").is_in(again.implode())).then(first).otherwise(0)
    )


def _sent(judges: DataFrame[Judges], prompt: str, dropped: dict[str, list[str]]) -> pl.DataFrame:
    """Return the parameters sent to each judge, and the prompt's parameters left out."""
    rows = judges.select("judge", "params").rows()
    theirs = prompt_of(prompt).params
    left_out = [json.dumps(sorted({*theirs} & {*dropped.get(name, ())})) for name, _ in rows]
    return judges.select(
        "judge",
        "provider",
        "model",
        "system",
        params=pl.Series(
            [_without(params, dropped.get(name, [])) for name, params in rows], dtype=pl.String
        ),
        left_out=pl.Series(left_out, dtype=pl.String),
    )


def _without(params: str, dropped: list[str]) -> str:
    """Remove parameters that are not sent; judges that drop nothing keep their cache key."""
    settings = json.loads(params)
    if settings.get("unsupported") != "drop":
        return params
    gone = {"unsupported", *dropped, *(["repeat_as_seed"] if "seed" in dropped else [])}
    return json.dumps({k: v for k, v in settings.items() if k not in gone}, sort_keys=True)


def _requests(pairs: DataFrame[Pairs], prompt: str, forms: pl.DataFrame) -> pl.DataFrame:
    """Hash the full prompt of each pair in each order, for each combination that judges need."""
    form, variants = prompt_of(prompt), variants_of(prompt)
    asked = []
    for system, left_out in forms.rows():
        added = {k: v for k, v in whole(form.params).items() if k not in json.loads(left_out)}
        asked.append((system, left_out, [added] if added else []))
    rows = [
        (
            pair["pair_id"],
            side,
            system,
            left_out,
            content_key(_messages(worded, pair, side, system), *added, *form.reading),
        )
        for system, left_out, added in asked
        for pair in pairs.iter_rows(named=True)
        for worded in [variants[pair["perturbation"]] if pair["arm"] == "reworded" else form]
        for side in SIDES
    ]
    columns = ("pair_id", "shown_first", "system", "left_out", "request")
    schema = dict.fromkeys(columns, pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _worded(prompt: str, pair: dict[str, Any]) -> Prompt:
    """Return the prompt of a ballot, in the words of its pair's variant if it has one."""
    if pair["arm"] != "reworded":
        return prompt_of(prompt)
    return variants_of(prompt)[pair["perturbation"]]


def _in_order(pair: dict[str, Any], shown_first: str) -> tuple[str, str]:
    other = {"anchor": "target", "target": "anchor"}[shown_first]
    return pair[shown_first], pair[other]


def _seed(judge: Judge, repeat: int) -> dict[str, int]:
    """Return a different seed for each repeat: with one seed, repeats are copies of one vote."""
    provider = PROVIDERS[judge.provider].provider
    seeded = provider.repeat_as_seed or provider.simulated or "seed" in judge.params
    return {"seed": judge.params.get("seed", 0) + repeat} if seeded else {}
