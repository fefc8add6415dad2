"""Studies of simulated judges on perturbed answers: draw votes, compute estimates."""

from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks.simulated_votes import PRESETS, Kind, simulate
from schemas.results import Estimates
from tasks.inference.bootstrap import formulas_only
from tasks.results import counted_votes
from tasks.simulation.traits import Traits
from tasks.statistics import STATISTICS

WANTED: list[str] = []
"""Statistics to measure, if not all of a recipe."""

BY_FORMULA: list[str] = []
"""Statistics to measure without bootstrap and permutation."""


class Judge(NamedTuple):
    """A simulated judge, and what is planted."""

    traits: Traits
    kind: Kind = "promote"
    beta: float = 0.0


class Design(NamedTuple):
    """How large a study is; samples of a cluster share so much of the variance of their gaps."""

    items: int
    clusters: int
    shared: float


DESIGNS = {"142": Design(142, 142, 0.0), "20 x 8": Design(160, 20, 0.5)}
GIANT = Design(20_000, 1, 0.0)
"""Its mean over GIANTS studies is what an interval should hold: no cluster matters to a mean."""

GIANTS = 10
QUIET = {
    "psi 0": Judge(Traits(omega=1.5, nu=0.5)),
    "psi 1": Judge(Traits(omega=1.5, nu=0.5, psi=1.0)),
}
PLANTED = {name: Judge(*preset) for name, preset in PRESETS.items()}


def drawn(
    judge: Judge, design: Design, studies: int, seed: int, *, votes: int = 6, **more: Any
) -> pl.DataFrame:
    """Return the votes of many studies, each of a judge of its own."""
    return simulate(
        judge.traits,
        kind=judge.kind,
        beta=judge.beta,
        items=design.items,
        votes=votes,
        seed=seed,
        clusters=design.clusters,
        shared=design.shared,
        studies=studies,
        judge="s",
        **more,
    )


