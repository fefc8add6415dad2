"""The command line of the emulator; what it does is tested with the engine."""

import pytest
from click.testing import CliRunner

from tasks.providers._emulator import main


@pytest.mark.parametrize("fault", ["bsy=.1", "busy", "busy=2", "busy=x", "=.1"])
def test_a_fault_that_there_is_not_is_refused(fault: str) -> None:
    done = CliRunner().invoke(main, ["--fault", fault])
    assert done.exit_code == 2
    assert "is not NAME=CHANCE" in done.output
