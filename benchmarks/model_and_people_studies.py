"""Studies of simulated models that compete, and of people who label: draw, compute estimates."""

import numpy as np
import polars as pl

from benchmarks.judge_studies import Design, Judge, alike, drawn, frames, in_one_order, measured
from schemas.judging import FORMATS, SIDES, Contests
from schemas.results import Annotations
from tasks.counting.contests import match_models
from tasks.counting.verdicts import tally_votes

MARKUP = {"header": 1, "list": 2, "bold": 1, "other": 1}
"""Mean markup of an anchor; a target has the same mean, and each kind in this proportion."""

CHANCE = 0.5
"""Probability that people label a contest of a question."""


def contests_of(
    judge: Judge, design: Design, studies: int, seed: int, *, one_order: bool = False
) -> pl.DataFrame:
    """Return contests of "bee" and of "cat" with "ant" on each question, half of them labelled.

    With ``one_order`` the judge saw each of them in one order only, drawn at random.
    """
    found = []
    random = np.random.default_rng(seed)
    questions = None
    for at, model in enumerate(("bee", "cat")):
        seeds = [seed + 10 * at, seed + 10 * at + 1]
        judged, person = (
            drawn(judge, design, studies, one, votes=2, gap_seed=seeds[0] + 7)
            .filter(arm="control")
            .with_columns(anchor_author=pl.lit("ant"), target_author=pl.lit(model))
            for one in seeds
        )
        if one_order:
            judged = in_one_order(judged, seeds[0] + 3)
        judged, person = (match_models(frames(log)["tallies"]) for log in (judged, person))
        scores = person.select("judge", "sample", human_score="score")
        rows = judged.drop("human_score").join(
            scores, on=["judge", "sample"], maintain_order="left"
        )
        if questions is None:
            questions = rows.select("judge", "cluster").unique(maintain_order=True)
            chosen = pl.Series(random.random(questions.height) < CHANCE)
            questions = questions.with_columns(labelled=chosen)
        better = 2 * rows["human_score"].to_numpy() - 1
        longer = 300 * (random.standard_normal(rows.height) + better)
        markup = random.poisson(5, rows.height)
        split = np.random.default_rng([seed, at]).multinomial(
            markup, np.array([*MARKUP.values()]) / 5
        )
        found.append(
            rows.join(questions, on=["judge", "cluster"], maintain_order="left").with_columns(
                sample=pl.concat_str(pl.lit(f"{model}/"), "sample"),
                anchor_length=pl.lit(2000),
                target_length=pl.Series(np.maximum(2000 + longer, 1).astype(np.int64)),
                anchor_markup=pl.lit(5),
                target_markup=pl.Series(markup),
                **{f"anchor_{kind}": pl.lit(MARKUP[kind]) for kind in FORMATS},
                **{f"target_{kind}": pl.Series(split[:, i]) for i, kind in enumerate(FORMATS)},
                human_score=pl.when("labelled").then("human_score"),
                label_chance=pl.lit(CHANCE),
            )
        )
    return Contests.of(pl.concat(found))


