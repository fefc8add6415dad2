"""What a run publishes when its results cannot be saved; the rest is tested by whole audits."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows.publishing import artifacts
from warehouse.store import WarehouseError


def test_a_run_whose_results_are_not_saved_fails_and_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def saved() -> None:
        raise WarehouseError("the disk is full")

    def page(*_: Any, saved: Any, **__: Any) -> str:
        saved()
        return "<html>"

    published: list[Any] = []

    async def show(*shown: Any) -> None:
        published.append(shown)

    monkeypatch.setattr(artifacts, "render_page", page)
    monkeypatch.setattr(artifacts, "_show_in_ui", show)
    run: Any = SimpleNamespace(
        study=SimpleNamespace(name="s"),
        warehouse=SimpleNamespace(path=tmp_path / "w.duckdb"),
        columns=dict,
        counts=SimpleNamespace(not_written=lambda *note: published.append(note)),
    )
    found: Any = SimpleNamespace(concluded=None, voters=None)
    perturbed: Any = None
    with pytest.raises(WarehouseError, match="the disk is full"):
        asyncio.run(artifacts.publish(run, found, perturbed, saved))
    assert not published
    assert not [*tmp_path.rglob("*.html")]
