"""The command that repeats an audit names the options that it was given."""

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flows.cli.main import main
from flows.running.run_row import first_row
from flows.studies import STUDIES, Study, make_study
from flows.studies.repeated import OPTIONS, audit_again, continuing
from warehouse.store import Warehouse

NOW = datetime.now(UTC)


def audited(path: Path, study: Study, run: str = "r1") -> None:
    row = {**first_row("audit", run, study, NOW), "state": "completed", "ended_at": NOW}
    Warehouse(path).start_run(row)


def options_of(words: list[str]) -> dict[str, Any]:
    """Return what the command line gives the audit, as the product parses it."""
    context = main.commands["audit"].make_context("audit", words[3:], parent=None)
    given = {name: context.params[name] for name in OPTIONS}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
        if value or (value == 0 and not isinstance(value, bool))
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"judges": ["offline/fair", "offline/hasty"]},
        {"limit": 7, "votes_per_pair": 4, "perturbations": ["padding"], "sham": "second"},
        {"replicates": True, "mode": "paper", "seed": 5, "detects_at": 0.6},
        {"prompts": ["pair_v1", "pair_v2"], "stop": "lossless"},
        {"columns": {"anchor": "a.b", "target": "two words"}, "dataset": "my data.csv"},
    ],
)
def test_the_options_of_a_bundled_study_are_repeated(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    study = make_study("quick", {**options, "wave": "n 1"})
    audited(tmp_path / "w.duckdb", study)
    words = shlex.split(audit_again(tmp_path / "w.duckdb", "quick", "n 1"))
    assert words[:5] == ["voirdire", "audit", "quick", "--wave", "n 1"]
    given = options_of(words)
    repeated = make_study("quick", {**given, "wave": "n 1"})
    assert repeated == study
    assert bool(given) == bool(options)


def test_each_wave_has_its_own_options(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    for wave, judge in (("n1", "offline/fair"), ("n2", "offline/hasty")):
        audited(path, make_study("quick", {"judges": [judge], "wave": wave}), wave)
    for wave, judge in (("n1", "offline/fair"), ("n2", "offline/hasty")):
        assert audit_again(path, "quick", wave).endswith(f"--wave {wave} --judge {judge}")
    # A wave that no run names, and a study that has no file, whose saved settings are used.
    assert audit_again(path, "quick", "n3") == "voirdire audit quick --wave n3"
    # Settings that this version cannot read have no options to repeat, and hide no others.
    unread = first_row("audit", "r8", make_study("quick", {"wave": "n4"}), NOW)
    kept = {"parameters": '{"wave": "n4", "limit": "many"}', "state": "failed", "ended_at": NOW}
    Warehouse(path).start_run({**unread, **kept})
    assert audit_again(path, "quick", "n4") == "voirdire audit quick --wave n4"
    assert audit_again(path, "quick", "n1").endswith("--wave n1 --judge offline/fair")
    audited(path, make_study("quick", {"name": "mine", "limit": 4, "wave": "n1"}), "r9")
    assert audit_again(path, "mine", "n1") == "voirdire audit mine --wave n1"


def test_every_option_is_one_of_the_audit() -> None:
    known = {each.name: each.opts for each in main.commands["audit"].params}
    assert {name: [option] for name, option in OPTIONS.items()} == {
        name: known[name] for name in OPTIONS
    }


def test_an_audit_is_continued_with_the_options_that_its_form_changed() -> None:
    usual = STUDIES["quick"].study
    place = Path("/data/my votes.duckdb")
    end = "--warehouse '/data/my votes.duckdb'"
    assert continuing(usual, "quick", place) == f"voirdire audit quick {end}"
    night = STUDIES["nightly"].study.model_copy(update={"wave": ""})
    assert continuing(night, "nightly", place) == f"voirdire audit nightly --wave '' {end}"
    changes = {"judges": ["offline/fair"], "budget_usd": 2.5, "name": "mine", "wave": "a b"}
    changed = usual.model_copy(update=changes)
    assert continuing(changed, "quick", place) == (
        f"voirdire audit quick --wave 'a b' --judge offline/fair --name mine --budget 2.5 {end}"
    )
