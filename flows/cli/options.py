"""Options that several commands share."""

import re
from collections.abc import Callable, Sequence
from typing import Any, get_args

import click

from flows.cli.completion import Complete, complete_from, complete_judges
from flows.running.processes import AGAIN, clear_errors
from schemas.keys import Checks, Mode, Sham, ShareInterval, Stop
from tasks.kit.command_line import Command, Finite, OutputFile, UsablePath

PATH = UsablePath()
OUTPUT_FILE = OutputFile()
NEXT_COLUMN = re.compile(r",(?=\w+=)")
"""Where the next column of --map begins."""
Decorator = Callable[..., Any]


def command(
    section: str, *examples: str, name: str | None = None, stopped: str = AGAIN
) -> Decorator:
    """Return a decorator that makes a command, whose errors are one line, of a function.

    ``stopped`` says what is left if it is interrupted.
    """
    made = click.command(name, cls=Command, section=section, examples=examples)
    return lambda function: made(clear_errors(function, stopped))


CATALOGUES = {
    "--dataset": ("tasks.datasets", "DATASETS"),
    "--judge": ("tasks.providers", "JUDGES"),
    "--perturbation": ("tasks.perturbations", "PERTURBATIONS"),
    "--prompt": ("tasks.prompts", "PROMPTS"),
}
"""Option -> the module and the name of the catalogue of its names."""


def name_option(
    option: str, *names: str, text: str, several: bool = False, complete: Complete | None = None
) -> Decorator:
    """Return an option for names of entries of a catalogue, which shells complete.

    ``complete`` completes others.
    """
    complete = complete or complete_from(*CATALOGUES[option])
    return click.option(option, *names, multiple=several, shell_complete=complete, help=text)


def map_option(name: str, metavar: str, text: str) -> Decorator:
    """Return the option that maps columns to their names in the user's file."""
    return click.option("--map", name, multiple=True, metavar=metavar, callback=_mapping, help=text)


