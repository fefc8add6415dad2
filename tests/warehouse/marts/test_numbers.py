import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import product
from typing import Any

import polars as pl
import pytest

from schemas.conclusions import PanelMembers, Waves
from schemas.judging import Prompts, Tallies, VoteLog
from schemas.results import MEASURES, Contrasts, Drifts, Estimates, Exclusions, Findings
from tasks.conclusions.comparisons import contrasts
from tasks.conclusions.exclusions import with_exclusions
from tasks.panels.members import panel_members
from tasks.panels.panels import people_of
from tasks.prompts import PROMPTS
from tasks.statistics import STATISTICS
from warehouse._ddl import MARTS
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
Concluded = Callable[..., list[Saving]]
Row = dict[str, Any]

NAMES = [name for entry in STATISTICS.values() for name in entry.gives]
PLACES = list(product(("balanced", "any"), ("padding", None), ("", "ant vs bee", "3/3")))
"""Mode, perturbation and subgroup: a mart shows what is of its grain."""
BARE = {
    "e_value",
    "e_stop",
    "sequential_stop",
    "tier",
    "random_baseline",
    "random_baseline_coin",
    "dasr_posterior",
    "bias_bound",
    "tipping_shift",
    "label_correlation",
    "effective_labels",
    "labels_needed",
    "verdict_drift",
    "category_spread",
}
"""Statistics that have no interval, whatever the data."""


OF_CALIBRATION = {"mean_jaccard", "label_kappa"}
"""Measures of agreement that `voirdire calibrate` alone gives."""


def values(number: int, name: str) -> Row:
    """Return numbers that no other statistic has."""
    found: Row = {"estimate": number + 0.5, "low": number + 0.25, "high": number + 0.75}
    return {"estimate": number + 0.5} if name in BARE else found


def rows() -> Iterator[Row]:
    for number, name in enumerate(NAMES, 1):
        sizes = {"n": 1000 + number, "clusters": 2000 + number, "reason": f"because {name}"}
        for mode, perturbation, subgroup in PLACES:
            cell = {"mode": mode, "perturbation": perturbation, "subgroup": subgroup}
            kind = "promote" if perturbation else None
            row = {"statistic": name, **cell, "kind": kind}
            yield row | values(number, name) | sizes


@pytest.fixture
def full(warehouse: Warehouse, make: Make) -> Warehouse:
    """Return a warehouse with each statistic of the catalogue wherever it may stand."""
    drifts = [
        {
            "measure": name,
            "low": None,
            "high": None,
            **values(at, name),
            "n": 1000 + at,
            "clusters": 2000 + at,
            "reason": f"because {name}",
        }
        for at, name in enumerate(NAMES, 1)
        if name in MEASURES
    ]
    estimates = make(Estimates, *rows())
    pairs = estimates.frame.filter(pl.col("subgroup") != "", pl.col("perturbation").is_not_null())
    compared = Saving(Contrasts, contrasts(Estimates.of(pairs)))
    people = people_of(Tallies.empty())
    members = panel_members(Estimates.of(estimates.frame), Exclusions.empty(), people)
    panel = Saving(PanelMembers, members)
    saved = [estimates, compared, panel, make(Drifts, *drifts), make(Waves)]
    warehouse.save(saved, run="r1", study="quick")
    return warehouse


def test_every_statistic_is_there_with_what_it_rests_on(full: Warehouse) -> None:
    found = full.query(
        "select distinct statistic, estimate, low, high, n, clusters, reason from mart.numbers"
    )
    expected = {
        (
            name,
            *(values(at, name).get(c) for c in ("estimate", "low", "high")),
            1000 + at,
            2000 + at,
            f"because {name}",
        )
        for at, name in enumerate(NAMES, 1)
    }
    assert set(found.rows()) == expected
    lost = full.query(
        "select count(*) as n from estimates anti join mart.numbers using (statistic)"
    )
    assert lost["n"].item() == 0


def test_a_statistic_that_a_wide_mart_names_is_shown_in_one(full: Warehouse) -> None:
    # Other marts show results that are concluded from several estimates.
    wide = [
        file
        for file in sorted(MARTS.glob("*.sql"))
        if file.stem != "numbers" and "from estimates" in file.read_text(encoding="utf-8")
    ]
    text = "".join(file.read_text(encoding="utf-8") for file in wide)
    lists = re.findall(r"statistic (?:=|in) \(?((?:\s*'\w+',?)+)", text)
    named = {name for some in lists for name in re.findall(r"\w+", some)}
    # No name is misspelt, and a new statistic need not be in any of these marts.
    assert named - {*NAMES} == OF_CALIBRATION
    shown = [set(row) for file in wide for row in full.query(f"from mart.{file.stem}").rows()]
    missing = [
        name
        for number, name in enumerate(NAMES, 1)
        if name in named and not any({*values(number, name).values()} <= row for row in shown)
    ]
    assert not missing


