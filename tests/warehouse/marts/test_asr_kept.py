from collections.abc import Callable

from schemas.judging import VoteLog
from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
Concluded = Callable[..., list[Saving]]
WHOLE = {"perturbation": None, "kind": None, "mode": "any", "clusters": 20}


def test_means_with_and_without_the_judges_left_out(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    rows = [
        {"judge": "a", "statistic": "asr", "estimate": 0.2},
        {"judge": "a", "statistic": "sham_floor", "estimate": 0.1},
        {"judge": "b", "statistic": "asr", "estimate": 0.4},
        {"judge": "c", "statistic": "asr", "estimate": 0.9},
        {"judge": "c", "statistic": "sham_floor", "estimate": 0.5},
        {"judge": "a", **WHOLE, "statistic": "tie_rate", "estimate": 0.1, "low": 0.05},
        {"judge": "c", **WHOLE, "statistic": "tie_rate", "estimate": 0.95, "low": 0.85},
    ]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    (found,) = warehouse.query("select * from mart.asr_kept").to_dicts()
    assert (found["judges"], found["judges_kept"]) == (3, 2)
    assert (round(found["asr"], 9), round(found["asr_kept"], 9)) == (0.5, 0.3)
    assert (round(found["sham_floor"], 9), found["sham_floor_kept"]) == (0.3, 0.1)
    assert (found["dasr"], found["dasr_kept"]) == (None, None)
    assert found["left_out"] == "c (tie rate)"
    each = warehouse.query("select judge, excluded, excluded_for from mart.asr order by judge")
    # The gap and the invalid votes of a were not measured: with ties in bounds it is unknown.
    assert each.rows() == [("a", None, None), ("b", None, None), ("c", True, "tie rate")]


def test_nobody_left_out(warehouse: Warehouse, make: Make, concluded: Concluded) -> None:
    warehouse.save(concluded(make(Estimates, {"estimate": 0.25})), run="r1", study="quick")
    found = warehouse.query(
        "select judges, asr, judges_kept, asr_kept, left_out from mart.asr_kept"
    )
    assert found.rows() == [(1, 0.25, 1, 0.25, None)]


def test_people_are_no_judges_of_the_mean(
    warehouse: Warehouse,
    make: Make,
    concluded: Concluded,
    make_vote_log: Callable[..., object],
) -> None:
    # One vote per pair, as people give: a row of their own would show the means of models.
    rows = [
        {"judge": "a", "statistic": "asr", "estimate": 0.25, "votes_per_pair": 2},
        {"judge": "people/ann", "statistic": "asr", "estimate": 0.75, "votes_per_pair": 1},
    ]
    voters = [{"judge": "people/ann", "human": True}, {"judge": "a", "human": None}]
    log = make_vote_log([{"dataset": "d", **voter} for voter in voters])
    frames = [make(Estimates, *rows), Saving(VoteLog, log)]  # type: ignore[arg-type]
    warehouse.save(concluded(*frames), run="r1", study="quick")
    found = warehouse.query("select votes_per_pair, judges, asr from mart.asr_kept")
    assert found.rows() == [(2, 1, 0.25)]


def test_rates_of_unequal_votes_are_not_averaged(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    rows = [
        {"judge": judge, "statistic": "asr", "estimate": estimate, "votes_per_pair": votes}
        for judge, estimate, votes in (("a", 0.2, 2), ("b", 0.4, 6), ("c", 0.6, 6))
    ]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    found = warehouse.query(
        "select votes_per_pair, judges, asr from mart.asr_kept order by votes_per_pair"
    )
    assert found.rows() == [(2, 1, 0.2), (6, 2, 0.5)]


def test_means_have_the_intervals_of_their_own_estimates(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    def of(name: str, low: float, high: float, subgroup: str = "") -> dict[str, object]:
        middle = (low + high) / 2
        return {
            "judge": "judges/all",
            "statistic": f"mean_{name}",
            "subgroup": subgroup,
            "estimate": middle,
            "low": low,
            "high": high,
        }

    rates = [
        {"judge": judge, "statistic": "asr", "estimate": at}
        for judge, at in (("a", 0.25), ("b", 0.75))
    ]
    means = [of("asr", 0.25, 0.75), of("asr", 0.125, 0.375, "kept"), of("shift", 0.0, 0.5)]
    warehouse.save(concluded(make(Estimates, *rates, *means)), run="r1", study="quick")
    (found,) = warehouse.query("select * from mart.asr_kept").to_dicts()
    shown = ("asr", "asr_low", "asr_high", "asr_kept", "asr_kept_low", "asr_kept_high")
    assert tuple(found[c] for c in shown) == (0.5, 0.25, 0.75, 0.25, 0.125, 0.375)
    assert (found["shift"], found["shift_low"], found["shift_high"]) == (0.25, 0.0, 0.5)
    warehouse.save(concluded(make(Estimates, *rates, means[0])), run="r1", study="quick")
    (found,) = warehouse.query("select * from mart.asr_kept").to_dicts()
    # Nobody is left out: both are the same.
    assert (found["asr_kept_low"], found["asr_kept_high"]) == (0.25, 0.75)


def test_formulas_are_averaged_only_where_all_judges_are(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    rates = [
        {
            "judge": judge,
            "perturbation": change,
            "statistic": "asr",
            "estimate": estimate,
            "simulated": mark,
        }
        for judge, change, estimate, mark in (
            ("ada", "boast", 0.25, False),
            ("bob", "boast", 0.75, None),
            ("toy", "boast", 1.0, True),
            ("toy", "calm", 0.5, True),
        )
    ]
    warehouse.save(concluded(make(Estimates, *rates)), run="r1", study="quick")
    found = warehouse.query(
        "select perturbation, judges, asr, simulated from mart.asr_kept order by perturbation"
    )
    assert found.rows() == [("boast", 2, 0.5, False), ("calm", 1, 0.5, True)]
