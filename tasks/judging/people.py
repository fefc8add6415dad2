"""People as judges: what each voter is shown, in which order, and their votes as a log.

A person sees a pair once, so in one order: the same in all arms of a sample, that a liking for a
slot may cancel out of its shift, and the other one for the next voter.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import Voters
from schemas.judging import SIDES, VALID, Ballots, Judges, Pairs, Prompts, VoteLog, Votes
from schemas.keys import PEOPLE, content_key
from schemas.results import Findings
from tasks.aggregate import text_sizes
from tasks.kit.defaults import DEFAULTS
from tasks.kit.random_numbers import shuffle, uniform
from tasks.prompting.prompt import wording_digest
from tasks.validation.unknown_names import unknown

ASKED_ARMS = ("control", "experimental", "sham")
QUESTION = "Which answer is better?"
CHOSEN = {"Answer 1": "first", "Answer 2": "second", "Tie": "tie", "Not familiar": "abstain"}
"""The label of a button, and its choice."""

PROMPT = {
    "prompt": "booth_v1",
    "kind": "pair",
    "verdict": "button",
    "system": "",
    "source": "the page of `voirdire booth`; the buttons are those of arXiv 2402.10669",
    "user": f"{QUESTION}\n\n{{question}}\n\n{{answer_a}}\n\n{{answer_b}}\n\n{' / '.join(CHOSEN)}",
}
"""What a person is asked, as a judge prompt."""

TIMED, UNTIMED = "timed", "untimed"
"""Value of ``finish_reason``: the vote's seconds were measured, or not."""


class Programme(NamedTuple):
    """What voters are to be shown of a study."""

    arms: tuple[str, ...] = ASKED_ARMS
    perturbations: tuple[str, ...] = ()
    """Perturbations to show; if empty, all."""
    limit: int | None = None
    """At most so many ballots each; never a part of a sample's arms, unless ``once``."""
    once: bool = False
    """Each sample once per voter, its arm rotating over voters: no shifts, more samples."""
    seed: int = 0


class Draw(NamedTuple):
    """The ballots of one voter."""

    ballots: DataFrame[Ballots]
    order: list[str]
    """Their ids as they are to be shown."""


def judge_of(voter: str) -> str:
    """Name a voter as a judge: people/ann."""
    return f"{PEOPLE}/{voter}"


def people_table(judges: Sequence[str]) -> DataFrame[Judges]:
    """Return the frame of judges who are people."""
    columns = {
        "provider": PEOPLE,
        "model": "person",
        "params": "{}",
        "system": "",
        "simulated": False,
    }
    return Judges.of(pl.DataFrame([{"judge": judge, **columns} for judge in judges]))


def people_prompt() -> DataFrame[Prompts]:
    """Return what people are asked, as a frame of one judge prompt."""
    wording = [PROMPT[name] for name in ("kind", "verdict", "system", "user")]
    return Prompts.of(pl.DataFrame([{**PROMPT, "digest": wording_digest(*wording)}]))


def both_orders(pairs: DataFrame[Pairs], judge: str) -> DataFrame[Ballots]:
    """Return the ballots of a person for each pair, in either order.

    An id is the key of person, wording and texts: who has judged a pair in one study has judged it
    in all.
    """
    shown = pairs.filter(pl.col("arm").is_in(ASKED_ARMS))
    texts = shown.select("pair_id", "question", *SIDES).iter_rows()
    rows = [
        (content_key(PEOPLE, judge, PROMPT["user"], question, *answers), pair_id, judge, side)
        for pair_id, question, anchor, target in texts
        for side, answers in (("anchor", (anchor, target)), ("target", (target, anchor)))
    ]
    names = ("ballot_id", "pair_id", "judge", "shown_first")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    return Ballots.of(
        frame.with_columns(prompt=pl.lit(PROMPT["prompt"]), wave=pl.lit(""), repeat=pl.lit(0))
    )