def test_a_family_and_a_whole_row(warehouse: Warehouse, make: Make) -> None:
    row = {
        "statistic": "position_gap",
        "family": "position",
        "perturbation": None,
        "kind": None,
        "estimate": 0.1,
    }
    other = {"statistic": "asr", "family": "effect"}
    warehouse.save([make(Estimates, row, other)], run="r1", study="quick")
    found = warehouse.query("select family, statistic, subgroup, n from mart.numbers order by 1")
    assert found.rows() == [("effect", "asr", None, 4), ("position", "position_gap", None, 4)]


RUN = {
    "run": "r1",
    "flow": "audit",
    "study": "quick",
    "user": "ada",
    "process": "lab/1",
    "parameters": '{"seed": 7}',
    "fingerprint": "f",
    "code_version": "0.1.0+abc",
    "started_at": datetime(2024, 11, 13, tzinfo=UTC),
    "state": "completed",
}
VOTE = {
    "dataset": "d",
    "judge": "offline/honest",
    "prompt": "pair_v1",
    "wave": "",
    "arm": "control",
    "cluster": "q",
    "shown_first": "anchor",
    "repeat": 0,
    "choice": "first",
}


def log(*orders: tuple[str, str]) -> Saving:
    """Return votes on samples, each shown in an order."""
    rows = [{**VOTE, "sample": sample, "shown_first": first} for sample, first in orders]
    return Saving(VoteLog, VoteLog.of(pl.DataFrame(rows)))


def of(warehouse: Warehouse, columns: str, statistic: str) -> list[tuple[Any, ...]]:
    query = f"select {columns} from mart.numbers where statistic = ? order by all"
    return warehouse.query(query, [statistic]).rows()


def test_what_became_of_ballots_is_that_of_the_perturbation(
    warehouse: Warehouse, make: Make
) -> None:
    judge = {"perturbation": None, "kind": None}
    rows = [
        {},
        {"statistic": "tie_rate", **judge},
        {"statistic": "valid_rate", "hits": 30, "n": 40},
        {"statistic": "invalid_rate", "estimate": 0.25},
        {"statistic": "valid_rate", "hits": 90, "n": 100, **judge},
        {"statistic": "invalid_rate", "estimate": 0.1, **judge},
        {"statistic": "jury_asr", "judge": "jury/all"},
    ]
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    assert of(warehouse, "votes, invalid_rate", "asr") == [(30, 0.25)]
    assert of(warehouse, "votes, invalid_rate", "tie_rate") == [(90, 0.1)]
    # A jury has no ballots of its own.
    assert of(warehouse, "votes, invalid_rate", "jury_asr") == [(None, None)]


@pytest.mark.parametrize(
    ("orders", "design"),
    [
        ([("s1", "anchor"), ("s1", "target"), ("s2", "anchor"), ("s2", "target")], "balanced"),
        # As often in each order, but not each pair
        ([("s1", "anchor"), ("s2", "target")], "random"),
    ],
)
def test_the_design_is_that_of_each_pair(
    warehouse: Warehouse,
    make: Make,
    concluded: Concluded,
    orders: list[tuple[str, str]],
    design: str,
) -> None:
    warehouse.save(concluded(make(Estimates), log(*orders)), run="r1", study="quick")
    assert of(warehouse, "design, votes_per_pair", "asr") == [(design, 2)]


