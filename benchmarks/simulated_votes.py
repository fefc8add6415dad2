"""Draw votes of simulated judges with known effects: numbers alone, without any text."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import ARMS, CHOICES, SIDES, VoteLog
from tasks.simulation.judge import probabilities
from tasks.simulation.traits import Traits

Kind = Literal["promote", "detract"]
Floats = NDArray[np.float64]

ASKED = ARMS[:3]
FIRST, SECOND, TIE, INVALID = map(CHOICES.index, ("first", "second", "tie", "invalid"))


class Preset(NamedTuple):
    """A judge with a planted effect."""

    traits: Traits
    kind: Kind
    beta: float


PRESETS = {
    "honest": Preset(Traits(omega=1.5, nu=0.5), "promote", 0),
    "gullible": Preset(
        Traits(omega=1.5, nu=0.5, kappa=0.4, psi=0.5, upsilon=0.5, lapse=0.02), "promote", 1
    ),
    "careless": Preset(
        Traits(omega=1, nu=0.4, kappa=-0.6, psi=0.5, pi=0.6, lapse=0.05), "detract", -2.5
    ),
}


def simulate(
    traits: Traits,
    *,
    kind: Kind,
    beta: float,
    items: int,
    votes: int,
    seed: int,
    mu: float = 0.0,
    clusters: int | Sequence[int] | None = None,
    shared: float = 0.0,
    shared_effects: float = 0.0,
    length_ratio: float = 1.0,
    judge: str = "simulated/judge",
    perturbation: str = "planted",
    replicates: bool = False,
    studies: int = 1,
    gap_seed: int | None = None,
) -> DataFrame[VoteLog]:
    """Simulate a study with ``votes`` per pair of each arm, anchor and target first in turn.

    Parameters
    ----------
    traits
        The judge; its ``seed`` and ``effects`` are not used here. ``sham_taste`` moves each sham.
    kind, beta
        What the perturbation is, and its mean effect in logits toward the target.
    mu
        Mean gap of quality toward the target.
    clusters
        Items fall into so many clusters in turn, or into clusters of these sizes; by default each
        is its own.
    shared, shared_effects
        Share of the variance of gaps, and of effects, that items of a cluster have in common.
    length_ratio
        Length of the perturbed and of the sham target over the original's.
    replicates
        Whether control is asked about once more; its prompts, so their noise, are the same.
    studies
        How many independent studies of ``items`` to simulate; of several, each has its own judge,
        ``judge/0`` and so on, and all name their samples alike.
    gap_seed
        Seed of the gaps alone: judges with the same one see the same answers.
    """
    cluster = _clusters(items, clusters)
    shares = min(shared, shared_effects), max(shared, shared_effects)
    if min(items, votes, studies) < 1 or not 0 <= shares[0] <= shares[1] <= 1 or length_ratio <= 0:
        raise ValueError(
            f"items {items}, votes {votes} and studies {studies} must be at least 1, shared "
            f"{shared} and shared_effects {shared_effects} within 0 and 1, length_ratio "
            f"{length_ratio} above 0."
        )
    random = np.random.default_rng(seed)
    many = int(cluster.max()) + 1
    everywhere = (np.arange(studies)[:, None] * many + cluster).reshape(-1)
    of_gaps = random if gap_seed is None else np.random.default_rng(gap_seed)
    gaps = mu + traits.omega * _correlated(of_gaps, everywhere, shared)
    effects = _effects(random, traits, beta, everywhere, shared_effects)
    length = traits.lam * math.log(length_ratio)
    margins = _margins(random, traits, gaps, effects, length)
    if replicates:
        margins = np.concatenate([margins, margins[:, [ASKED.index("control")]]], axis=1)
    choices = _choices(random, traits, margins, votes)
    names = [judge] if studies == 1 else [f"{judge}/{study}" for study in range(studies)]
    return VoteLog.of(_frame(choices, cluster, kind, names, perturbation))


def _clusters(items: int, clusters: int | Sequence[int] | None) -> NDArray[np.int64]:
    """Return the number of each item's cluster."""
    if clusters is None or isinstance(clusters, int):
        many = items if clusters is None else clusters
        if many < 1:
            raise ValueError(f"clusters {clusters} must be at least 1.")
        return np.arange(max(items, 1)) % many
    if sum(clusters) != items or min(clusters) < 1:
        raise ValueError(f"clusters of {list(clusters)} samples do not hold {items} items.")
    return np.repeat(np.arange(len(clusters)), clusters)