def draw_for(
    pairs: DataFrame[Pairs],
    judge: str,
    number: int,
    programme: Programme,
    voted: DataFrame[Ballots] | None = None,
) -> Draw:
    """Draw the ballots of one voter, the voter of this ``number``.

    All voters see the same samples, so that they can be compared. Within a limit, each sample comes
    with one perturbation first (the next sample with the next), then with another. The ballots of a
    sample lie as far apart as they can. A sample with a pair in ``voted`` keeps the order in which
    that was shown.
    """
    chosen = _chosen(pairs, number, programme)
    at = {sample: i for i, sample in enumerate(_samples(pairs, programme.seed))}
    seen = {} if voted is None else dict(voted.select("pair_id", "shown_first").iter_rows())
    # A study may have grown since: what is new of a sample is shown as the rest of it was.
    samples = dict(pairs.select("pair_id", "sample").iter_rows())
    begun = {samples[pair]: side for pair, side in seen.items() if pair in samples}
    sides = {
        pair["pair_id"]: seen.get(pair["pair_id"])
        or begun.get(pair["sample"])
        or SIDES[(at[pair["sample"]] + number) % 2]
        for pair in chosen
    }
    wanted = pl.DataFrame(
        list(sides.items()),
        schema=dict.fromkeys(("pair_id", "shown_first"), pl.String),
        orient="row",
    )
    ballots = both_orders(pairs, judge).join(wanted, on=["pair_id", "shown_first"], how="semi")
    ids = dict(ballots.select("pair_id", "ballot_id").iter_rows())
    # Arms with the same texts are one ballot.
    order = dict.fromkeys(ids[pair_id] for pair_id in _spread(chosen, judge, programme.seed))
    return Draw(Ballots.of(ballots), list(order))


def require_shown(pairs: DataFrame[Pairs], programme: Programme) -> None:
    """Refuse to show nothing, or less than a sample.

    A LookupError names what there is, a ValueError the options that leave nothing.
    """
    known = pairs["perturbation"].drop_nulls().unique().sort().to_list()
    for name in programme.perturbations:
        if name not in known:
            raise unknown("perturbation", name, known, where="in the study")
    if not _chosen(pairs, 0, programme):
        arms, names = (", ".join(each) for each in (programme.arms, programme.perturbations))
        raise ValueError(
            f"no pair is left to show (arms: {arms or 'none'}; perturbations: {names or 'all'}). "
            "Choose other --arms or --perturbation. An option that is not given keeps its value "
            "of the last start."
        )


def log_people(
    pairs: DataFrame[Pairs],
    ballots: DataFrame[Ballots],
    votes: DataFrame[Votes],
    *,
    prompt: str,
    wave: str,
    too_fast_seconds: float,
) -> DataFrame[VoteLog]:
    """Join the votes of people to their pairs, under the prompt and wave of the judges.

    So they stand in one table with the judges of a study. Who was faster than ``too_fast_seconds``
    has not read: that vote is invalid, unless it says that the subject is not familiar, which a
    glance at the question may tell. The page measures the time, a file of votes may not.

    Votes on a control pair give its ``human_score``, the mean over people, with the share of pairs
    that have one as ``label_chance``: voters see the samples in random order (unless the booth was
    limited to some perturbations). A file of votes may hold chosen pairs, so it has no chance.
    """
    timed = (pl.col("finish_reason") == TIMED) & (pl.col("choice") != "abstain")
    hasty = timed & (pl.col("seconds") < too_fast_seconds)
    cast = votes.select("ballot_id", "choice", "seconds", "finish_reason")
    log = (
        ballots.join(cast, on="ballot_id")
        .drop("ballot_id")
        .join(pairs.select(pl.exclude("question", *SIDES), *text_sizes()), on="pair_id")
        .with_columns(
            choice=pl.when(hasty).then(pl.lit("invalid")).otherwise("choice"),
            prompt=pl.lit(prompt),
            wave=pl.lit(wave),
            human=pl.lit(value=True),
            simulated=pl.lit(value=False),
        )
    )
    scores = _scores_of_pairs(log, pairs)
    return VoteLog.of(log.join(scores, on=["dataset", "sample", "arm"], how="left"))


def _scores_of_pairs(log: pl.DataFrame, pairs: DataFrame[Pairs]) -> pl.DataFrame:
    """Return the mean score of the people who voted on a control pair, and the share of pairs."""
    place = ["dataset", "sample", "arm"]
    for_target = (pl.col("choice") == "first") == (pl.col("shown_first") == "target")
    score = pl.when(pl.col("choice") == "tie").then(0.5).otherwise(for_target.cast(pl.Float64))
    control = pl.col("arm") == "control"
    samples = pairs.filter(control).group_by("dataset").agg(all=pl.col("sample").n_unique())
    return (
        log.filter(control, pl.col("choice").is_in(VALID))
        .group_by(*place, "judge")
        .agg(score.mean().alias("score"), timed=(pl.col("finish_reason") == TIMED).all())
        .group_by(place)
        .agg(human_score=pl.col("score").mean(), timed=pl.col("timed").all())
        .join(samples, on="dataset")
        .with_columns(
            label_chance=pl.when(pl.col("timed").all().over("dataset")).then(
                pl.len().over("dataset") / pl.col("all")
            )
        )
        .drop("timed", "all")
    )


