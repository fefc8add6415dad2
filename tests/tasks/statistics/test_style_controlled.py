from collections.abc import Callable
from typing import Any

import evalica
import numpy as np
import polars as pl
import pytest

from schemas.judging import FORMATS, SIDES
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
        length, rest = random.integers(200, 900, 2), random.integers(0, 3, 2)
        header, listed, bold = (random.integers(0, 6, 2) for _ in range(3))
        markup = header + listed + bold + rest
        style = 0.8 * np.tanh((length[1] - length[0]) / 300)
        style += 0.9 * np.tanh((bold[1] - bold[0]) / 2.4) - 0.9 * np.tanh(
            (header[1] - header[0]) / 2.4
        )
        scores = [
            float(random.random() < 1 / (1 + np.exp(-(strength[b] - strength[a] + style + order))))
            for order in (-0.4, 0.4)
        ]
        found.append(
            {
                "anchor_author": str(a),
                "target_author": str(b),
                "cluster": f"q{question // 2}",
                "score_12": scores[0],
                "score_21": scores[1],
                "score": sum(scores) / 2,
                **{
                    f"{side}_{what}": int(count[at])
                    for what, count in (
                        ("length", length),
                        ("header", header),
                        ("list", listed),
                        ("bold", bold),
                        ("markup", markup),
                    )
                    for at, side in enumerate(("anchor", "target"))
                },
            }
        )
    return found


def test_docstring_example(make_contests: Make) -> None:
    # "ant" wins three of four: logit .75 = 1.098612, half of it over the mean of the two.
    found = rows(make_contests([{"score": 0.0}] * 3 + [{"score": 1.0}]))
    assert found["bt_strength", "ant"]["estimate"] == pytest.approx(0.549306, abs=1e-6)
    assert found["bt_strength", "bee"]["estimate"] == pytest.approx(-0.549306, abs=1e-6)


def test_contests_without_an_order_are_fitted_without_its_effect(make_contests: Make) -> None:
    none = {"score_12": None, "score_21": None}
    found = rows(make_contests([{"score": 0.0, **none}] * 3 + [{"score": 1.0, **none}]))
    for statistic in ("bt_strength", "style_controlled"):
        assert found[statistic, "ant"]["estimate"] == pytest.approx(0.549306, abs=1e-6)
        assert (found[statistic, "ant"]["n"], found[statistic, "ant"]["dropped"]) == (4, 0)
    assert not any(name.endswith("_effect") for name, _ in found)


def test_against_evalica(make_contests: Make) -> None:
    # Each of four models wins and loses, so all are connected; two ties.
    score = {evalica.Winner.X: 0.0, evalica.Winner.Y: 1.0, evalica.Winner.Draw: 0.5}
    games = [
        (anchor, target, winner)
        for anchor, target, won, lost, tied in (
            ("ant", "bee", 3, 1, 1),
            ("bee", "cat", 2, 2, 0),
            ("cat", "dog", 4, 1, 1),
            ("dog", "ant", 1, 2, 0),
        )
        for winner, times in zip(score, (won, lost, tied), strict=True)
        for _ in range(times)
    ]
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