def _mapping(
    _: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in [one for text in given for one in NEXT_COLUMN.split(text)]:
        column, path = each.partition("=")[::2]
        if not column or not path:
            raise click.BadParameter(
                f"{each!r:.60} must be {parameter.metavar}, such as question=prompt.",
                param=parameter,
            )
        if column in found:
            raise click.BadParameter(
                f"{column!r:.60} is given twice. Give each column once.", param=parameter
            )
        found[column] = path
    return found


def _only_one(_: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> str | None:
    """Refuse a second value, which would replace the first one without a word."""
    if len({*given}) > 1:
        raise click.BadParameter(
            f"{given[0]!r:.60} and {given[1]!r:.60}: results are split by one column. Give one of "
            "them, or join both in a column of your file.",
            param=parameter,
        )
    return given[0] if given else None


OPTIONS = (
    name_option(
        "--dataset",
        text="Ask about this dataset: its name, or the path of your own data file. Default: bloom, "
        "the bundled one.",
    ),
    click.option(
        "--folder", help="Read a dataset that is not bundled from this folder. Default: none."
    ),
    click.option(
        "--by",
        "category_column",
        multiple=True,
        callback=_only_one,
        metavar="COLUMN",
        help="Split results by the values of this column of your own data file. Default: category.",
    ),
    click.option(
        "--pass",
        "pass_label",
        metavar="LABEL",
        help="Count this label in your own data file as a pass. Default: yes, true, 1 and others.",
    ),
    map_option(
        "columns",
        "COLUMN=NAME",
        "Map a column that voirdire expects to a column of your file, such as question=prompt,"
        "anchor=answer_a (repeatable). Columns that voirdire does not know are then left out. "
        "Default: your file uses voirdire's names.",
    ),
    name_option(
        "--perturbation",
        "perturbations",
        several=True,
        text="Test this perturbation (repeatable). Default: the four classic ones, such as "
        "fake_reference; `voirdire list perturbations` shows all.",
    ),
    name_option(
        "--judge",
        "judges",
        several=True,
        text="Audit this judge (repeatable). Default: five simulated ones.",
    ),
    name_option(
        "--prompt",
        "prompts",
        several=True,
        text="Give the judges this prompt (repeatable). Default: pair_v2.",
    ),
    click.option(
        "--votes",
        "votes_per_pair",
        type=int,
        help="Ask each judge for this many votes per pair. Default: 2.",
    ),
    click.option(
        "--mode",
        type=click.Choice(get_args(Mode)),
        help="Choose orders. balanced: show each pair equally often in both. paper: draw them at "
        "random, as in arXiv 2402.10669. Default: balanced.",
    ),
    click.option(
        "--stop",
        type=click.Choice(get_args(Stop)),
        help="Stop asking about a pair early: when the verdict can no longer change (lossless), or "
        "when one answer leads by two votes (pair). Default: none.",
    ),
    click.option(
        "--probe",
        is_flag=True,
        default=None,
        help="Ask for one vote per order if a judge repeats itself in 99 of 100 probes.",
    ),
    click.option(
        "--sham",
        type=click.Choice(get_args(Sham)),
        help="Compare with this sham (meaning-free edit) of a perturbation that has two. none: "
        "compare with the control. Default: first.",
    ),
    click.option(
        "--detects-at",
        type=Finite(),
        help="Require this share of flaws (0 to 1) to be detected for the finding `detects`. "
        "Default: .5.",
    ),
    click.option(
        "--replicates",
        is_flag=True,
        default=None,
        help="Also ask about each control pair a second time, to measure noise.",
    ),
    click.option(
        "--reworded",
        is_flag=True,
        default=None,
        help="Also ask about each control pair in other words of the same meaning (variants of the "
        "judge prompt), to measure how many verdicts depend on the wording.",
    ),
    click.option(
        "--wave",
        help="Label this measurement, for example with a date. A new label casts all votes again. "
        "Default: no label.",
    ),
    click.option(
        "--seed",
        type=int,
        help="Draw templates, shams and positions with this random seed. Default: 0.",
    ),
    click.option("--limit", type=int, help="Ask about at most this many questions. Default: all."),
    click.option(
        "--budget",
        "budget_usd",
        type=Finite(),
        help="Spend at most this many US dollars. Default: no limit.",
    ),
    click.option(
        "--gaps-allowed",
        type=Finite(),
        help="Accept at most this share (0 to 1) of a judge's ballots without a reply. Default: "
        ".05.",
    ),
    click.option(
        "--too-fast",
        "too_fast_seconds",
        type=Finite(),
        help="Exclude votes of people that took less than this many seconds. Default: 3.",
    ),
    click.option(
        "--patience",
        "patience_seconds",
        type=Finite(min=0),
        help="Wait this many seconds to save while another program holds the warehouse open (60 at "
        "most before the first judge is asked). Default: 600.",
    ),
    click.option(
        "--checks",
        type=click.Choice(get_args(Checks)),
        help="Drop texts that fail a validity check, or keep and flag them. Default: drop.",
    ),
)
pictures_option = click.option(
    "--pictures",
    type=UsablePath(file_okay=False),
    help="Also write the charts to this folder, as SVG and PNG files. Default: no pictures.",
)


def choice_option(*names: str, among: Sequence[str], text: str) -> Decorator:
    """Return an option that takes one of some values, by default the first."""
    kind = click.Choice(among)
    return click.option(*names, type=kind, default=among[0], show_default=True, help=text)


def format_option(*forms: str, text: str = "Print in this format.") -> Decorator:
    """Return the option ``--format``, whose default is the first of these formats."""
    return choice_option("--format", "form", among=forms, text=text)


interval_option = choice_option(
    "--interval",
    among=get_args(ShareInterval),
    text="Compute this confidence interval for proportions (cluster-adjusted).",
)


def server_option(default: str) -> Decorator:
    """Return the option that names a Prefect server; without it and PREFECT_API_URL: default."""
    return click.option(
        "--server",
        metavar="URL",
        help="Use the Prefect server with this API address, such as http://127.0.0.1:4200/api. "
        f"Default: PREFECT_API_URL, else {default}.",
    )


STUDY_FIRST = "Without an option, the value in the file of STUDY applies, else the default."


def _all(*options: Decorator, text: str = "") -> Decorator:
    """Return a decorator that adds several options, and a text about them, to a command."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        command.__doc__ = f"{command.__doc__}{text}"
        return command

    return add


def study_options(name_help: str) -> Decorator:
    """Return a decorator that adds the options that change a study."""
    return _all(*OPTIONS, click.option("--name", help=name_help), text=f"\n\n{STUDY_FIRST}")


shown_options = _all(
    name_option(
        "--judge", text="Show only this judge. Default: all judges.", complete=complete_judges
    ),
    name_option("--prompt", text="Show only this judge prompt. Default: all prompts."),
    name_option("--perturbation", text="Show only this perturbation. Default: all perturbations."),
)
"""Adds the options that choose among the evidence behind results."""
mapped_option = map_option(
    "mapping",
    "COLUMN=PATH",
    "Map a column that voirdire expects to the dotted path of a field in your table, such as "
    "label=score.value (repeatable). Columns: judge, item, label, value, human_label, "
    "human_value, label_chance, human, criterion, cluster, category, prompt; shown_first and "
    "choice for votes; question, answer, anchor, target, reference and context for texts. Default: "
    "columns and fields have these names, or those of a known format.",
)
log_options = _all(
    mapped_option,
    click.option(
        "--people",
        help="Count only the people whose names match this pattern, such as 'expert_*'. Default: "
        "all people.",
    ),
)
"""Adds the options of commands that read logs of other tools."""
category_option = click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="COLUMN",
    help="Also show how judges agree with people for each value of this column of the items "
    "(repeatable): category, or one that `voirdire doctor` names. Default: only for all items.",
)

compared_options = _all(
    click.option(
        "--pass",
        "positive",
        metavar="LABEL",
        help="Count this label as a pass. Default: the usual words, such as pass, yes, true, 1.",
    ),
    click.option(
        "--scale",
        nargs=2,
        type=Finite(),
        metavar="LOW HIGH",
        help="Set the ends of the scale of grades. Grades outside are invalid. Default: the lowest "
        "and the highest grade in the labels.",
    ),
    click.option(
        "--threshold",
        type=Finite(),
        metavar="GRADE",
        help="Count grades from this one on as passes: compare passes and fails, and correct the "
        "pass rate. Default: grades are compared as grades.",
    ),
    click.option(
        "--random-labels",
        is_flag=True,
        help="Correct the pass rate or mean grade of all items by PPI++. The items with a label of "
        "people must be drawn at random.",
    ),
)
"""Adds the options that say how labels of judges and people are compared."""

label_table_options = _all(
    click.option(
        "--judge",
        "judge_columns",
        multiple=True,
        metavar="COLUMN",
        help="Take the labels of a judge from this column of FILE (repeatable). Default: judge.",
    ),
    click.option(
        "--human",
        "human_columns",
        multiple=True,
        metavar="COLUMN",
        help="Take the labels of a person from this column of FILE (repeatable). Default: human.",
    ),
    click.option(
        "--slice",
        "slice_columns",
        multiple=True,
        metavar="COLUMN",
        help="Also show results for each value of this column of FILE or of --items (repeatable). "
        "`voirdire doctor` names a log's columns. For a STUDY: the column given by "
        "--by, else category. Default: only results of all items.",
    ),
    click.option(
        "--criterion",
        "criterion_column",
        metavar="COLUMN",
        help="Take the criterion of each row from this column of FILE. Default: none.",
    ),
    click.option(
        "--item",
        "item_column",
        metavar="COLUMN",
        help="Identify items by this column of FILE. Default: id or item, if there.",
    ),
    click.option(
        "--cluster",
        "cluster_column",
        metavar="COLUMN",
        help="Count rows with the same value in this column of FILE or of --items as dependent, "
        "such as repeats of an item. Default: each row is independent, and no item has two rows.",
    ),
    compared_options,
    interval_option,
)
"""Adds the options that say how to read and compare a table of labels."""