def voters(
    log: DataFrame[VoteLog],
    pairs: DataFrame[Pairs],
    ballots: DataFrame[Ballots],
    votes: DataFrame[Votes],
) -> DataFrame[Voters]:
    """Count the votes of people by arm and perturbation, with those left out and why.

    An invalid vote whose time the page measured was too fast. A file of votes has neither ballots
    nor times, so nobody knows why one of its votes is invalid.
    """
    item = ("dataset", "sample", "arm", "perturbation", "judge", "shown_first")
    measured = pl.when(pl.col("finish_reason") == TIMED).then("seconds")
    timed = (
        ballots.join(votes.select("ballot_id", "seconds", "finish_reason"), on="ballot_id")
        .join(pairs, on="pair_id")
        .select(*item, measured.alias("seconds"), cast=pl.lit(value=True))
        .unique()
    )
    choice = pl.col("choice")
    too_fast = ((choice == "invalid") & pl.col("seconds").is_not_null()).sum()
    return Voters.of(
        log.join(timed, on=item, how="left", nulls_equal=True)
        .group_by("dataset", "judge", "arm", "perturbation")
        .agg(
            votes=pl.len(),
            counted=choice.is_in(VALID).sum(),
            too_fast=pl.when(pl.col("cast").any()).then(too_fast),
            not_familiar=(choice == "abstain").sum(),
            median_seconds=pl.col("seconds").median(),
        )
    )


def with_open_ballots(
    findings: DataFrame[Findings], open_ballots: pl.DataFrame
) -> DataFrame[Findings]:
    """Replace the reason why a person has no finding by the result of :func:`open_ballots`."""
    waiting = pl.col("judge").str.starts_with(f"{PEOPLE}/") & pl.col("finding").is_null()
    rows = findings.join(open_ballots, on=["judge", "dataset", "perturbation"], how="left")
    return Findings.of(
        rows.with_columns(
            reason=pl.when(waiting).then(pl.coalesce("open", "reason")).otherwise("reason")
        )
    )


def open_ballots(
    pairs: DataFrame[Pairs], log: DataFrame[VoteLog], fewest: int = DEFAULTS.fewest_questions
) -> pl.DataFrame:
    """Describe how many questions each person has completed per perturbation, and what is missing.

    ``pairs`` are what people may be shown in the study, ``log`` their votes, ``fewest`` the
    questions that a finding takes. Columns: ``judge, dataset, perturbation, open``, the last a
    sentence.
    """
    cell = ["dataset", "perturbation"]
    asked = pairs.filter(pl.col("arm").is_in(ASKED_ARMS)).select(*cell, "sample", "cluster", "arm")
    of_perturbation = asked.filter(pl.col("perturbation").is_not_null())
    # A vote on the control pair serves every perturbation of the sample.
    control = of_perturbation.with_columns(arm=pl.lit("control")).unique()
    votes = log.filter(pl.col("choice").is_in(VALID)).with_columns(voted=True)
    key = ["judge", "dataset", "sample", "arm"]
    cast = votes.select(*key, "perturbation", "voted").unique()
    versions = pl.concat([of_perturbation, control]).join(log.select("judge").unique(), how="cross")
    samples = (
        versions.join(cast, on=[*key, "perturbation"], how="left", nulls_equal=True)
        .join(cast.filter(arm="control").drop("perturbation"), on=key, how="left", suffix="_once")
        .with_columns(voted=pl.coalesce("voted", "voted_once").fill_null(value=False))
        .group_by("judge", *cell, "cluster", "sample")
        .agg(missing=(~pl.col("voted")).sum(), begun=pl.col("voted").any())
        .sort("missing")
        # The most complete sample of a question counts.
        .group_by("judge", *cell, "cluster", maintain_order=True)
        .first()
    )
    counts = samples.group_by("judge", *cell).agg(
        complete=(pl.col("missing") == 0).sum(),
        begun=(pl.col("begun") & (pl.col("missing") > 0)).sum(),
        ballots=pl.col("missing").sort().head(fewest).sum(),
        questions=pl.len(),
    )
    short = pl.format("; the study has only {} questions", "questions")
    more = pl.format("; at least {} more ballots", "ballots")
    sentence = pl.format(
        f"{{}} of {fewest} questions complete, {{}} begun: a shift takes this person's "
        "votes on every version of an answer{}",
        "complete",
        "begun",
        pl.when(pl.col("questions") < fewest).then(short).otherwise(more),
    )
    return counts.select("judge", *cell, open=sentence)