def frames(log: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Count votes and lay arms side by side."""
    counted = counted_votes(log, "balanced")  # checked when it was simulated
    return {"tallies": counted.tallies, "shifts": counted.shifts}


def in_one_order(log: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Keep one vote of each pair, in an order drawn at random."""
    lot = pl.Series("lot", np.random.default_rng(seed).random(log.height))
    most = pl.col("lot").max().over("judge", "sample")
    return log.with_columns(lot).filter(pl.col("lot") == most).drop("lot")


def measured(names: tuple[str, ...], study: str, **given: pl.DataFrame) -> pl.DataFrame:
    """Apply statistics; the column ``study`` is what tells studies apart."""
    found = [Estimates.empty()]
    for name in names:
        if not WANTED or name in WANTED:
            with formulas_only() if name in BY_FORMULA else nullcontext():
                found.append(STATISTICS[name].draft(**given))
    rows = pl.concat(found)
    return rows.with_columns(study=pl.col(study), **{study: pl.lit("")} if study == "judge" else {})


def audit(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask six votes an arm, and the replicate."""
    names = (
        "asr",
        "dasr",
        "mps",
        "mps_sham",
        "sham_shift",
        "unanimous_rate",
        "los",
        "net_flips",
        "replicate_floor",
        "excess_conflict",
        "first_pick_share",
        "position_consistency",
        "position_effect",
        "repetition_stability",
        "swap_protocol",
        "tie_rate",
    )
    given = frames(drawn(judge, design, studies, seed, replicates=True))
    return measured(names, "judge", **given)


def spread(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask six votes an arm about questions of two categories."""
    half = pl.col("cluster").str.slice(-1).is_in(["0", "2", "4", "6", "8"])
    log = drawn(judge, design, studies, seed).with_columns(
        category=pl.when(half).then(pl.lit("even")).otherwise(pl.lit("odd"))
    )
    rows = measured(("heterogeneity", "category_shift"), "judge", **frames(log))
    return rows.filter(pl.col("statistic") != "category_shift")


def oversight(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask six votes an arm about a perturbation that makes the target worse."""
    given = frames(drawn(judge._replace(kind="detract"), design, studies, seed))
    return measured(("asr", "dasr", "detection_power"), "judge", **given)


def attrition(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask two votes an arm, every tenth of them invalid; a person says who is right."""
    log = labelled(careless(judge), judge, design, studies=studies, seed=seed, votes=2)
    return measured(("attrition", "validity", "accuracy"), "judge", **frames(log))


def labels(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask six votes an arm on two nights, every tenth of them invalid; a person says who is right.

    What holds for one night holds for the second.
    """
    log = nights(labelled(careless(judge), judge, design, studies=studies, seed=seed, votes=12))
    names = ("accuracy_change", "lenient_consistency", "repetition_stability", "drift")
    rows = measured(names, "judge", **frames(log))
    return rows.filter(pl.col("wave").cast(pl.String) == "n1")


def careless(judge: Judge) -> Judge:
    """Return the judge with every tenth vote invalid."""
    return judge._replace(traits=judge.traits.model_copy(update={"iota": 0.1}))


def labelled(
    judge: Judge, person: Judge, design: Design, *, studies: int, seed: int, votes: int
) -> pl.DataFrame:
    """Return votes of a judge, labelled by what a person says of the same answers in control."""
    log = drawn(judge, design, studies, seed, votes=votes, gap_seed=seed + 7)
    other = drawn(person, design, studies, seed + 8, votes=2, gap_seed=seed + 7)
    verdicts = counted_votes(other, "balanced").verdicts.filter(arm="control")
    label = verdicts.select("judge", "sample", label="verdict")
    return log.drop("label").join(label, on=["judge", "sample"], how="left")


def nights(log: pl.DataFrame) -> pl.DataFrame:
    """Split twelve votes an arm into two nights."""
    night = pl.col("repeat") // 3
    return log.with_columns(wave=pl.concat_str(pl.lit("n"), night), repeat=pl.col("repeat") % 3)


def panel(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask three judges, alike, about the same answers; the target is right."""
    log = alike([judge] * 3, design, studies, seed).with_columns(label=pl.lit("target"))
    names = ("contrast", "los_contrast", "jury", "jury_accuracy", "jury_errors", "judge_mean")
    rows = measured(names, "dataset", **frames(log))
    return rows.filter(
        (pl.col("judge") == "a") & (pl.col("subgroup") == "b")
        | pl.col("judge").is_in(["jury/all", "judges/all"]) & (pl.col("subgroup") == "")
    )


def bare(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask two judges, alike, about the same answers, and of no sham."""
    log = alike([judge] * 2, design, studies, seed).filter(pl.col("arm") != "sham")
    rows = measured(("contrast",), "dataset", shifts=frames(log)["shifts"])
    return rows.filter(pl.col("statistic") == "mps_contrast")


def ranked(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask five judges, each by .25 logits more biased than the one before, about the same answers.

    A detract effect of the judge grows downwards.
    """
    step = 0.25 if judge.beta >= 0 else -0.25
    judges = [judge._replace(beta=judge.beta + at * step) for at in range(5)]
    log = alike(judges, design, studies, seed)
    rows = measured(("ranking",), "dataset", **frames(log))
    return rows.filter(pl.col("statistic") == "rank")


def alike(judges: list[Judge], design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Return votes of judges on the same answers, a study a dataset."""
    return pl.concat(
        drawn(judge, design, studies, seed + at, gap_seed=seed + 7).with_columns(
            dataset="judge", judge=pl.lit(name)
        )
        for at, (judge, name) in enumerate(zip(judges, "abcde", strict=False))
    )


def waves(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask six votes an arm tonight, six the night before, by the same prompts."""
    log = nights(drawn(judge, design, studies, seed, votes=12))
    return measured(("drift",), "judge", **frames(log))


def looks(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask two votes an arm and look three times, or after every question."""
    given = frames(drawn(judge, design, studies, seed, votes=2))
    return measured(("sequential_looks", "e_process"), "judge", **given)
