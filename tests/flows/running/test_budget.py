"""A budget that cannot hold is refused before anything is asked."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.running import readiness
from flows.running.readiness import again_line, budget_line, without_bounds
from flows.studies import STUDIES, Study, make_study
from tasks.providers import Judge, Provider, UsdPerMillion
from warehouse.store import Warehouse

NAME = "desk/one"
PRICE = UsdPerMillion(prompt=1, completion=2)
Make = Callable[..., Study]


class Catalogue(dict[str, Any]):
    files = {"desk": Path("somewhere/desk.toml")}


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a study with a budget, of one judge."""

    def make(
        budget: float | None = 5,
        dropped: tuple[str, ...] = (),
        *,
        simulated: bool = False,
        **judge: Any,
    ) -> Study:
        one = Judge(**{"judge": NAME, "provider": "desk", "model": "hosted_vllm/one", **judge})
        monkeypatch.setattr(readiness, "JUDGES", {NAME: one})
        monkeypatch.setattr(readiness, "PROVIDERS", Catalogue())
        monkeypatch.setattr(readiness, "provider_of", lambda _: Provider(simulated=simulated))
        monkeypatch.setattr("tasks.judge.dropped_params", lambda *_: {NAME: [*dropped]})
        return Study(judges=[NAME], budget_usd=budget)

    return make


@pytest.mark.parametrize(
    "judge",
    [
        {"params": {"max_tokens": 9}, "usd_per_million": PRICE},
        {"params": {"max_completion_tokens": 9}, "model": "openai/gpt-4o"},
        {"simulated": True},
        {"budget": None},
    ],
)
def test_a_cost_with_a_bound_is_let_through(study: Make, judge: dict[str, Any]) -> None:
    assert without_bounds(study(**judge)) == {}


PRICELESS = "no known price (usd_per_million = { prompt = ..., completion = ... }, in US dollars)"
ENDLESS = "no max_tokens (params = { max_tokens = ... })"


@pytest.mark.parametrize(
    ("judge", "missing"),
    [
        ({}, f"{PRICELESS} and {ENDLESS}"),
        ({"params": {"max_tokens": 9}}, PRICELESS),
        ({"usd_per_million": PRICE}, ENDLESS),
        (
            {"usd_per_million": PRICE, "params": {"max_tokens": 9}, "dropped": ("max_tokens",)},
            "no max_tokens that is sent (params = { max_tokens = ... })",
        ),
    ],
)
def test_what_is_missing_is_named(study: Make, judge: dict[str, Any], missing: str) -> None:
    assert without_bounds(study(**judge)) == {
        NAME: "the budget of 5 USD cannot hold, because a call's cost has no bound: "
        f"hosted_vllm/one has {missing}; give it in desk.toml, or ask without a budget"
    }


@pytest.mark.parametrize(
    ("usd", "most", "said"),
    [
        (6.0, 9.0, "is exceeded by the estimate (6.00 USD, at most 9.00)"),
        (5.0, 9.0, "covers the estimate (5.00 USD, at most 9.00), but not the highest"),
        (1.0, 5.0, "covers the estimate and the highest possible cost (1.00 USD"),
        (None, 5.0, "cannot be compared with the cost, which is unknown"),
        (1.0, None, "cannot be compared with the cost, which is unknown"),
    ],
)
def test_a_budget_suffices_or_not(usd: float | None, most: float | None, said: str) -> None:
    assert budget_line(5.0, usd, most).startswith(f"The budget of 5 USD {said}")


def test_amounts_that_differ_differ_as_they_are_shown() -> None:
    assert budget_line(0.02, 0.0052, 0.0203).startswith(
        "The budget of 0.02 USD covers the estimate (0.0052 USD, at most 0.0203), but not"
    )


def test_a_run_may_spend_its_budget_again(study: Make, tmp_path: Path) -> None:
    place = tmp_path / "v.duckdb"
    Warehouse(place).save([], run="r", study="quick")
    again = "run the same command again: it asks only the missing ballots"
    assert again_line(study(), place) == f"{again}, and may spend up to 5 USD again"
    free = study().model_copy(update={"budget_usd": None})
    assert again_line(free, place) == again
    nightly = free.model_copy(update={"wave": "2026-11-29T20:33+00:00"})
    assert again_line(nightly, place) == (
        "run the same command with --wave 2026-11-29T20:33+00:00 again: it asks only the missing "
        "ballots"
    )


@pytest.mark.parametrize("budget", [math.inf, math.nan])
def test_a_budget_is_a_finite_number(budget: float) -> None:
    with pytest.raises(
        ValueError, match=r"budget_usd is (inf|nan), but must be a finite number, above 0\."
    ):
        make_study("quick", {"budget_usd": budget})
    with pytest.raises(ValueError, match="finite number"):
        UsdPerMillion(prompt=math.inf, completion=0)


def test_what_runs_by_itself_has_a_budget_that_can_hold() -> None:
    studies = [file.study for file in STUDIES.values() if file.cron]
    assert studies
    for study in studies:
        assert study.budget_usd is not None
        assert without_bounds(study) == {}
