"""Command-line behaviour that all commands share: validated arguments, one-line errors."""

import math
import os
import re
import shlex
import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource

from tasks.kit.exit_codes import ExitCode
from tasks.kit.printable import is_unseen, message, printable, wrapped

DEBUG_VARIABLE = "VOIRDIRE_DEBUG"
"""with the value `1`, an error prints its traceback"""
MOST = 4096
"""Maximum length of an argument, in characters."""

NO_VALUE = "requires an argument."
"""End of click's message for an option without its value."""
MOST_VALUES = 20
"""Most values of an option that an error lists."""

NAMED_COMMAND = re.compile(r"`voirdire (\w+)[^`]*")
"""A command of voirdire in backticks, without the last of them."""

USUAL_WIDTH = 80
"""Columns of a terminal that does not say how many it has."""

QUERY = "query"
"""The argument without a maximum length, which may have several lines."""


class Finite(click.FloatRange):
    """A range of finite numbers: ``FloatRange`` alone accepts infinity and NaN."""

    name = "number"

    def _describe_range(self) -> str:
        """Return the range for the help; click writes ``x<=None`` if there is none."""
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or raise an error that names the option."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class UsablePath(click.Path):
    """A path that the file system accepts, whether it exists or not."""

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(path_type=Path, file_okay=file_okay, dir_okay=dir_okay)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or raise an error that names the option."""
        if not os.fspath(value):
            self.fail("it is empty. Name a file or folder.", param, ctx)
        try:
            Path(value).lstat()
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            self.fail(f"{os.fspath(value)!r:.200} cannot be used: {why}.", param, ctx)
        return super().convert(value, param, ctx)


class OutputFile(UsablePath):
    """A file to write; its folder must exist, since a missing one may be misspelt."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or raise an error that names the folder."""
        path: Path = super().convert(value, param, ctx)
        if not (folder := path.absolute().parent).is_dir():
            self.fail(
                f"there is no folder {message(str(folder))} for the file "
                f"{message(path.name)}. Make it first, or name another file.",
                param,
                ctx,
            )
        return path


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Settings of every command's context."""


class WarehouseOption(click.Option):
    """The option of a command that reads or writes the warehouse, given or not."""


warehouse_option = click.option(
    "--warehouse",
    cls=WarehouseOption,
    type=UsablePath(),
    help="Use this DuckDB file. Default: VOIRDIRE_WAREHOUSE, else voirdire.duckdb.",
)


def given_options() -> dict[str, str]:
    """Return the options given to the command that runs, by the names of their parameters."""
    context = click.get_current_context(silent=True)
    if context is None:
        return {}
    return {
        parameter.name: max(parameter.opts, key=len)
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        and parameter.name
        and context.get_parameter_source(parameter.name) == ParameterSource.COMMANDLINE
    }


def with_warehouse(text: str) -> str:
    """Add the ``--warehouse`` of the command that runs to the commands that a text names.

    These stand in backticks, as in ``Run `voirdire plan quick` ``: typed as they are, they would
    use the default warehouse.
    """
    context = click.get_current_context(silent=True)
    if context is None or "warehouse" not in given_options():
        return text
    others = context.find_root().command
    option = shlex.join(["--warehouse", os.fspath(context.params["warehouse"])])

    def completed(found: re.Match[str]) -> str:
        named = others.get_command(context, found[1]) if isinstance(others, click.Group) else None
        # The booth parses its own options.
        takes = named and (
            named.context_settings.get("ignore_unknown_options")
            or any(isinstance(each, WarehouseOption) for each in named.params)
        )
        return f"{found[0]} {option}" if takes and "--warehouse" not in found[0] else found[0]

    return NAMED_COMMAND.sub(completed, text)


def notice(text: str) -> str:
    """Return a line about a command, for standard error, that may contain untrusted text."""
    return f"voirdire: {message(with_warehouse(text))}"


def print_notice(text: str) -> None:
    """Print a line about a command on standard error, where the output of others may be too."""
    say(notice(text), err=True)


def say(text: str, *, err: bool = False) -> None:
    """Print a message, which may contain untrusted text: control characters are replaced.

    The commands that it names get the ``--warehouse`` of the command that runs. On a terminal, its
    lines are broken at spaces; elsewhere they stay whole, for programs that search them.
    """
    said = printable(with_warehouse(text))
    width = terminal_width(sys.stderr if err else sys.stdout)
    click.echo(said if width is None else wrapped(said, width), err=err)


def terminal_width(stream: TextIO) -> int | None:
    """Return how many columns a terminal has, or the variable COLUMNS says; null for a file."""
    if not stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or USUAL_WIDTH
    except OSError:
        return USUAL_WIDTH


def port_option(default: int, text: str, least: int = 1) -> Callable[[Any], Any]:
    """Return the option ``--port``."""
    kind = click.IntRange(least, 65535)
    return click.option("--port", type=kind, default=default, show_default=True, help=text)


