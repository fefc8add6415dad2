"""Contrasts of log-odds shifts: by hand, against LOS itself, and what was planted."""

from collections.abc import Callable
from math import log, sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

from benchmarks.simulated_votes import simulate
from tasks.aggregate import count_votes
from tasks.inference.bootstrap import formulas_only
from tasks.simulation.traits import Traits
from tasks.statistics.los import los
from tasks.statistics.los_contrast import los_contrast

Make = Callable[..., Any]
Row = dict[str, Any]
Counts = tuple[int, int]
"""Votes for the anchor and for the target."""


def votes(judge: str, *samples: tuple[Counts, Counts]) -> list[Row]:
    """Return votes of samples, each (control, experimental), with the anchor first."""
    return [
        {
            "judge": judge,
            "sample": f"s{number}",
            "cluster": f"s{number}",
            "arm": arm,
            "shown_first": "anchor",
            "repeat": repeat,
            "choice": choice,
        }
        for number, arms in enumerate(samples)
        for arm, (first, second) in zip(("control", "experimental"), arms, strict=True)
        for repeat, choice in enumerate(["first"] * first + ["second"] * second)
    ]


def one(make_vote_log: Make, rows: list[Row]) -> Row:
    (row,) = los_contrast(tallies=count_votes(make_vote_log(rows))).to_dicts()
    return row


EXAMPLE = [
    *votes("ada", ((2, 1), (1, 1)), ((1, 0), (0, 1))),
    *votes("bea", ((1, 1), (1, 1)), ((0, 1), (1, 0))),
]


def test_docstring_example(make_vote_log: Make) -> None:
    row = one(make_vote_log, EXAMPLE)
    assert row["estimate"] == pytest.approx(log(6))
    # u = -5/6 and 5/6, G / (G - 1) = 2.
    assert row["standard_error"] == pytest.approx(sqrt(2 * 2 * 25 / 36))
    # One degree of freedom: 12.7062 from a table, and P = 1 - 2/pi arctan t.
    assert row["high"] == pytest.approx(log(6) + 12.7062 * 5 / 3, rel=1e-5)
    expected = 1 - 2 / np.pi * np.arctan(log(6) / (5 / 3))
    assert row["p_value"] == pytest.approx(expected)
    assert (row["judge"], row["subgroup"], row["mode"]) == ("ada", "bea", "any")
    assert (row["n"], row["clusters"], row["dropped"]) == (2, 2, 0)
    assert (row["method"], row["reason"]) == ("cluster linearisation, t", None)


def test_only_what_both_judged_counts(make_vote_log: Make) -> None:
    # s2 and s3 have votes of one judge in both arms; without them it is the example again.
    more = [
        *votes("ada", *[((0, 0), (0, 0))] * 2, ((3, 0), (0, 3)), ((1, 1), (1, 1))),
        *votes("bea", *[((0, 0), (0, 0))] * 3, ((2, 2), (0, 0))),
    ]
    row = one(make_vote_log, EXAMPLE + more)
    plain = one(make_vote_log, EXAMPLE)
    same = ("estimate", "standard_error", "low", "p_value", "n", "clusters")
    assert {name: row[name] for name in same} == {name: plain[name] for name in same}
    assert row["dropped"] == 2


def log_of(seed: int, betas: tuple[float, ...], **design: Any) -> pl.DataFrame:
    """Return votes of judges on the same answers, some of the first's lost."""
    logs = [
        simulate(
            Traits(omega=1.5, nu=0.5, iota=0.1),
            kind="promote",
            beta=beta,
            seed=seed + at,
            gap_seed=seed,
            judge="s",
            **design,
        ).with_columns(dataset="judge", judge=pl.lit(name))
        for at, (beta, name) in enumerate(zip(betas, "abc", strict=False))
    ]
    return count_votes(pl.concat(logs))


def test_it_is_the_difference_of_los_and_its_error_that_of_the_difference_of_u() -> None:
    # Second implementation: LOS by itself on the shared samples, u from its tallies in numpy.
    tallies = log_of(3, (0.5, 0.0), items=60, votes=2, clusters=15)
    row = los_contrast(tallies=tallies).to_dicts()[0]
    sides = {}
    for name in "ab":
        mine = tallies.filter(judge=name)
        control, attacked = (
            mine.filter(arm=arm).sort("sample") for arm in ("control", "experimental")
        )
        a, b, reported = np.zeros(60), np.zeros(60), np.zeros(60, bool)
        for order in ("12", "21"):
            c1, c2, e1, e2 = (
                f[f"{s}_{order}"].to_numpy().astype(float)
                for f in (control, attacked)
                for s in ("anchor", "target")
            )
            ties = [f[f"tie_{order}"].to_numpy() for f in (control, attacked)]
            reported |= (c1 + c2 + ties[0] > 0) & (e1 + e2 + ties[1] > 0)
            a, b = a + c1 * e2, b + c2 * e1
        sides[name] = (a, b, reported, control["cluster"].to_numpy())
    both = sides["a"][2] & sides["b"][2]
    assert 30 < both.sum() < 60
    clusters = np.unique(sides["a"][3][both])
    u = []
    for a, b, _, cluster in sides.values():
        of = [[x[both & (cluster == c)].sum() for c in clusters] for x in (a, b)]
        u.append(np.array(of[0]) / np.sum(of[0]) - np.array(of[1]) / np.sum(of[1]))
    # CR2, by the samples of each cluster; df as the eigenvalues of its matrix have it.
    share = np.array([(both & (sides["a"][3] == c)).sum() for c in clusters]) / both.sum()
    a = (1 - share) ** -0.5
    error = np.sqrt(((a * (u[0] - u[1])) ** 2).sum())
    values = np.linalg.eigvalsh(np.outer(a, a) * (np.diag(share) - np.outer(share, share)))
    df = values.sum() ** 2 / (values**2).sum()
    assert row["standard_error"] == pytest.approx(error)
    assert row["n"] == both.sum()
    t = row["estimate"] / error
    assert row["df"] == pytest.approx(df)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(t), df))
    whole = tallies.filter(pl.col("sample").is_in(control["sample"].to_numpy()[both].tolist()))
    over_control = los(tallies=whole).filter(statistic="los")
    alone = dict(over_control.select("judge", "estimate").iter_rows())
    assert row["estimate"] == pytest.approx(alone["a"] - alone["b"])


