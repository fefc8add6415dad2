"""What commands print to, and what one is doing, on standard error: a live view or lines."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import ControlType, Segment, SegmentLines
from rich.table import Table
from rich.text import Text

from tasks.kit.command_line import notice, print_notice, say
from tasks.kit.printable import message, wrapped
from tasks.progress import Status, duration, followed
from tasks.progress.lines import Lines

FRAMES_PER_SECOND = 5
SPINNER, PLAIN_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
WIDEST = 100
WIDEST_BAR, NARROWEST_BAR = 40, 8
ROWS_BESIDE_BARS = 6
"""Rows of a terminal that are left for everything but the bars of judges."""


class Printer(Console):
    """A console without coloured numbers, whose lines do not end with blanks that fill a column."""

    def __init__(self, **options: Any) -> None:
        """Take the options of a console."""
        super().__init__(highlight=False, **options)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return re.sub(" +$", "", super()._render_buffer(buffer), flags=re.MULTILINE)


class LiveView:
    """A view that is drawn anew several times a second, and disappears when it is closed."""

    def __init__(self, status: Status, console: Console) -> None:
        self._status, self._console = status, console
        self._spinner = SPINNER if console.encoding.startswith("utf") else PLAIN_SPINNER
        self._widths: list[int] = []
        """Widths of the lines that are on the terminal."""
        self._live = self._new_live()

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the view, so that the terminal is as before."""
        try:
            self._live.stop()
        finally:
            # An interrupt may have come while it was removed.
            self._console.show_cursor(show=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to the block, which may ask a question."""
        self.close()
        yield
        self._live = self._new_live()
        self._live.start(refresh=True)

    def tell(self, text: str) -> None:
        """Print a notice above the view."""
        said = wrapped(notice(text), self._console.width)
        self._console.print(said, markup=False, highlight=False, soft_wrap=True)

    def frame(self) -> SegmentLines:
        """Return what is drawn now."""
        self._remove_wrapped()
        width = min(self._console.width, WIDEST)
        options = self._console.options.update(width=width)
        drawn = self._console.render_lines(Group(*self._rows(width)), options, pad=False)
        # A taller view could not be removed.
        lines = drawn[: max(1, self._console.height - 1)]
        self._widths = [Segment.get_line_length(line) for line in lines]
        return SegmentLines(lines, new_lines=True)

    def _new_live(self) -> Live:
        return Live(
            get_renderable=self.frame,
            console=self._console,
            transient=True,
            refresh_per_second=FRAMES_PER_SECOND,
            # Standard output may be a file.
            redirect_stdout=False,
        )

    def _rows(self, width: int) -> Iterator[RenderableType]:
        status = self._status
        seconds = status.seconds()
        spin = self._spinner[int(seconds * FRAMES_PER_SECOND) % len(self._spinner)]
        yield _line(f"{spin} {duration(seconds)}  {status.what}: {status.step}")
        for line in filled(status.facts(), width - 2):
            yield _line(f"  {line}")
        if status.asking:
            yield self._bars(width)
        for wait in status.waiting():
            yield _line(f"  {wait}")

    def _bars(self, width: int) -> RenderableType:
        """Return a bar per judge, as many as there is room for."""
        done, planned = dict(self._status.done), dict(self._status.planned)
        most = max(1, self._console.height - ROWS_BESIDE_BARS - len(self._status.waiting()))
        # Those that are not done come first if not all can be shown.
        open_first = sorted(planned, key=lambda judge: done[judge] >= planned[judge])
        shown = sorted(open_first[:most]) if len(planned) > most else list(planned)
        counts = {judge: f"{done[judge]}/{planned[judge]}" for judge in shown}
        room = width - max(map(len, counts.values()), default=0) - 4
        names = min(max(map(len, shown), default=0), room - NARROWEST_BAR)
        bar = min(WIDEST_BAR, room - names)
        table = Table.grid(padding=(0, 1, 0, 0))
        for size in (names + 2, bar):
            table.add_column(width=size, no_wrap=True, overflow="ellipsis")
        table.add_column(justify="right", no_wrap=True)
        for judge, count in counts.items():
            drawn = ProgressBar(
                planned[judge] or 1,
                done[judge],
                width=bar,
                style="dim",
                complete_style="none",
                finished_style="none",
            )
            table.add_row(_line(f"  {judge}"), drawn, _line(count))
        hidden = len(planned) - len(shown)
        return Group(table, _line(f"  and {hidden} more judges")) if hidden else table

    def _remove_wrapped(self) -> None:
        """Remove what a terminal that has become narrower has wrapped: rich does not count it."""
        width = self._console.width
        more = sum(-(-each // width) - 1 for each in self._widths if each > width)
        if more:
            erase = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
            self._console.control(Control(*(erase * more)))


View = LiveView | Lines


@contextmanager
def shown(what: str, *, lines: bool = False) -> Iterator[View]:
    """Show what the block does until it ends or closes the view: on a terminal, a live view.

    Elsewhere ``lines`` are written, or nothing. Text of the command itself must go to standard
    output after the view is closed, or to ``Status.tell``.
    """
    status = Status(message(what))
    view: View
    # A terminal that can move its cursor.
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "unknown"}:
        view = LiveView(status, Console(stderr=True))
        status.tell = view.tell
    else:
        status.tell = print_notice
        # A command that is short says nothing but its results.
        view = Lines(status, _write if lines else lambda _: None)
    with followed(status), view:
        yield view


def _write(text: str) -> None:
    # Each line begins with the command.
    say(message(text), err=True)


def _line(text: str) -> Text:
    # Names of judges and statistics may come from a file of the user.
    return Text(" ".join(message(text).split("\n")), no_wrap=True, overflow="ellipsis")


def filled(parts: Iterable[str], width: int, size: Callable[[str], int] = len) -> list[str]:
    """Join parts by commas into as few lines as possible, without breaking a part."""
    lines: list[str] = []
    for part in parts:
        longer = f"{lines[-1]}, {part}" if lines else part
        if lines and size(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines
