"""Behaviour that all commands share: arguments are validated, errors take one line."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tasks.kit.printable import is_unseen, message

MOST = 4096
"""Characters of an argument."""

QUERY = "query"
"""The argument that may have more, and several lines."""


class Finite(click.FloatRange):
    """A number that is neither infinite nor NaN, which no range keeps out."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or refuse it by the option's name."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class Place(click.Path):
    """A path that the system can look at, whether something is there or not."""

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(path_type=Path, file_okay=file_okay, dir_okay=dir_okay)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or refuse it by the option's name."""
        if not os.fspath(value):
            self.fail("it is empty. Name a file or folder.", param, ctx)
        try:
            Path(value).lstat()
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, ValueError) as error:
            told = getattr(error, "strerror", None) or error
            self.fail(f"{os.fspath(value)!r:.200} cannot be used: {told}.", param, ctx)
        return super().convert(value, param, ctx)


class Command(click.Command):
    """A command that refuses, by the option's name, values that no option can have."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the arguments; an error is printable and of bounded length."""
        with _bounded_errors():
            context = super().make_context(*args, **extra)
            for parameter in self.params:
                _check(context, parameter, context.params.get(parameter.name or ""))
        return context


class Commands(click.Group):
    """A group of such commands."""

    command_class = Command

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the arguments; an error is printable and of bounded length."""
        with _bounded_errors():
            return super().make_context(*args, **extra)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an error is printable and of bounded length."""
        with _bounded_errors():
            return super().resolve_command(ctx, args)


@contextmanager
def errors_in_a_line() -> Iterator[None]:
    """End with one line for bad input; VOIRDIRE_DEBUG=1 shows where it was found."""
    try:
        yield
    except click.Abort:
        # Ctrl-C, or the end of the input, where a question was asked.
        raise KeyboardInterrupt from None
    except click.exceptions.Exit:
        raise
    except (ValueError, LookupError, OSError, RuntimeError, OverflowError) as error:
        if os.environ.get("VOIRDIRE_DEBUG"):
            raise
        click.echo(f"voirdire: {message(_text(error))}", err=True)
        # Wrong use or input, unless the error knows better.
        sys.exit(getattr(error, "exit_code", 2))


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error.args[0]) if isinstance(error, KeyError) else str(error)


@contextmanager
def _bounded_errors() -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        # It shows the help; its message is the help once more.
        raise
    except click.UsageError as error:
        raise click.UsageError(message(error.format_message()), error.ctx) from None


def _check(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Refuse text that cannot be shown, or is too long."""
    for each in value if isinstance(value, tuple) else (value,):
        if not isinstance(each, str | Path):
            continue
        if problem := _problem_of(str(each), lines=parameter.name == QUERY):
            told = f"{str(each)!r:.200} {problem}."
            raise click.BadParameter(told, ctx=context, param=parameter)


def _problem_of(text: str, *, lines: bool) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "is not UTF-8"
    if lines:
        return ""
    if len(text) > MOST:
        return f"has {len(text)} characters, and at most {MOST} are read"
    return "has control characters" if any(map(is_unseen, text)) else ""