def test_an_adjusted_p_is_of_its_family_and_says_how(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    ten = {"n": 10, "clusters": 10}
    contrast = {"statistic": "mps_contrast", "standard_error": 0.1, **ten}
    rows = [
        {"statistic": "mps", "p_value": 0.01},
        {"statistic": "mps_sham"},
        # Holm of .01 and .03 is .02 and .03; half of the 90 % interval is .18
        {**contrast, "subgroup": "bob", "p_value": 0.01, "estimate": 0.5},
        {**contrast, "subgroup": "eve", "p_value": 0.03, "estimate": 0.01},
        {"statistic": "mps_drift", "family": "drift", "wave": "n2", "subgroup": "n1"},
    ]
    savings = [make(Estimates, *rows), make(Findings), make(Drifts), make(Waves)]
    warehouse.save(concluded(*savings), run="r1", study="quick")
    shown = "subgroup, p_adjusted, adjustment, finding"
    assert of(warehouse, shown, "mps") == [
        (None, 0.02, "Benjamini-Hochberg, all cells (F1)", "biased")
    ]
    # Not the primary endpoint of this cell
    assert of(warehouse, shown, "mps_sham") == [(None, None, None, None)]
    assert of(warehouse, shown, "mps_contrast") == [
        ("bob", 0.02, "Holm, all pairs of judges (F2)", "biased"),
        ("eve", 0.03, "Holm, all pairs of judges (F2)", "inconclusive"),
    ]
    assert of(warehouse, shown, "mps_drift") == [
        ("n1", 0.002, "Holm, all cells of the wave (F4)", None)
    ]


def test_a_contrast_of_two_prompts_has_its_adjusted_p_and_its_finding(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    ten = {"n": 10, "clusters": 10, "statistic": "mps_contrast", "standard_error": 0.1}
    pair = {"judge": "ann", "prompt": "mild", **ten}
    rows = [
        {**pair, "subgroup": "ann / stern", "p_value": 0.01, "estimate": 0.5},
        {**pair, "subgroup": "bob", "p_value": 0.03, "estimate": 0.01},
    ]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    assert of(warehouse, "subgroup, p_adjusted, p_holm, finding", "mps_contrast") == [
        ("ann / stern", 0.02, 0.02, "biased"),
        ("bob", 0.03, 0.03, "inconclusive"),
    ]


def test_a_finding_of_a_flaw_is_a_word_of_its_own(warehouse: Warehouse, make: Make) -> None:
    flaw = {"kind": "detract", "perturbation": "error", "p_adjusted": 0.26}
    rows = [{}, {"kind": "detract", "perturbation": "error"}]
    found = make(Findings, {}, {**flaw, "finding": "overlooks"})
    estimates = make(Estimates, *({"statistic": "mps", **row} for row in rows))
    warehouse.save([estimates, found], run="r1", study="quick")
    assert of(warehouse, "perturbation, p_adjusted, finding", "mps") == [
        ("error", 0.26, "overlooks"),
        ("padding", 0.02, "biased"),
    ]


def test_other_adjustments_are_of_the_primary_endpoint_only(
    warehouse: Warehouse, make: Make
) -> None:
    beside = {"p_holm": 0.03, "p_by": 0.04, "e_rejected": True, "shrunk": 0.1, "shrunk_error": 0.2}
    rows = make(Estimates, {"statistic": "mps"}, {"statistic": "mps_sham"})
    warehouse.save([rows, make(Findings, beside)], run="r1", study="quick")
    assert of(warehouse, ", ".join(beside), "mps") == [(*beside.values(),)]
    assert of(warehouse, ", ".join(beside), "mps_sham") == [(None,) * 5]


def test_an_alert_begins_an_epoch(warehouse: Warehouse, make: Make, concluded: Concluded) -> None:
    waves = [{"wave": wave} for wave in ("n1", "n2", "n3", "n4")]
    drifts = [
        {"wave": "n2", "state": "suspect"},
        {"wave": "n3", "state": "alert"},
        {"wave": "n4", "base": "n3", "epoch": 2, "state": "quiet"},
    ]
    one = log(("s", "anchor")).frame
    votes = pl.concat(one.with_columns(wave=pl.lit(row["wave"])) for row in waves)
    savings = [make(Estimates, *waves), make(Drifts, *drifts), Saving(VoteLog, votes)]
    warehouse.save(concluded(*savings), run="r1", study="quick")
    assert of(warehouse, "wave, epoch", "asr") == [("n1", 1), ("n2", 1), ("n3", 2), ("n4", 2)]
    warehouse.save([make(Estimates)], run="r1", study="once")
    assert warehouse.query("select epoch from mart.numbers where study = 'once'").rows() == [
        (None,)
    ]


def test_a_drift_is_that_since_the_baseline_of_its_epoch(warehouse: Warehouse, make: Make) -> None:
    whole = {"perturbation": None, "kind": None, "mode": "any"}
    since_first = {"statistic": "mps_drift", "subgroup": "n1", "family": "drift"}
    rows = [
        *({"wave": wave} for wave in ("n1", "n2", "n3", "n4")),
        {"wave": "n2", **since_first, "estimate": 0.4, "standard_error": 0.01, "dropped": 3},
        # The first wave is of another epoch.
        {"wave": "n4", **since_first, "estimate": 0.43, "p_value": 2e-23},
        {"wave": "n4", **since_first, "statistic": "verdict_drift", "estimate": 0.5, **whole},
    ]
    of_replies = {"low": None, "high": None, "p_value": 0.5, "mode": "any", "perturbation": None}
    of_replies["seed"] = 3
    later = {"wave": "n4", "base": "n3", "epoch": 2, "p_adjusted": 0.6, "state": "quiet"}
    drifts = [
        {"wave": "n2", "estimate": 0.4},
        {"wave": "n3", "estimate": 0.41, "state": "alert", "dropped": 1},
        {**later, "estimate": 0.04, "p_value": 0.3, "votes_per_pair": 4, "dropped": 0},
        *(
            {**later, **of_replies, "measure": f"{name}_drift", "estimate": 0.0}
            for name in ("verdict", "text", "token")
        ),
    ]
    waves = [
        {"wave": "n1", "since_baseline": False},
        {"wave": "n2"},
        {"wave": "n3", "epoch": 2},
        {"wave": "n4", "epoch": 2},
    ]
    savings = [make(Estimates, *rows), make(Drifts, *drifts), make(Waves, *waves)]
    warehouse.save(savings, run="r1", study="quick")
    shown = "wave, subgroup, epoch, estimate, p_value, p_adjusted, votes_per_pair, dropped, method"
    assert of(warehouse, shown, "mps_drift") == [
        ("n2", "n1", 1, 0.4, 0.001, 0.002, 2, 3, "paired cluster t"),
        ("n3", "n1", 1, 0.41, 0.001, 0.002, 2, 1, "paired cluster t"),
        ("n4", "n3", 2, 0.04, 0.3, 0.6, 4, 0, "paired cluster t"),
    ]
    canary = ("drift", "n4", "n3", 2, 0.0, 0.5, 0.6, "Holm, all cells of the wave (F4)", 3)
    for name in ("verdict_drift", "text_drift", "token_drift"):
        found = of(
            warehouse,
            "family, wave, subgroup, epoch, estimate, p_value, p_adjusted, adjustment, seed",
            name,
        )
        assert found == [canary]


def test_what_a_statistic_declares_stands_beside_its_rows(warehouse: Warehouse, make: Make) -> None:
    declared = {"unit": "score", "null_value": 0.0, "floor": "sham", "seed": 7}
    warehouse.save([make(Estimates, declared)], run="r1", study="quick")
    assert of(warehouse, ", ".join(declared), "asr") == [(*declared.values(),)]


def test_code_and_prompt_are_reported_and_the_seed_of_the_study(
    warehouse: Warehouse, make: Make
) -> None:
    form = PROMPTS["pair_v1"]
    text = {name: getattr(form, name) for name in Prompts.dtypes()}
    warehouse.save([make(Prompts, text)], run="r1")
    shown = "code_version, prompt_digest, study_seed"
    measured = {"run": "r2", "flow": "measure", "study": "votes", "parameters": "{}"}
    for row in ({"run": "r1", "flow": "audit", "study": "quick"}, measured):
        run, study = row["run"], row["study"]
        warehouse.start_run({**RUN, **row})
        warehouse.save([make(Estimates)], run=run, study=study)
    # A file of votes names a prompt, and nobody knows its text.
    assert of(warehouse, f"study, {shown}", "asr") == [
        ("quick", "0.1.0+abc", form.digest, 7),
        ("votes", "0.1.0+abc", None, None),
    ]


def test_a_judge_that_is_left_out_is_marked_on_its_rates(warehouse: Warehouse, make: Make) -> None:
    whole = {"perturbation": None, "kind": None, "n": 20, "clusters": 20}
    rows = [
        {},
        {"statistic": "mps"},
        {"statistic": "tie_rate", "estimate": 0.95, "low": 0.9, "high": 1.0, **whole},
    ]
    marked = Saving(Estimates, with_exclusions(make(Estimates, *rows).frame))
    warehouse.save([marked], run="r1", study="quick")
    assert of(warehouse, "excluded", "asr") == [(True,)]
    assert of(warehouse, "excluded", "mps") == [(None,)]
