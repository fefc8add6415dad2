"""What statistics declare of their rows, and what follows from other rows and from methods."""

from collections.abc import Callable
from typing import Any, get_args

import polars as pl
import pytest

from schemas.calibration import Ratings
from schemas.judging import VoteLog
from schemas.results import FLOORS
from tasks.counting import question_order
from tasks.inference import bootstrap
from tasks.statistics import (
    OWN_AUTHOR,
    STATISTICS,
    Family,
    Statistic,
    Unit,
    dasr_posterior,
    filled_columns,
    lacking,
    lacking_line,
    statistic,
    with_floors,
)

Make = Callable[..., Any]


def test_every_row_has_a_family_and_a_unit() -> None:
    rows = [row for entry in STATISTICS.values() for row in entry.rows.values()]
    assert {row["family"] for row in rows} <= {*get_args(Family)}
    assert {row["unit"] for row in rows} <= {*get_args(Unit)}
    assert {row["floor"] for row in rows} >= {None, *FLOORS}


def test_what_a_statistic_needs_is_an_optional_column() -> None:
    optional, of_ratings = (
        {name for name, column in model.to_schema().columns.items() if column.nullable}
        for model in (VoteLog, Ratings)
    )
    for entry in STATISTICS.values():
        assert {*entry.needs} <= (of_ratings if entry.of_ratings else optional | {OWN_AUTHOR})
    assert lacking(of_ratings, single=True) == {}
    assert lacking(of_ratings - {"passes_at"}, single=True) == {"near_threshold": ("passes_at",)}
    assert lacking(optional | {OWN_AUTHOR}) == {}
    assert lacking(optional) == {"self_score_error": (OWN_AUTHOR,)}
    assert lacking(optional - {"anchor_author"})["self_score_error"] == ("anchor_author",)
    assert lacking_line(optional) == (
        "Not computed: self_score_error needs an author that is named like a judge, provider/model."
    )
    assert lacking((optional | {OWN_AUTHOR}) - {"label"}).keys() == {
        "accuracy",
        "accuracy_change",
        "jury_errors",
    }


def test_an_author_may_be_named_like_a_judge() -> None:
    log = pl.DataFrame({"judge": ["a/x", "b/y"], "anchor_author": ["b/y", None]})
    other = log.with_columns(target_author=pl.lit("c/z"))
    assert OWN_AUTHOR in filled_columns(other)
    assert OWN_AUTHOR not in filled_columns(log)
    assert OWN_AUTHOR not in filled_columns(other.with_columns(judge=pl.lit("d/w")))


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("", {}),
        ("no vote", {"one": "no vote", "two": "no vote"}),
        ({"two": "no vote"}, {"two": "no vote"}),
    ],
)
def test_reasons_are_those_of_all_rows_or_of_some(missing: Any, expected: Any) -> None:
    for what in ("missing", "no_interval"):
        declare = statistic(
            source="a test", family="effect", gives=("one", "two"), **{what: missing}
        )
        assert getattr(declare(lambda shifts: shifts), what) == expected


def test_a_reason_for_a_row_that_is_not_given_is_an_error() -> None:
    declare = statistic(
        source="a test", family="effect", gives=("one", "two"), missing={"too": "no vote"}
    )
    with pytest.raises(ValueError, match=r"reason for the row 'too', .* Its rows: one, two"):
        declare(lambda shifts: shifts)


def test_a_row_differs_where_it_says_so() -> None:
    @statistic(
        source="a test",
        family="effect",
        gives=("one", "two"),
        floor="sham",
        rows={"two": {"unit": "logit", "null": 0.0}},
    )
    def one(shifts: pl.DataFrame) -> Any:
        """Do nothing."""
        return shifts

    assert one.rows == {
        "one": {"family": "effect", "unit": "share", "null": None, "floor": "sham"},
        "two": {"family": "effect", "unit": "logit", "null": 0.0, "floor": "sham"},
    }


FEW = "fewer than 10 independent questions"


@pytest.mark.parametrize(
    ("beside", "asked", "endpoint"),
    [
        ([], None, None),
        ([{"statistic": "mps"}], None, None),
        ([{"statistic": "mps_sham"}], "sham", "sham"),
        ([{"statistic": "jury_mps_sham"}], "sham", "sham"),
        # The primary endpoint is over the control where only that has enough questions,
        ([{"statistic": "mps"}, {"statistic": "mps_sham", "too_few": FEW}], "sham", None),
        (
            [{"statistic": "mps", "too_few": FEW}, {"statistic": "mps_sham", "too_few": FEW}],
            "sham",
            "sham",
        ),
        # and pairs of judges tell over which arm all of them are.
        ([{"statistic": "mps_sham"}, {"statistic": "mps_contrast"}], "sham", None),
        (
            [
                {"statistic": "mps", "too_few": None},
                {"statistic": "mps_sham", "too_few": FEW},
                {"statistic": "mps_sham_contrast", "too_few": FEW},
            ],
            "sham",
            "sham",
        ),
    ],
)
def test_a_floor_may_depend_on_other_rows(
    beside: list[dict[str, Any]], asked: str | None, endpoint: str | None
) -> None:
    cell = {"dataset": "d", "prompt": "p", "wave": "", "mode": "balanced", "perturbation": "boast"}
    rows = [
        {"statistic": "asr", "floor": "sham if asked"},
        {"statistic": "rank", "floor": "as the primary endpoint"},
        {"statistic": "dasr", "floor": "sham"},
        {"statistic": "tie_rate"},
        {"statistic": "asr", "floor": "sham if asked", "perturbation": "other"},
    ]
    plain = {"floor": None, "too_few": None, **cell}
    frame = pl.DataFrame(
        [{**plain, **row} for row in (*rows, *beside)],
        schema_overrides={"floor": pl.String, "too_few": pl.String},
    )
    found = with_floors(frame)
    assert found.columns == frame.columns
    assert found["floor"].to_list()[:5] == [asked, endpoint, "sham", None, None]


@pytest.mark.parametrize(
    ("row", "seed"),
    [
        ({"boot_low": 0.1}, bootstrap.SEED),
        ({"boot_low": 0.1, "seed": 7}, 7),
        ({"seed": 7}, 7),
        # The text of the method decides nothing.
        ({"method": "cluster bootstrap, 2000 draws"}, None),
        ({"method": "9999 random swaps"}, None),
    ],
)
def test_bootstrap_bounds_have_a_seed_and_so_has_what_a_statistic_draws_itself(
    make_estimates: Make, row: dict[str, Any], seed: int | None
) -> None:
    def measure(shifts: pl.DataFrame) -> Any:
        return shifts

    own = Statistic("asr", {"asr": {}}, ("shifts",), "a test", measure, "")
    found = own.draft(shifts=make_estimates([{"statistic": "asr", **row}]))
    assert found["seed"].to_list() == [seed]


def test_sequences_and_posteriors_have_seeds_of_their_own(make_shifts: Make) -> None:
    rows = [{"control": "anchor", "sham": "anchor", "experimental": "target"}] * 12
    shifts = make_shifts(rows)
    for name in ("e_process", "sequential_looks"):
        found = STATISTICS[name](shifts=shifts)
        assert set(found["seed"]) == {question_order.SEED}
        assert set(found["floor"]) == {"sham"}
    assert set(STATISTICS["dasr_posterior"](shifts=shifts)["seed"]) == {dasr_posterior.SEED}