def _correlated(random: np.random.Generator, cluster: NDArray[np.int64], shared: float) -> Floats:
    common = random.standard_normal(cluster.max() + 1)[cluster]
    own = random.standard_normal(cluster.size)
    mixed: Floats = math.sqrt(shared) * common + math.sqrt(1 - shared) * own
    return mixed


def _effects(
    random: np.random.Generator,
    traits: Traits,
    beta: float,
    cluster: NDArray[np.int64],
    shared: float,
) -> Floats:
    noticed = random.random(cluster.size) < traits.pi
    if shared:
        spread = _correlated(random, cluster, shared)
    else:
        spread = random.standard_normal(cluster.size)  # as many numbers as before `shared`
    effects: Floats = noticed * (beta + traits.upsilon * spread)
    return effects


def _margins(
    random: np.random.Generator, traits: Traits, gaps: Floats, effects: Floats, length: float
) -> Floats:
    """Return margins toward the second slot by item, arm and side shown first."""
    none = np.zeros_like(effects)
    sham = none + length + traits.sham_taste
    arm = {"control": none, "experimental": effects + length, "sham": sham}
    toward_target = gaps[:, None] + np.stack([arm[name] for name in ASKED], axis=1)
    toward_second = np.array([1.0 if side == "anchor" else -1.0 for side in SIDES])
    margins: Floats = toward_target[:, :, None] * toward_second - traits.kappa
    margins += traits.psi * random.standard_normal(margins.shape)
    return margins


def _choices(
    random: np.random.Generator, traits: Traits, margins: Floats, votes: int
) -> NDArray[np.int8]:
    """Return codes of choices by item, arm and vote."""
    chances = probabilities(margins, traits.nu, traits.temperature, traits.lapse)
    if traits.uniform:
        chances = (np.full_like(margins, 1 / 3),) * 3
    side = np.arange(votes) % len(SIDES)
    first, tie = chances[0][:, :, side], chances[1][:, :, side]
    drawn = random.random(first.shape)
    codes = np.where(drawn < first, FIRST, np.where(drawn < first + tie, TIE, SECOND))
    codes[random.random(codes.shape) < traits.iota] = INVALID
    return codes.astype(np.int8)


def _frame(
    choices: NDArray[np.int8],
    cluster: NDArray[np.int64],
    kind: Kind,
    judges: list[str],
    perturbation: str,
) -> pl.DataFrame:
    items = cluster.size
    grid = np.indices(choices.shape, dtype=np.int32).reshape(3, -1)
    width = len(str(items))
    sample = pl.Series([f"sample_{item:0{width}}" for item in range(items)])
    group = pl.Series([f"cluster_{number:0{width}}" for number in cluster])
    planted = pl.col("arm").is_in(["experimental", "sham"])
    return pl.DataFrame(
        {
            "judge": pl.Series(judges).gather(grid[0] // items),
            "sample": sample.gather(grid[0] % items),
            "cluster": group.gather(grid[0] % items),
            "arm": pl.Series(ARMS).gather(grid[1]),
            "shown_first": pl.Series(SIDES).gather(grid[2] % len(SIDES)),
            "repeat": grid[2] // len(SIDES),
            "choice": pl.Series(CHOICES).gather(choices.reshape(-1)),
        }
    ).with_columns(
        dataset=pl.lit("simulated"),
        prompt=pl.lit("none"),
        wave=pl.lit(""),
        perturbation=pl.when(planted).then(pl.lit(perturbation)),
        kind=pl.when(planted).then(pl.lit(kind)),
        simulated=pl.lit(True),  # noqa: FBT003
        cached=pl.lit(False),  # noqa: FBT003
    )
