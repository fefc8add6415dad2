"""Pages that a thread of the test process serves, as their command would in a process."""

import re
import signal
from queue import SimpleQueue
from threading import Thread

import click
import pytest
from waiting import PATIENCE_SECONDS

from booth import cli
from booth.browsing import __main__ as browsing
from booth.web import server
from warehouse.store import Warehouse

LINK = re.compile(r"^(\S+) +\d+ of (\d+) +(http\S+)$", re.MULTILINE)
ENDED = "\0"
"""Follows the last line that a command prints."""


class Hosted:
    """A command that serves until it is stopped; whoever starts it need not import it anew.

    Signals, exit codes and what is written to standard error need a process of its own.
    """

    def __init__(self, command: click.Command, warehouse: Warehouse, *words: str) -> None:
        self._signals: SimpleQueue[int] = SimpleQueue()
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._error: BaseException | None = None
        given = [*words, "--port", "0", "--warehouse", str(warehouse.path)]
        self._thread = Thread(target=self._run, args=(command, given), daemon=True)
        with pytest.MonkeyPatch.context() as patch:
            # Signals reach the main thread only.
            patch.setattr(server, "catch_signals", lambda: self._signals)
            self._patch_output(patch)
            self._thread.start()
            self.said = self._read("Ctrl-C")
        self.links = {voter: link for voter, _, link in LINK.findall(self.said)}

    @property
    def serves(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread.is_alive()

    def stop(self) -> str:
        """End it as Ctrl-C does; return its last words."""
        with pytest.MonkeyPatch.context() as patch:
            self._patch_output(patch)
            self._signals.put(signal.SIGINT)
            self._thread.join(PATIENCE_SECONDS)
        assert not self.serves, "it did not end"
        if self._error:
            raise self._error
        return self._read(ENDED)

    def _patch_output(self, patch: pytest.MonkeyPatch) -> None:
        for module in (cli, browsing):
            patch.setattr(module, "say", self._say)
        patch.setattr(click, "echo", self._say)

    def _say(self, text: str, **_: object) -> None:
        self._lines.put(f"{text}\n")

    def _run(self, command: click.Command, words: list[str]) -> None:
        try:
            command.main(words, standalone_mode=False)
        except BaseException as error:  # noqa: BLE001 - a thread's errors are lost otherwise
            self._error = error
        self._lines.put(ENDED)

    def _read(self, last: str) -> str:
        said = ""
        while last not in said:
            said += self._lines.get(timeout=PATIENCE_SECONDS)
            if ENDED in said and last != ENDED:
                raise AssertionError(f"it ended at once: {self._error!r}") from self._error
        return said.removesuffix(ENDED)
