from collections.abc import Callable
from pathlib import Path
from typing import Any

from flows.publishing.pages import saved_votes
from flows.results.vote_summary import probed_line
from flows.studies import Study
from schemas.judging import VoteLog
from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]


def test_votes_of_people_and_of_a_judge_that_repeats_itself(
    make_vote_log: Make, make_estimates: Make, tmp_path: Path
) -> None:
    cast = [
        {
            "judge": "offline/x",
            "sample": sample,
            "shown_first": shown,
            "repeat": repeat,
            "choice": "tie" if (sample, shown, repeat) == ("s1", "anchor", 1) else "first",
        }
        for sample in ("s1", "s2")
        for shown in ("anchor", "target")
        for repeat in range(2)
    ]
    spared = {"judge": "offline/x", "sample": "s3", "choice": None, "stopped": "deterministic"}
    once = [{"judge": "offline/x", "sample": "s3", "shown_first": "anchor", "repeat": 0}]
    people = [
        {"judge": f"people/{who}", "sample": f"s{at}", "choice": choice, "human": True}
        for who in ("ann", "bob")
        for at, choice in enumerate(["first", "second", "invalid", "abstain"])
    ]
    rows: list[dict[str, Any]] = [
        *cast,
        *once,
        {**spared, "shown_first": "anchor", "repeat": 1},
        *people,
    ]
    store = Warehouse(tmp_path / "w.duckdb")
    log = make_vote_log([{"stopped": None, "human": False, **row} for row in rows])
    store.save(
        [Saving(VoteLog, log), Saving(Estimates, make_estimates([{"estimate": 0.2}]))],
        run="r",
        study="s",
    )
    assert probed_line(store, "s") == (
        "offline/x repeated its vote in 3 of 4 probes: it was asked one vote per order"
    )
    facts = saved_votes(store, Study(name="s"), "", 10)
    assert facts.people == ("2 people, 8 votes; excluded: 2 too fast (below 3 s), 2 not familiar.")
    assert facts.probed == f"{probed_line(store, 's')}."
    assert facts.numbers is not None
    assert facts.numbers["statistic"].to_list() == ["mps"]
    others = saved_votes(store, Study(name="other"), "", 10)
    assert (others.probed, others.people) == ("", "")
    assert others.numbers is not None
    assert others.numbers.is_empty()
    assert others.examples is not None
    assert others.examples.is_empty()
