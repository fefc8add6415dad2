"""Operating characteristics: size of the tests, coverage of the 95 % intervals, recovery of LOS.

Run it by hand: ``python benchmarks/characteristics.py size|coverage|los|exclusion [--studies 2000]
[--only RECIPE] [--judge NAME] [--seed 1]``. All of a table takes 15 to 60 minutes of one core.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from schemas.judging import Contests, VoteLog
from schemas.results import Annotations, Estimates
from tasks.aggregate import count_votes, match_groups, match_models, tally_votes
from tasks.exclude import exclude
from tasks.providers._offline import Traits
from tasks.providers._simulate import PRESETS, Kind, simulate
from tasks.statistics import STATISTICS

BATCH = 250
"""Studies that are simulated and measured in one go."""

ALPHA = 0.05
CHANCE = 0.5
"""Of the contests of a question to be labelled by people."""


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
ROW = ("statistic", "judge", "perturbation", "subgroup")


# --- studies: each recipe returns estimates of many, ``study`` telling which -----------------


def drawn(
    judge: Judge, design: Design, studies: int, seed: int, *, votes: int = 6, **more: Any
) -> pl.DataFrame:
    """Return the votes of many studies, each of a judge of its own."""
    return simulate(
        judge.traits, kind=judge.kind, beta=judge.beta, items=design.items, votes=votes, seed=seed,
        clusters=design.clusters, shared=design.shared, studies=studies, judge="s", **more,
    )  # fmt: skip


def frames(log: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Count votes and lay arms side by side."""
    tallies = count_votes(cast("DataFrame[VoteLog]", log))  # checked when it was simulated
    return {"tallies": tallies, "shifts": match_groups(tally_votes(tallies, "balanced"))}


def measured(names: tuple[str, ...], study: str, **given: pl.DataFrame) -> pl.DataFrame:
    """Apply statistics; the column ``study`` is what tells studies apart."""
    rows = pl.concat([STATISTICS[name].draft(**given) for name in names])
    return rows.with_columns(study=pl.col(study), **{study: pl.lit("")} if study == "judge" else {})


