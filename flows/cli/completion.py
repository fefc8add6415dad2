"""What shells complete: names of catalogues, and of what is in the warehouse."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

DEFAULT_STUDY = "quick"
"""What STUDY is in commands that need one."""
Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def complete_from(module: str, catalogue: str) -> Complete:
    """Return a completer for the names of a catalogue, or of a function's result.

    It is imported only then.
    """

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
        known = getattr(import_module(module), catalogue)
        names = known() if callable(known) else known
        return sorted(name for name in names if name.startswith(begun))

    return complete


def complete_studies(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the studies that begin so, bundled ones, the user's own and audited ones."""
    from warehouse.path_checks import studies_in

    listed = complete_from("flows.studies", "STUDIES")(context, parameter, begun)
    saved = studies_in(_warehouse(context), audited=True)
    return sorted({*listed, *(name for name in saved if name.startswith(begun))})


def complete_results(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Return the studies with results whose names begin so.

    Calibrations are among them where the command takes them.
    """
    from warehouse.path_checks import measured_in

    calibrations = context.info_name in {"report", "show", "export"}
    found = measured_in(_warehouse(context), calibrations=calibrations)
    return [name for name in found if name.startswith(begun)]


def complete_source(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the audited studies that begin so; if there is none, files."""
    from warehouse.path_checks import studies_in

    saved = studies_in(_warehouse(context), audited=True)
    found = [CompletionItem(name) for name in saved if begun and name.startswith(begun)]
    return found or [CompletionItem(begun, type="file")]


def complete_judges(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the judges of the study that begin so; all if the study has no results."""
    from warehouse.path_checks import judges_in

    saved = judges_in(_warehouse(context), _study(context))
    every = complete_from("tasks.providers", "JUDGES")
    found = [judge for judge in saved if judge.startswith(begun)]
    return found if saved else every(context, parameter, begun)


def complete_waves(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Return the waves with results whose names begin so."""
    from warehouse.path_checks import waves_in

    found = waves_in(_warehouse(context), _study(context))
    return [wave for wave in found if wave.startswith(begun)]


def complete_values(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Return the parameters of the question of ``--ask``, or of all, with a value: ``days=30``."""
    from flows.cli.questions import questions
    from warehouse.path_checks import studies_in

    ask = context.params.get("ask")
    known = [each.parameters for name, each in questions().items() if ask in (None, name)]
    values = {
        f"{name}={default}"
        for parameters in known
        for name, (_, default) in parameters.items()
        if name != "study"
    }
    if any("study" in parameters for parameters in known):
        saved = studies_in(_warehouse(context))
        values |= {f"study={name}" for name in saved}
    return sorted(value for value in values if value.startswith(begun))


def _warehouse(context: click.Context) -> Path:
    from warehouse.path_checks import default_path

    return context.params.get("warehouse") or default_path()


def _study(context: click.Context) -> str:
    # Click leaves arguments unread where an option has no value yet.
    return str(context.args[0] if context.args else DEFAULT_STUDY)


class Bash(BashComplete):
    """Completion for bash, which passes ``--set study=q`` in four words and replaces the last."""

    _begun = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and that one, with what is before its =."""
        args, last = super().get_completion_args()
        words = [*args, "=", ""] if last == "=" else [*args, last]
        if len(words) > 3 and (words[-4], words[-2]) == ("--set", "="):
            self._begun = f"{words[-3]}="
            return words[:-3], f"{self._begun}{words[-1]}"
        return args, last

    def format_completion(self, item: CompletionItem) -> str:
        """Return the completion without what is before its =."""
        return f"{item.type},{item.value.removeprefix(self._begun)}"


add_completion_class(Bash)
