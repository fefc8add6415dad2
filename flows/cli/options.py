"""Options that several commands share."""

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from tasks.kit.command_line import Finite, Place

FORMATS = click.Choice(["table", "json", "csv"])
FILES = click.Choice(["table", "json", "csv", "parquet"])
COPIES = click.Choice(["parquet", "csv"])
CHECKS = click.Choice(["drop", "flag"])
MODES = click.Choice(["balanced", "paper"])
INTERVALS = click.Choice(["wilson", "clopper_pearson", "jeffreys"])
KINDS = click.Choice(["additive", "multiplicative"])
TESTS = click.Choice(["auto", "score", "t"])
PATH = Place()
FILE = Place(dir_okay=False)
FOLDER = Place(file_okay=False)
SHAMS = click.Choice(["first", "second", "both", "none"])
STOPS = click.Choice(["none", "lossless", "pair"])
NEXT_COLUMN = re.compile(r",(?=\w+=)")
"""Where the next column of --map begins."""
Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def complete_from(module: str, catalogue: str) -> Complete:
    """Return what completes the names of a catalogue, or of a function's result.

    It is imported only then.
    """

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
        known = getattr(import_module(module), catalogue)
        names = known() if callable(known) else known
        return sorted(name for name in names if name.startswith(begun))

    return complete


