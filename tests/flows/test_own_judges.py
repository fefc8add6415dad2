"""Judges of the user's own files, as a user makes and corrects them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.judging import Ballots, Votes
from warehouse.store import Warehouse

Voirdire = Callable[..., Any]
FILE = """
[provider]
simulated = true

[judges.steady]
model = "offline/steady"
params = { traits = { seed = 11, omega = 1.5 } }

[judges.shiny]
model = "offline/shiny"
params = { traits = { seed = 12, omega = 1.5, efects = { reference = 1.0 } } }
"""
SMALL = ("--limit", "2", "--votes", "2", "--perturbation", "fake_reference", "--name", "small")


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    """The provider file ``sim.toml`` of the user's own folder."""
    file = tmp_path / "voirdire" / "providers" / "sim.toml"
    file.parent.mkdir(parents=True)
    file.write_text(FILE)
    return file


@pytest.mark.parametrize("command", ["plan", "audit"])
@pytest.mark.parametrize("judge", ["sim/steady", "sim/shiny"])
def test_a_misspelt_trait_stops_every_judge_of_the_file_before_anything_is_asked(
    voirdire: Voirdire, warehouse: Warehouse, own_file: Path, command: str, judge: str
) -> None:
    done = voirdire(command, "--judge", judge, *SMALL)
    assert (done.returncode, done.stdout) == (2, "")
    reported = " ".join(done.stderr.split())
    assert f"the provider 'sim' of {own_file} cannot be used: " in reported
    assert "[judges.shiny] params.traits has no key 'efects'. Did you mean 'effects'?" in reported
    assert reported.count("efects") == 1
    assert not warehouse.path.exists()


@pytest.mark.served
@pytest.mark.slow
def test_a_judge_changes_in_the_waves_that_its_file_names(
    voirdire: Voirdire, warehouse: Warehouse, own_file: Path
) -> None:
    table = FILE.replace("omega = 1.5 }", "omega = 1.5, waves = { after = { iota = 1.0 } } }")
    own_file.write_text(table.replace("efects", "effects"))
    for wave in ("before", "after"):
        done = voirdire("audit", "--judge", "sim/steady", *SMALL, "--wave", wave)
        assert done.returncode in {0, 3}, done.stderr
        assert "(`voirdire booth small`)" in " ".join(done.stdout.split())
    choices = warehouse.query(
        "select wave, choice = 'invalid' as invalid, count(*) from votes "
        "join ballots using (ballot_id) group by all order by all"
    )
    assert [row[:2] for row in choices.rows()] == [("after", True), ("before", False)]
    assert warehouse.read(Votes)["cost_usd"].sum() == 0


@pytest.mark.served
def test_unreadable_replies_are_what_to_look_at_next(
    voirdire: Voirdire, warehouse: Warehouse, own_file: Path
) -> None:
    mute = FILE.replace("seed = 11, omega = 1.5", "iota = 1.0")
    own_file.write_text(mute.replace("efects", "effects"))
    done = voirdire("audit", "--judge", "sim/steady", *SMALL, "--limit", "10")
    command = "voirdire show small --judge sim/steady --invalid"
    assert done.stdout.splitlines()[-1] == f"next:      {command}"
    replies = warehouse.read(Votes).height
    flipped = voirdire("show", "small").stdout
    assert flipped == (
        "No perturbation changed a verdict of study small.\n"
        f"{replies} replies have no verdict. To see them: `voirdire show small --invalid`.\n"
    )
    unread = voirdire(*command.split()[1:], "--most", "1").stdout
    assert f"1 of {replies}  sim/steady (simulated)" in unread
    assert re.search(r"(control|perturbed|sham), (anchor|target) first: invalid: ", unread)
    assert "verdict." not in unread


@pytest.mark.served
@pytest.mark.slow
def test_a_judge_may_be_corrected_until_it_has_votes(
    voirdire: Voirdire, warehouse: Warehouse, emulated: Any
) -> None:
    audit = ("audit", "--judge", "emu/one", *SMALL)
    right, emulated.base = emulated.base, "http://127.0.0.1:9/v1"
    emulated.provider(attempts=1)
    assert voirdire(*audit).returncode in {1, 3}
    assert warehouse.read(Votes).is_empty()
    emulated.base = right
    emulated.provider('system = "Be strict."')
    done = voirdire(*audit)
    assert done.returncode in {0, 3}, done.stderr
    assert warehouse.read(Votes).height == warehouse.read(Ballots).height > 0
    emulated.provider('system = "Be kind."')
    done = voirdire(*audit)
    assert done.returncode != 0
    reported = " ".join(done.stderr.split())
    assert (
        "emu/one already has votes, or a run is asking it, with system Be strict. (now" in reported
    )
    assert "rename its table [judges.NAME] in the provider file" in reported
