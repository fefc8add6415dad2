"""Hostile values of every option of ``voirdire booth``; the pages themselves are not served."""

from collections.abc import Callable
from typing import Any

import pytest

from booth import cli
from warehouse.store import Warehouse


def test_hostile_values_get_one_clear_error(
    audited: Callable[..., Warehouse], hostile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = audited()
    monkeypatch.setenv("VOIRDIRE_WAREHOUSE", str(warehouse.path))
    monkeypatch.setattr(cli, "_serve", lambda *_: None)
    # Opening and closing a booth takes a while.
    assert hostile.faults(cli.booth, ["quick", "--voter", "ann"], step=4) == []