def _samples(pairs: pl.DataFrame, seed: int) -> list[str]:
    """Return all samples in the order in which a limit takes them, the same for all voters."""
    return sorted(pairs["sample"].unique(), key=lambda sample: uniform(seed, "booth", sample))


def _chosen(pairs: pl.DataFrame, number: int, programme: Programme) -> list[dict[str, Any]]:
    shown = pairs.filter(pl.col("arm").is_in(programme.arms))
    if programme.perturbations:
        named = pl.col("perturbation").is_in(programme.perturbations)
        asked = shown.filter(named)
        # Control pairs have no perturbation: alone, they are those of its samples.
        of_named = (pairs.filter(named) if asked.is_empty() else asked)["sample"].unique()
        shown = shown.filter(
            named | (pl.col("perturbation").is_null() & pl.col("sample").is_in(of_named.implode()))
        )
    rows = shown.select("pair_id", "sample", "arm", "perturbation").sort(
        "perturbation", "arm", nulls_last=False
    )
    by_sample: dict[str, list[dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        by_sample.setdefault(row["sample"], []).append(row)
    samples = [s for s in _samples(pairs, programme.seed) if s in by_sample]
    if programme.once:
        kept = [_rotated(by_sample[s], i + number) for i, s in enumerate(samples)]
        return kept[: programme.limit]
    chosen: dict[str, dict[str, Any]] = {}
    for unit in _units(samples, by_sample):
        more = chosen | {row["pair_id"]: row for row in unit}
        if programme.limit and len(more) > programme.limit:
            if not chosen:
                raise ValueError(
                    f"limit ({programme.limit}) is below the {len(more)} ballots of one sample "
                    f"(control, and the arms of a perturbation). The smallest is --limit "
                    f"{len(more)}; with --once, which shows one ballot of each sample, it is 1."
                )
            break
        chosen = more
    return list(chosen.values())


def _rotated(rows: list[dict[str, Any]], turn: int) -> dict[str, Any]:
    """Return one pair of a sample: each arm in its turn, and in each arm each perturbation."""
    arms = sorted({row["arm"] for row in rows})
    of_arm = [row for row in rows if row["arm"] == arms[turn % len(arms)]]
    return of_arm[turn // len(arms) % len(of_arm)]


def _units(
    samples: list[str], by_sample: dict[str, list[dict[str, Any]]]
) -> Iterator[list[dict[str, Any]]]:
    """Yield rows that belong together, control and one perturbation's arms: samples in turns."""
    arms: dict[str, dict[str | None, list[dict[str, Any]]]] = {}
    for sample in samples:
        found = arms.setdefault(sample, {})
        for row in by_sample[sample]:
            found.setdefault(row["perturbation"], []).append(row)
    rounds = max((len(found) for found in arms.values()), default=0)
    for turn in range(rounds):
        for index, sample in enumerate(samples):
            control = arms[sample].get(None, [])
            names = [name for name in arms[sample] if name is not None]
            if turn < len(names):
                yield control + arms[sample][names[(index + turn) % len(names)]]
            elif turn == 0:
                yield control


def _spread(chosen: list[dict[str, Any]], judge: str, seed: int) -> list[str]:
    """Order pairs so that pairs of one sample are far apart, differently for each voter."""
    by_sample: dict[str, list[str]] = {}
    for row in chosen:
        by_sample.setdefault(row["sample"], []).append(row["pair_id"])
    placed = []
    for sample, pair_ids in by_sample.items():
        start = uniform(seed, "start", judge, sample)
        mixed = shuffle(sorted(pair_ids), seed, "arms", judge, sample)
        placed += [((start + i) / len(mixed), pair_id) for i, pair_id in enumerate(mixed)]
    return [pair_id for _, pair_id in sorted(placed)]
