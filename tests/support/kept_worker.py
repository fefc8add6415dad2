"""A worker process that stays for the audits to come."""

from pathlib import Path

import pytest

from tasks import providers
from tasks.engine.worker_client import Session, shared_worker
from tasks.kit import user_folder

EMULATED_KEY = {"EMU_KEY": "sk-given-but-secret"}
"""The key that tests give the emulated provider; a kept worker knows it from the start."""


class Workers:
    """Worker processes, which take seconds to import litellm: one is kept for audits to come."""

    def __init__(self) -> None:
        self._kept: Session | None = None
        self._read: dict[str, str] = {}

    def keep(self, environment: dict[str, str]) -> None:
        """Keep a worker; a new one where its environment lacks folders of providers, or keys."""
        folders = [
            Path(environment.get(providers.VARIABLE, "nowhere")),
            user_folder.home() / "providers",
        ]
        read = {name: value for name, value in environment.items() if name.endswith("_KEY")}
        # What their files say now is read as each run begins.
        read |= {str(each): "" for each in folders if any(each.glob("*.toml"))}
        # Who needs fewer keys and providers, or none, may use a worker that knows more.
        known = read.items() <= self._read.items()
        if self._kept is None or not self._kept._worker.alive or not known:
            self.end()
            self._read = {**EMULATED_KEY, **read}
            with pytest.MonkeyPatch.context() as patch:
                for name, value in EMULATED_KEY.items():
                    patch.setenv(name, environment.get(name, value))
                self._kept = Session(shared_worker(), "kept")

    @property
    def process(self) -> int:
        """PID of the worker that is kept."""
        assert self._kept
        return self._kept._worker._process.pid

    def end(self) -> None:
        """End the worker, if one is kept."""
        if self._kept:
            self._kept.close()
            self._kept = None