def test_the_bootstrap_agrees_whether_votes_are_lost_or_not() -> None:
    # With lost votes pairs need sums of their own; a and b are also measured without judge three.
    tallies = log_of(5, (1.0, 0.0, -0.5), items=120, votes=4)
    rows = los_contrast(tallies=tallies)
    assert rows.select("judge", "subgroup").rows() == [("a", "b"), ("a", "c"), ("b", "c")]
    without = los_contrast(tallies=tallies.filter(pl.col("judge") != "c"))
    assert_frame_equal(without, rows.filter(judge="a", subgroup="b"), rel_tol=1e-12)
    for row in rows.to_dicts():
        for end in ("low", "high"):
            assert row[f"boot_{end}"] == pytest.approx(row[end], abs=0.15)
    with formulas_only():
        bare = los_contrast(tallies=tallies)
    assert bare["boot_low"].null_count() == 3
    drawn = ("boot_low", "boot_high", "seed")
    assert bare.drop(drawn).equals(rows.drop(drawn))


def test_a_side_without_votes_gets_half(make_vote_log: Make) -> None:
    never = votes("ada", *[((1, 0), (0, 1))] * 10)
    mixed = votes("bea", *[((1, 1), (1, 1))] * 10)
    row = one(make_vote_log, never + mixed)
    assert row["estimate"] == pytest.approx(log(21))
    # Clusters are alike; only the half differs, as for LOS.
    assert row["standard_error"] == pytest.approx(sqrt(10 / 9) * (1 - 0.5 / 10.5))
    assert row["method"].endswith("; .5 added because one side has no votes")


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ([((1, 0), (1, 0))] * 2, "no sample has votes for different answers in the two arms"),
        ([((1, 1), (1, 1))], "a single cluster: no interval"),
    ],
)
def test_too_little_is_null_with_a_reason(
    make_vote_log: Make, other: list[tuple[Counts, Counts]], reason: str
) -> None:
    row = one(make_vote_log, [*votes("ada", *[((1, 1), (1, 2))] * 2), *votes("bea", *other)])
    assert (row["low"], row["boot_low"], row["p_value"], row["level"]) == (None, None, None, None)
    assert (row["reason"], row["method"]) == (reason, "none")
    assert (row["estimate"] is None) == (reason != "a single cluster: no interval")


def test_other_orders_have_nothing_in_common(make_vote_log: Make) -> None:
    other = votes("bea", *[((1, 1), (1, 1))] * 2)
    moved = [row | {"shown_first": "target"} if row["arm"] == "control" else row for row in other]
    row = one(make_vote_log, [*votes("ada", *[((1, 1), (1, 2))] * 2), *moved])
    assert (row["estimate"], row["n"], row["dropped"]) == (None, 0, 2)
    assert row["reason"].endswith("votes of both judges in one order in both arms")


def test_one_judge_and_nothing_give_nothing(make_vote_log: Make) -> None:
    assert los_contrast(tallies=count_votes(make_vote_log([]))).is_empty()
    alone = make_vote_log(votes("ada", ((1, 1), (1, 1))))
    assert los_contrast(tallies=count_votes(alone)).is_empty()


@pytest.mark.slow
def test_unequal_votes_and_gaps_do_not_bend_it() -> None:
    # A planted logit against none, the other judge with a third of the votes: within 4 errors.
    logs = [
        simulate(
            Traits(omega=omega, nu=0.5),
            kind="promote",
            beta=beta,
            items=3000,
            votes=many,
            seed=seed,
            gap_seed=1,
            judge=name,
        )
        for name, omega, beta, many, seed in (("a", 1.0, 1.0, 6, 2), ("b", 3.0, 0.0, 2, 3))
    ]
    (row,) = los_contrast(tallies=count_votes(pl.concat(logs))).to_dicts()
    assert row["standard_error"] < 0.1
    assert abs(row["estimate"] - 1.0) < 4 * row["standard_error"]
    assert row["votes_per_pair"] == 6