def contest(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask two votes a contest: win rates, and what corrects them by labels."""
    names = ("win_rate", "ppi", "rogan_gladen")
    # With one cluster, all or nothing would be labelled.
    design = design._replace(clusters=max(design.clusters, 20))
    rows = measured(names, "judge", contests=contests_of(judge, design, studies, seed))
    return rows.filter(pl.col("subgroup").is_in(["bee", "bee vs cat"]))


def once(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask one vote a contest, in an order drawn at random: win rates from both halves."""
    contests = contests_of(judge, design, studies, seed, one_order=True)
    rows = measured(("win_rate",), "judge", contests=contests)
    return rows.filter(pl.col("subgroup").is_in(["bee", "bee vs cat"]))


def sharp(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask a judge that tells far more of the answers, as do the people, for ``rogan_gladen``."""
    seeing = judge._replace(traits=judge.traits.model_copy(update={"omega": 6.0, "nu": 0.1}))
    design = design._replace(clusters=max(design.clusters, 20))
    rows = measured(("rogan_gladen",), "judge", contests=contests_of(seeing, design, studies, seed))
    return rows.filter(pl.col("subgroup").is_in(["bee", "bee vs cat"]))


def style(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Measure the same contests with style held equal, by bootstrap with refit.

    And again with all markup in one count, for the row of it.
    """
    names = ("length_controlled", "style_controlled")
    contests = contests_of(judge, design, studies, seed)
    unknown = [f"{side}_{kind}" for side in SIDES for kind in FORMATS]
    whole = contests.with_columns(pl.lit(None, dtype=pl.Int64).alias(name) for name in unknown)
    again = measured(names[1:], "judge", contests=Contests.of(whole))
    rows = pl.concat(
        [measured(names, "judge", contests=contests), again.filter(statistic="markup_effect")]
    )
    return rows.filter(pl.col("subgroup").is_in(["bee", ""]))


def decision(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask how much of a win a judge's pull to longer answers can have made.

    The bound is read as the end of an interval that begins at 0, of shift times share.
    """
    design = design._replace(clusters=max(design.clusters, 20))
    log = drawn(judge, design, studies, seed + 50, votes=2, perturbation="padding")
    rows = measured(
        ("decision_check", "mps_sham"),
        "judge",
        shifts=frames(log)["shifts"],
        contests=contests_of(judge, design, studies, seed),
    )
    shift = rows.filter(pl.col("statistic") == "mps_sham")
    mine = rows.filter(pl.col("statistic") == "bias_bound", pl.col("subgroup") == "ant vs bee")
    return (
        mine.join(shift.select("study", part=pl.col("estimate") / pl.col("high")), on="study")
        .with_columns(low=pl.lit(0.0), high=pl.col("estimate"), level=pl.lit(0.95))
        .with_columns(estimate=pl.col("high") * pl.col("part"))
        .drop("part")
    )


def selves(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask three judges about pairs with an answer by the first judge."""
    log = alike([judge] * 3, design, studies, seed).filter(arm="control")
    log = log.with_columns(
        judge=pl.col("judge").replace({"a": "ant"}),
        anchor_author=pl.lit("bee"),
        target_author=pl.lit("ant"),
    )
    contests = match_models(frames(log)["tallies"]).with_columns(simulated=pl.lit(value=False))
    return measured(("self_score_error",), "dataset", contests=Contests.of(contests))


def people(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Compare a judge with three people, two votes each, on the same pairs."""
    rows, given = [], {}
    for at, name in enumerate(("judge", "Ann", "Bob", "Cat")):
        log = drawn(judge, design, studies, seed + at, votes=2, gap_seed=seed + 7)
        given[name] = frames(log.filter(arm="control"))["tallies"]
        verdicts = tally_votes(given[name], "balanced").drop_nulls("verdict")
        human = name != "judge"
        rows.append(
            verdicts.select(
                "cluster",
                dataset="judge",
                item="sample",
                annotator=pl.lit(name),
                label="verdict",
                prompt=pl.lit(None if human else "p", dtype=pl.String),
                wave=pl.lit(""),
                value=pl.col("verdict").replace_strict(
                    {"anchor": -1.0, "tie": 0.0, "target": 1.0}, return_dtype=pl.Float64
                ),
                inconsistent=pl.lit(value=False),
                votes=pl.lit(2),
                human=pl.lit(human),
                simulated=pl.lit(value=True),
            )
        )
    names = (
        "agreement",
        "gwet_ac1",
        "fleiss_kappa",
        "krippendorff_alpha",
        "mt_bench_agreement",
        "noise_ceiling",
        "gap_agreement",
    )
    found = measured(names, "dataset", annotations=Annotations.of(pl.concat(rows)))
    agreement = found.filter(
        pl.col("subgroup").is_in(["", "Ann", "humans"]), pl.col("judge") != "Bob"
    )
    return pl.concat([agreement, measured(("order_kappa",), "judge", tallies=given["judge"])])
