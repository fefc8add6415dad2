from collections.abc import Callable
from typing import Any

import evalica
import numpy as np
import polars as pl
import pytest

from tasks.statistics.style_controlled import APART, SEPARATED, style_controlled

Make = Callable[..., Any]


def rows(frame: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    found = style_controlled(contests=frame).to_dicts()
    return {(row["statistic"], row["subgroup"]): row for row in found}


def data(n: int, seed: int = 1) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    strength = {"ant": 0.0, "bee": 0.5, "cat": 1.0}
    found = []
    for question in range(n):
        a, b = random.choice(list(strength), size=2, replace=False)
        length, markup = random.integers(200, 900, 2), random.integers(0, 6, 2)
        style = 0.8 * np.tanh((length[1] - length[0]) / 300)
        scores = [
            float(random.random() < 1 / (1 + np.exp(-(strength[b] - strength[a] + style + order))))
            for order in (-0.4, 0.4)
        ]
        found.append(
            {"anchor_author": str(a), "target_author": str(b), "cluster": f"q{question // 2}",
             "score_12": scores[0], "score_21": scores[1], "score": sum(scores) / 2,
             "anchor_length": int(length[0]), "target_length": int(length[1]),
             "anchor_markup": int(markup[0]), "target_markup": int(markup[1])}
        )  # fmt: skip
    return found


def test_docstring_example(make_contests: Make) -> None:
    # "ant" wins three of four: logit .75 = 1.098612, half of it over the mean of the two.
    found = rows(make_contests([{"score": 0.0}] * 3 + [{"score": 1.0}]))
    assert found["bt_strength", "ant"]["estimate"] == pytest.approx(0.549306, abs=1e-6)
    assert found["bt_strength", "bee"]["estimate"] == pytest.approx(-0.549306, abs=1e-6)


def test_against_evalica(make_contests: Make) -> None:
    # Each of four models wins and loses, so all are connected; two ties.
    score = {evalica.Winner.X: 0.0, evalica.Winner.Y: 1.0, evalica.Winner.Draw: 0.5}
    games = [
        (anchor, target, winner)
        for anchor, target, won, lost, tied in (
            ("ant", "bee", 3, 1, 1), ("bee", "cat", 2, 2, 0), ("cat", "dog", 4, 1, 1),
            ("dog", "ant", 1, 2, 0),
        )
        for winner, times in zip(score, (won, lost, tied), strict=True)
        for _ in range(times)
    ]  # fmt: skip
    contests = [
        {"anchor_author": anchor, "target_author": target, "score": score[winner]}
        for anchor, target, winner in games
    ]
    theirs = evalica.bradley_terry(
        *map(list, zip(*games, strict=True)), tolerance=1e-12, limit=10_000
    )
    strength = np.log(theirs.scores)
    found = rows(make_contests(contests))
    for model in ("ant", "bee", "cat", "dog"):
        # It stops where its scores change by less than 1e-12.
        expected = strength[model] - strength.mean()
        assert found["bt_strength", model]["estimate"] == pytest.approx(expected, abs=1e-8)


def test_against_statsmodels(make_contests: Make) -> None:
    import statsmodels.api as sm

    contests = data(300)
    design, y = [], []
    for row in contests:
        for order, score in ((-1.0, row["score_12"]), (1.0, row["score_21"])):
            sides = [
                (row["target_author"] == m) - (row["anchor_author"] == m) for m in ("bee", "cat")
            ]
            excess = [row[f"target_{s}"] - row[f"anchor_{s}"] for s in ("length", "markup")]
            design.append([*sides, order, *excess])
            y.append(score)
    terms = np.array(design, dtype=float)
    terms[:, 3:] = np.tanh(terms[:, 3:] / terms[:, 3:].std(axis=0, ddof=1))
    glm = sm.GLM(y, terms, family=sm.families.Binomial()).fit(tol=1e-13)
    bee, cat, order, length, markup = glm.params
    found = rows(make_contests(contests))
    mean = (bee + cat) / 3
    for (name, subgroup), value in {
        ("style_controlled", "ant"): -mean, ("style_controlled", "bee"): bee - mean,
        ("style_controlled", "cat"): cat - mean, ("order_effect", ""): order,
        ("length_effect", ""): length, ("markup_effect", ""): markup,
    }.items():  # fmt: skip
        assert found[name, subgroup]["estimate"] == pytest.approx(value, abs=1e-8), name
    plain = sm.GLM(y, terms[:, :2], family=sm.families.Binomial()).fit(tol=1e-13)
    expected = plain.params[1] - plain.params.sum() / 3
    assert found["bt_strength", "cat"]["estimate"] == pytest.approx(expected, abs=1e-8)
    # What was planted is inside: kappa .4, a length preference.
    row = found["order_effect", ""]
    assert row["low"] < 0.4 < row["high"]
    assert row["boot_low"] == pytest.approx(row["low"], abs=0.1)


def test_two_ties_are_a_win_and_a_loss(make_contests: Make) -> None:
    base = [{"score": 1.0}, {"score": 0.0}, {"score": 1.0}]
    ties = rows(make_contests([*base, {"score": 0.5}, {"score": 0.5}]))
    split = rows(make_contests([*base, {"score": 1.0}, {"score": 0.0}]))
    key = ("bt_strength", "bee")
    assert ties[key]["estimate"] == pytest.approx(split[key]["estimate"], abs=1e-9)


@pytest.mark.parametrize(
    ("contests", "reason"),
    [
        ([{"score": 1.0}] * 4, SEPARATED),
        (
            [{"score": 1.0}, {"score": 0.0}]
            + [{"score": s, "anchor_author": "cat", "target_author": "dog"} for s in (0.0, 1.0)],
            APART,
        ),
        ([{"score": None}] * 3, APART),
    ],
)
def test_no_finite_fit_is_null(
    make_contests: Make, contests: list[dict[str, Any]], reason: str
) -> None:
    for (name, _), row in rows(make_contests(contests)).items():
        assert row["estimate"] is None
        assert row["low"] is None
        assert name != "bt_strength" or row["reason"] == reason
    assert style_controlled(contests=make_contests([])).is_empty()