def audit(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask six votes an arm, and the replicate."""
    names = (
        "asr", "dasr", "mps", "mps_sham", "los", "net_flips", "replicate_floor",
        "standardised_effect", "excess_conflict",
        "first_pick_share", "position_consistency", "position_effect", "repetition_stability",
        "swap_protocol", "tie_rate",
    )  # fmt: skip
    given = frames(drawn(judge, design, studies, seed, replicates=True))
    return measured(names, "judge", **given)


def oversight(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask six votes an arm about a perturbation that makes the target worse."""
    given = frames(drawn(judge._replace(kind="detract"), design, studies, seed))
    return measured(("asr", "dasr", "detection_power"), "judge", **given)


def attrition(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask two votes an arm, every tenth of them invalid; a person says who is right."""
    careless = judge._replace(traits=judge.traits.model_copy(update={"iota": 0.1}))
    log = drawn(careless, design, studies, seed, votes=2, gap_seed=seed + 7)
    person = tally_votes(
        frames(drawn(judge, design, studies, seed + 8, votes=2, gap_seed=seed + 7))["tallies"],
        "balanced",
    )
    label = person.filter(arm="control").select("judge", "sample", label="verdict")
    labelled = log.drop("label").join(label, on=["judge", "sample"], how="left")
    names = ("attrition", "validity", "accuracy")
    return measured(names, "judge", **frames(labelled))


def panel(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask three judges, alike, about the same answers."""
    logs = [
        drawn(judge, design, studies, seed + at, gap_seed=seed + 7).with_columns(
            dataset="judge", judge=pl.lit(name)
        )
        for at, name in enumerate("abc")
    ]
    rows = measured(("contrast", "jury"), "dataset", shifts=frames(pl.concat(logs))["shifts"])
    return rows.filter(
        (pl.col("judge") == "a") & (pl.col("subgroup") == "b")
        | (pl.col("judge") == "jury/all") & (pl.col("subgroup") == "")
    )


def waves(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask six votes an arm tonight, six the night before, by the same prompts."""
    log = drawn(judge, design, studies, seed, votes=12)
    night = pl.col("repeat") // 3
    log = log.with_columns(wave=pl.concat_str(pl.lit("n"), night), repeat=pl.col("repeat") % 3)
    return measured(("drift",), "judge", **frames(log))


def contests_of(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Return contests of "bee" and of "cat" with "ant" on each question, half of them labelled."""
    found = []
    random = np.random.default_rng(seed)
    questions = None
    for at, model in enumerate(("bee", "cat")):
        seeds = [seed + 10 * at, seed + 10 * at + 1]
        judged, person = (
            match_models(
                frames(
                    drawn(judge, design, studies, one, votes=2, gap_seed=seeds[0] + 7)
                    .filter(arm="control")
                    .with_columns(anchor_author=pl.lit("ant"), target_author=pl.lit(model))
                )["tallies"]
            )
            for one in seeds
        )  # fmt: skip
        told = person.select("judge", "sample", human_score="score")
        rows = judged.drop("human_score").join(told, on=["judge", "sample"], maintain_order="left")
        if questions is None:
            questions = rows.select("judge", "cluster").unique(maintain_order=True)
            chosen = pl.Series(random.random(questions.height) < CHANCE)
            questions = questions.with_columns(labelled=chosen)
        better = 2 * rows["human_score"].to_numpy() - 1
        longer = 300 * (random.standard_normal(rows.height) + better)
        found.append(
            rows.join(questions, on=["judge", "cluster"], maintain_order="left").with_columns(
                sample=pl.concat_str(pl.lit(f"{model}/"), "sample"),
                anchor_length=pl.lit(2000),
                target_length=pl.Series(np.maximum(2000 + longer, 1).astype(np.int64)),
                human_score=pl.when("labelled").then("human_score"),
                label_chance=pl.lit(CHANCE),
            )
        )
    return Contests.of(pl.concat(found))


def contest(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Ask two votes a contest: win rates, and what corrects them by labels."""
    names = ("win_rate", "ppi", "rogan_gladen")
    # Of one cluster all or nothing would be labelled.
    design = design._replace(clusters=max(design.clusters, 20))
    rows = measured(names, "judge", contests=contests_of(judge, design, studies, seed))
    return rows.filter(pl.col("subgroup").is_in(["bee", "bee vs cat"]))


def style(judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Measure the same contests with length held equal, by bootstrap with refit."""
    names = ("length_controlled", "style_controlled")
    rows = measured(names, "judge", contests=contests_of(judge, design, studies, seed))
    return rows.filter(pl.col("subgroup").is_in(["bee", ""]))


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
                "cluster", dataset="judge", item="sample", annotator=pl.lit(name), label="verdict",
                prompt=pl.lit(None if human else "p", dtype=pl.String), wave=pl.lit(""),
                value=pl.col("verdict").replace_strict(
                    {"anchor": -1.0, "tie": 0.0, "target": 1.0}, return_dtype=pl.Float64
                ),
                inconsistent=pl.lit(value=False), votes=pl.lit(2), human=pl.lit(human),
                simulated=pl.lit(value=True),
            )
        )  # fmt: skip
    names = (
        "agreement", "gwet_ac1", "fleiss_kappa", "krippendorff_alpha", "mt_bench_agreement",
        "noise_ceiling", "gap_agreement",
    )  # fmt: skip
    found = measured(names, "dataset", annotations=Annotations.of(pl.concat(rows)))
    told = found.filter(pl.col("subgroup").is_in(["", "Ann", "humans"]), pl.col("judge") != "Bob")
    return pl.concat([told, measured(("order_kappa",), "judge", tallies=given["judge"])])


Recipe = Callable[[Judge, Design, int, int], pl.DataFrame]
RECIPES: dict[str, Recipe] = {
    r.__name__: r for r in (audit, oversight, attrition, panel, waves, contest, style, people)
}
SLOW = ("style", "people", "panel")
"""Recipes that are run on half the studies."""


def runs(recipe: str, judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Return a recipe's estimates of so many studies, batch by batch."""
    studies = studies // 2 if recipe in SLOW else studies
    found = []
    for first in range(0, studies, BATCH):
        many = min(BATCH, studies - first)
        rows = RECIPES[recipe](judge, design, many, seed * 1_000_003 + 100 * first)
        found.append(rows.with_columns(study=pl.concat_str(pl.lit(f"{first}/"), "study")))
    return principal(pl.concat(found))


def principal(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep the control arm of what is told of each arm."""
    null = pl.col("perturbation").is_null()
    return rows.filter(null.any().over("statistic") <= null)


def truth(recipe: str, judge: Judge) -> pl.DataFrame:
    """Return the mean of giant studies, whose bias is as good as none, and its standard error."""
    rows = pl.concat(
        RECIPES[recipe](judge, GIANT, 5, 900_001 + 100 * part) for part in range(GIANTS // 5)
    )
    return (
        principal(rows)
        .group_by(ROW, maintain_order=True)
        .agg(
            truth=pl.col("estimate").mean(),
            unsure=pl.col("estimate").std() / pl.col("estimate").count().sqrt(),
        )
    )


# --- tables ---------------------------------------------------------------------------------


def sizes(recipe: str, judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Return how often each test finds what is not there, and how often it cannot be told."""
    rows = runs(recipe, judge, design, studies, seed)
    return (
        rows.group_by(ROW, maintain_order=True)
        .agg(
            tests=pl.col("p_value").count(),
            size=(pl.col("p_value") <= ALPHA).mean(),
            null=pl.col("p_value").null_count() / pl.len(),
        )
        .filter(pl.col("tests") > 0)
    )


def coverages(
    recipe: str, judge: Judge, design: Design, true: pl.DataFrame, *, studies: int, seed: int
) -> pl.DataFrame:
    """Return how often each interval holds what giant studies say."""
    rows = runs(recipe, judge, design, studies, seed)
    rows = rows.filter(pl.col("level").is_not_null().any().over(ROW))
    joined = rows.join(true, on=ROW, how="left", nulls_equal=True)
    return joined.group_by(ROW, maintain_order=True).agg(
        truth=pl.col("truth").first(),
        mean=pl.col("estimate").mean(),
        coverage=pl.col("truth").is_between("low", "high").mean(),
        below=(pl.col("high") < pl.col("truth")).mean(),
        above=(pl.col("low") > pl.col("truth")).mean(),
        boot=pl.col("truth").is_between("boot_low", "boot_high").mean(),
        width=(pl.col("high") - pl.col("low")).mean(),
        null=pl.col("low").null_count() / pl.len(),
        unsure=(pl.col("unsure") / (pl.col("high") - pl.col("low")).mean() * 3.92).first(),
    )


BETAS = (-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0)


def recovered(beta: float, studies: int, seed: int) -> pl.DataFrame:
    """Return LOS where psi = upsilon = 0 and pi = 1, so that it is the planted effect exactly."""
    judge = Judge(Traits(omega=1.5, nu=0.5, kappa=0.4), beta=beta)
    large = measured(("los",), "judge", **frames(drawn(judge, GIANT, GIANTS, seed)))
    found = {"large": large, **dict.fromkeys(DESIGNS, None)}
    for name, design in DESIGNS.items():
        given = frames(drawn(judge, design, studies, seed + 1))
        found[name] = measured(("los",), "judge", **given)
    return pl.concat(
        rows.select(
            beta=pl.lit(beta), studies=pl.lit(name), mean=pl.col("estimate").mean(),
            sd=pl.col("estimate").std(),
            coverage=pl.lit(beta).is_between("low", "high").mean(),
        )
        for name, rows in found.items()
    )  # fmt: skip


SUSPECTS = {
    "honest": Traits(omega=1.5, nu=0.5),
    "prompt noise 1": Traits(omega=1.5, nu=0.5, psi=1.0),
    "gap .07": Traits(omega=1.5, nu=0.5, kappa=0.37),
    "gap .14": Traits(omega=1.5, nu=0.5, kappa=0.76),
    "gap .20": Traits(omega=1.5, nu=0.5, kappa=1.13),
    "gap .31": Traits(omega=1.5, nu=0.5, kappa=1.9),
    "ties .75": Traits(omega=1.5, nu=8.6),
    "invalid .05": Traits(omega=1.5, nu=0.5, iota=0.05),
    "invalid .10": Traits(omega=1.5, nu=0.5, iota=0.1),
    "invalid .15": Traits(omega=1.5, nu=0.5, iota=0.15),
}


def excluded(name: str, studies: int, seed: int) -> pl.DataFrame:
    """Return the share of studies in which the exclusion rule flags a judge."""
    found = []
    for title, design in DESIGNS.items():
        log = drawn(Judge(SUSPECTS[name]), design, studies, seed).filter(arm="control")
        names = ("first_pick_share", "tie_rate", "validity")
        tallies = frames(log)["tallies"]
        rows = pl.concat([STATISTICS[one].draft(tallies=tallies) for one in names])
        told = exclude(Estimates.of(rows))
        found.append(
            told.select(
                judge=pl.lit(name), studies=pl.lit(title), gap=pl.col("position_gap").mean(),
                ties=pl.col("tie_rate").mean(), invalid=pl.col("invalid_rate").mean(),
                excluded=pl.col("excluded").mean(),
            )
        )  # fmt: skip
    return pl.concat(found)


def show(table: pl.DataFrame, *what: str) -> None:
    """Print a table with what it is about."""
    with pl.Config(
        tbl_rows=-1, tbl_cols=-1, tbl_width_chars=180, fmt_str_lengths=40, float_precision=3,
        tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True, tbl_formatting="MARKDOWN",
    ):  # fmt: skip
        print("##", *what, table, sep="\n" if len(what) == 1 else " ", flush=True)


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description="Operating characteristics.")
    parser.add_argument("table", choices=("size", "coverage", "los", "exclusion"))
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--only", choices=RECIPES, help="one recipe of studies")
    parser.add_argument("--judge", choices=(*QUIET, *PLANTED), help="one judge")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.table == "los":
        show(pl.concat(recovered(beta, given.studies, given.seed) for beta in BETAS), "los")
        return
    if given.table == "exclusion":
        show(pl.concat(excluded(name, given.studies, given.seed) for name in SUSPECTS), "excluded")
        return
    for recipe in [given.only] if given.only else RECIPES:
        judges = QUIET if given.table == "size" else PLANTED
        for name, judge in judges.items():
            if given.judge not in {None, name}:
                continue
            true = truth(recipe, judge) if given.table == "coverage" else None
            for title, design in DESIGNS.items():
                if true is None:
                    table = sizes(recipe, judge, design, given.studies, given.seed)
                else:
                    table = coverages(
                        recipe, judge, design, true, studies=given.studies, seed=given.seed
                    )
                show(table, recipe, name, title)


if __name__ == "__main__":
    main()