def complete_studies(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the studies that begin so, bundled ones, the user's own and those in the warehouse."""
    from warehouse.peek import default_path, studies_in

    listed = complete_from("flows.studies", "STUDIES")(context, parameter, begun)
    saved = studies_in(context.params.get("warehouse") or default_path())
    return sorted({*listed, *(name for name in saved if name.startswith(begun))})


def map_option(name: str, metavar: str, told: str) -> Callable[..., Any]:
    """Return the option that maps columns to what a file of the user calls them."""
    return click.option("--map", name, multiple=True, metavar=metavar, callback=_mapping, help=told)


def _mapping(
    context: click.Context,  # noqa: ARG001 - as click calls it
    parameter: click.Parameter,
    given: tuple[str, ...],
) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in [one for text in given for one in NEXT_COLUMN.split(text)]:
        column, _, path = each.partition("=")
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


OPTIONS = (
    click.option(
        "--dataset",
        shell_complete=complete_from("tasks.datasets", "DATASETS"),
        help="Name of a dataset, or path of your own data file. Default: bloom, the bundled one.",
    ),
    click.option(
        "--folder",
        help="Folder with the files of a dataset that is not bundled. Default: none.",
    ),
    click.option(
        "--by",
        "category_column",
        metavar="COLUMN",
        help="Column of your own data file by whose values results are split. Default: category.",
    ),
    map_option(
        "columns",
        "COLUMN=NAME",
        "Column of voirdire, and what your own data file calls it, such as question=prompt,anchor="
        "answer_a (repeatable). Then columns that voirdire does not know are left out.",
    ),
    click.option(
        "--perturbation",
        "perturbations",
        multiple=True,
        shell_complete=complete_from("tasks.perturbations", "PERTURBATIONS"),
        help="Perturbation to test (repeatable). Default: the four classic ones, such as "
        "fake_reference; `voirdire list perturbations` shows all.",
    ),
    click.option(
        "--judge",
        "judges",
        multiple=True,
        shell_complete=complete_from("tasks.providers", "JUDGES"),
        help="Judge to audit (repeatable). Default: five simulated ones.",
    ),
    click.option(
        "--prompt",
        "prompts",
        multiple=True,
        shell_complete=complete_from("tasks.prompts", "PROMPTS"),
        help="Prompt that the judges get (repeatable). Default: pair_v2.",
    ),
    click.option(
        "--votes", "votes_per_pair", type=int, help="Votes per judge and pair. Default: 2."
    ),
    click.option(
        "--mode",
        type=MODES,
        help="balanced: show each pair equally often in both orders. paper: draw positions at "
        "random, as in arXiv 2402.10669. Default: balanced.",
    ),
    click.option(
        "--stop",
        type=STOPS,
        help="Stop asking about a pair early: when the verdict can no longer change (lossless), "
        "or when one answer leads by two votes (pair). Default: none.",
    ),
    click.option(
        "--probe",
        is_flag=True,
        default=None,
        help="Ask for one vote per order if a judge repeats itself in 99 of 100 probes.",
    ),
    click.option(
        "--sham",
        type=SHAMS,
        help="Recipe of the sham (meaning-free edit) that shifts are measured against. none: "
        "measure against the control. Default: first.",
    ),
    click.option(
        "--detects-at",
        type=float,
        help="Share of flaws that a judge must detect for the finding `detects`. Default: .5.",
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
        help="Label of this measurement, such as a date. A new label casts all votes again. "
        "Default: no label.",
    ),
    click.option(
        "--seed", type=int, help="Random seed of templates, shams and positions. Default: 0."
    ),
    click.option("--limit", type=int, help="Maximum number of questions. Default: all."),
    click.option(
        "--budget",
        "budget_usd",
        type=float,
        help="Maximum cost in US dollars. Default: no limit.",
    ),
    click.option(
        "--gaps-allowed",
        type=float,
        help="Maximum share of a judge's ballots without a reply. Default: .05.",
    ),
    click.option(
        "--too-fast",
        "too_fast_seconds",
        type=float,
        help="Exclude votes of people that took less than this many seconds. Default: 3.",
    ),
    click.option(
        "--patience",
        "patience_seconds",
        type=Finite(min=0),
        help="Seconds to wait while another program holds the warehouse open. Default: 600.",
    ),
    click.option(
        "--checks",
        type=CHECKS,
        help="Drop texts that fail a validity check, or keep and flag them. Default: drop.",
    ),
)
pictures_option = click.option(
    "--pictures", type=FOLDER, help="Also write the charts to this folder, as SVG and PNG files."
)
format_option = click.option(
    "--format", "form", type=FORMATS, default="table", show_default=True, help="Output format."
)


def server_option(default: str) -> Callable[..., Any]:
    """Return the option that names a Prefect server; without it and PREFECT_API_URL: default."""
    return click.option(
        "--server",
        metavar="URL",
        help="API address of a Prefect server, such as http://127.0.0.1:4200/api. Default: "
        f"PREFECT_API_URL, else {default}.",
    )


STUDY_FIRST = (
    "An option that is not given has the value that the file of STUDY gives, else its default."
)


def study_options(name_help: str) -> Callable[..., Any]:
    """Return a decorator that adds the options that change a study."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed((*OPTIONS, click.option("--name", help=name_help))):
            command = option(command)
        command.__doc__ = f"{command.__doc__}\n\n{STUDY_FIRST}"
        return command

    return add


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that read logs of other tools."""
    for option in (
        click.option(
            "--people",
            help="Count only the people whose names match this pattern, such as 'expert_*'.",
        ),
        map_option(
            "mapping",
            "COLUMN=PATH",
            "Read a table of your own: a column, and the dotted path of its field, such as "
            "label=score.value (repeatable). Columns: judge, item, label, value, human_label, "
            "human_value, human, criterion, cluster, category, prompt; shown_first and choice for "
            "votes.",
        ),
    ):
        command = option(command)
    return command


LABEL_TABLE = (
    click.option(
        "--judge",
        "judge_columns",
        multiple=True,
        metavar="COLUMN",
        help="Column of FILE with the labels of a judge (repeatable). Default: judge.",
    ),
    click.option(
        "--human",
        "human_columns",
        multiple=True,
        metavar="COLUMN",
        help="Column of FILE with the labels of a person (repeatable). Default: human.",
    ),
    click.option(
        "--slice",
        "slice_columns",
        multiple=True,
        metavar="COLUMN",
        help="Also show results for each value of this column of FILE or of --items (repeatable). "
        "A STUDY has the column category.",
    ),
    click.option(
        "--criterion",
        "criterion_column",
        metavar="COLUMN",
        help="Column of FILE that names the criterion of each row.",
    ),
    click.option(
        "--item",
        "item_column",
        metavar="COLUMN",
        help="Column of FILE that identifies items. Default: id or item, if there.",
    ),
    click.option(
        "--cluster",
        "cluster_column",
        metavar="COLUMN",
        help="Column of FILE whose values group rows that are not independent, also repeats of an "
        "item.",
    ),
    click.option(
        "--pass",
        "positive",
        metavar="LABEL",
        help="Label that counts as a pass. Default: the usual words, such as pass, yes, true, 1.",
    ),
    click.option(
        "--scale",
        nargs=2,
        type=Finite(),
        metavar="LOW HIGH",
        help="Ends of the scale of grades. Grades outside are invalid.",
    ),
    click.option(
        "--threshold",
        type=Finite(),
        metavar="GRADE",
        help="Grades from this one on pass: compare passes and fails, and correct the pass rate.",
    ),
    click.option(
        "--interval",
        type=INTERVALS,
        default="wilson",
        show_default=True,
        help="Confidence interval for proportions (cluster-adjusted).",
    ),
    click.option(
        "--random-labels",
        is_flag=True,
        help="The items with a label of people were drawn at random: correct the pass rate or mean "
        "grade of all items by PPI++.",
    ),
)


def label_table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how to read and compare a table of labels."""
    for option in reversed(LABEL_TABLE):
        command = option(command)
    return command