@pytest.mark.parametrize("kinds", [("header", "list", "bold"), ("bold",), ()])
def test_against_statsmodels(make_contests: Make, kinds: tuple[str, ...]) -> None:
    import statsmodels.api as sm

    unknown = {f"{side}_{kind}" for side in SIDES for kind in FORMATS if kind not in kinds}
    contests = [{k: v for k, v in row.items() if k not in unknown} for row in data(300)]
    design, y = [], []
    for row in contests:
        for order, score in ((-1.0, row["score_12"]), (1.0, row["score_21"])):
            sides = [
                (row["target_author"] == m) - (row["anchor_author"] == m) for m in ("bee", "cat")
            ]
            excess = {
                s: row[f"target_{s}"] - row[f"anchor_{s}"] for s in ("length", *kinds, "markup")
            }
            excess["markup"] -= sum(excess[kind] for kind in kinds)
            design.append([*sides, order, *excess.values()])
            y.append(score)
    terms = np.array(design, dtype=float)
    terms[:, 3:] = np.tanh(terms[:, 3:] / terms[:, 3:].std(axis=0, ddof=1))
    glm = sm.GLM(y, terms, family=sm.families.Binomial()).fit(tol=1e-13)
    bee, cat, order, *styles = glm.params
    names = [f"{s}_effect" for s in ("length", *kinds, "other" if kinds else "markup")]
    found = rows(make_contests(contests))
    mean = (bee + cat) / 3
    for (name, subgroup), value in {
        ("style_controlled", "ant"): -mean,
        ("style_controlled", "bee"): bee - mean,
        ("style_controlled", "cat"): cat - mean,
        ("order_effect", ""): order,
        **{(name, ""): value for name, value in zip(names, styles, strict=True)},
    }.items():
        assert found[name, subgroup]["estimate"] == pytest.approx(value, abs=1e-8), name
    effects = {name for name, subgroup in found if not subgroup}
    assert effects == {"order_effect", *names}
    plain = sm.GLM(y, terms[:, :2], family=sm.families.Binomial()).fit(tol=1e-13)
    expected = plain.params[1] - plain.params.sum() / 3
    assert found["bt_strength", "cat"]["estimate"] == pytest.approx(expected, abs=1e-8)
    # What was planted is inside: kappa .4, a length preference.
    row = found["order_effect", ""]
    assert row["low"] < 0.4 < row["high"]
    assert row["boot_low"] == pytest.approx(row["low"], abs=0.1)
    if len(kinds) == 3:
        assert found["header_effect", ""]["high"] < 0 < found["bold_effect", ""]["low"]


# Worked out by hand: "ant" and "bee" twelve times, no order or length effect. With one more heading
# the target wins 3 of 4, with one less 1 of 4, else 2 of 4: tanh(1 / sd) b = logit .75 = 1.098612.
# Of 24 votes 8 differ by 1 and 8 by -1: sd = sqrt(16 / 23) = .834058, tanh(1.198958) = .833336.
HEADED = [
    {
        "score": float(i < 2 + more),
        "anchor_header": 1,
        "target_header": 1 + more,
        "anchor_list": 2,
        "target_list": 2,
        "anchor_bold": 0,
        "target_bold": 0,
    }
    for more in (-1, 0, 1)
    for i in range(4)
]


def test_a_kind_by_hand(make_contests: Make) -> None:
    found = rows(make_contests(HEADED))
    assert found["header_effect", ""]["estimate"] == pytest.approx(1.0986123 / 0.8333365, abs=2e-6)
    assert found["style_controlled", "bee"]["estimate"] == pytest.approx(0, abs=1e-9)
    # Lists and bold words do not differ; of a rest nothing is known.
    assert {name for name, _ in found} == {
        "bt_strength",
        "style_controlled",
        "order_effect",
        "header_effect",
    }


def test_kinds_that_go_together_are_one(make_contests: Make) -> None:
    # A list item more for each heading more: the two cannot be told apart, their sum can.
    alike = [row | {"target_list": row["target_header"] + 1} for row in HEADED]
    found = rows(make_contests(alike))
    assert {name for name, _ in found if name.endswith("_effect")} == {
        "order_effect",
        "markup_effect",
    }
    assert found["markup_effect", ""]["estimate"] == pytest.approx(1.0986123 / 0.8333365, abs=2e-6)


def test_contests_of_unknown_kinds_stay_out(make_contests: Make) -> None:
    old = {"score": 1.0, "anchor_markup": 1, "target_markup": 2}
    found = rows(make_contests([*HEADED, old, old]))
    row = found["header_effect", ""]
    assert (row["n"], row["dropped"]) == (12, 2)
    assert row["estimate"] == pytest.approx(1.0986123 / 0.8333365, abs=2e-6)


def test_a_difference_of_1_in_all_is_scaled_too(make_contests: Make) -> None:
    # Eight votes by 1 and -1 each: sd = sqrt(16 / 15) = 1.032796, tanh(.968246) = .747932.
    found = rows(make_contests([row for row in HEADED if row["target_header"] != 1]))
    assert found["header_effect", ""]["estimate"] == pytest.approx(1.0986123 / 0.7479324, abs=2e-6)


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


def test_ties_alone_are_not_fitted(make_contests: Make) -> None:
    ties = [row | dict.fromkeys(("score", "score_12", "score_21"), 0.5) for row in data(30)]
    found = rows(make_contests(ties))
    assert {(row["estimate"], row["reason"]) for row in found.values()} == {
        (None, "all contests are ties: nothing to fit")
    }