class _WithExamples(click.Command):
    """A command, or a group of them, whose ``--help`` begins with its ``examples``."""

    examples: Sequence[str] = ()

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage, and below it the examples."""
        super().format_usage(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {example}\n" for example in self.examples))


class Command(_WithExamples):
    """A command that rejects text which no option can have, naming the option.

    ``--help`` begins with its ``examples``; ``section`` is where the list of commands has it.
    """

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), section: str = "Commands", **options: Any
    ) -> None:
        # A command also runs without its group, and keeps the options of its help from then on.
        super().__init__(*args, **{"context_settings": CONTEXT, **options})
        self.examples, self.section = examples, section
        for each in self.params:
            if isinstance(each, click.Option) and each.is_flag and each.help:
                stated = each.show_default or each.secondary_opts or "Default" in each.help
                each.help += "" if stated else " Default: off."

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the arguments; errors are printable and of bounded length."""
        with _bounded_errors(self):
            context = super().make_context(*args, **extra)
            for parameter in self.params:
                _check(context, parameter, context.params.get(parameter.name or ""))
        return context


LONGEST_SENTENCE = 500
"""No first sentence of a command's help is as long."""


class Commands(_WithExamples, click.Group):
    """A group of such commands, listed by section in the order of ``sections``."""

    command_class = Command

    def __init__(
        self, *args: Any, sections: Sequence[str] = (), examples: Sequence[str] = (), **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.sections, self.examples = sections, examples

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the arguments; errors are printable and of bounded length."""
        with _bounded_errors():
            return super().make_context(*args, **extra)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first sentence of each command by section, wrapped and not cut."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in found:
            if isinstance(command, Command) and not command.hidden:
                row = (name, command.get_short_help_str(limit=LONGEST_SENTENCE))
                sections.setdefault(command.section, []).append(row)
        widest = max(len(name) for rows in sections.values() for name, _ in rows)
        for title in sorted(sections, key=[*self.sections, *sections].index):
            with formatter.section(title):
                # All sections have the same width of names.
                formatter.write_dl([(f"{n:<{widest}}", text) for n, text in sections[title]])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; errors are printable and of bounded length."""
        with _bounded_errors():
            return super().resolve_command(ctx, args)


@contextmanager
def errors_in_a_line() -> Iterator[None]:
    """Report an error in one line and exit; VOIRDIRE_DEBUG=1 shows the traceback."""
    try:
        yield
    except click.Abort:
        # Ctrl-C, or the end of input, at a prompt.
        raise KeyboardInterrupt from None
    except (click.exceptions.Exit, BrokenPipeError):
        # Click ends quietly if the reader of a pipe, such as `head`, has gone.
        raise
    except (ValueError, LookupError, OSError, RuntimeError, OverflowError) as error:
        if stop := interrupt_behind(error):
            raise stop from None
        if os.environ.get(DEBUG_VARIABLE):
            raise
        print_notice(_text(error))
        sys.exit(getattr(error, "exit_code", ExitCode.WRONG_USE))


def interrupt_behind(error: BaseException) -> BaseException | None:
    """Return the interrupt that an error is, or that DuckDB reports as an error of its own."""
    if isinstance(error, (KeyboardInterrupt, CancelledError)):
        return error
    # A timeout of asyncio, whose cause is a cancellation, is no interrupt.
    return error.__cause__ if isinstance(error.__cause__, KeyboardInterrupt) else None


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    said = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return said or type(error).__name__


@contextmanager
def _bounded_errors(command: click.Command | None = None) -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        # click shows the help for it; its message would repeat the help.
        raise
    except click.UsageError as error:
        said = error.format_message()
        if command and isinstance(error, click.BadOptionUsage) and said.endswith(NO_VALUE):
            said = f"{said} {_allowed_values(command, error.option_name)}".rstrip()
        raise click.UsageError(message(said), error.ctx) from None


def _allowed_values(command: click.Command, name: str) -> str:
    """Say which values an option takes: those that a shell completes, else what its help says."""
    option = next((each for each in command.params if name in each.opts), None)
    if not isinstance(option, click.Option):
        return ""
    found = option.shell_complete(click.Context(command), "")
    values = [each.value for each in found if each.type == "plain"]
    more = ", ..." if len(values) > MOST_VALUES else ""
    return f"Allowed: {', '.join(values[:MOST_VALUES])}{more}." if values else option.help or ""


def _check(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Raise an error for text that is unprintable or too long."""
    for each in value if isinstance(value, tuple) else (value,):
        if not isinstance(each, str | Path):
            continue
        if problem := _problem_of(str(each), lines=parameter.name == QUERY):
            text = f"{str(each)!r:.200} {problem}."
            raise click.BadParameter(text, ctx=context, param=parameter)


def _problem_of(text: str, *, lines: bool) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "is not UTF-8"
    if lines:
        return ""
    if len(text) > MOST:
        return f"has {len(text)} characters, and at most {MOST} are read"
    return "has control characters" if any(map(is_unseen, text)) else ""
