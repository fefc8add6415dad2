"""The command line: a thin layer on the flows. Heavy imports wait until a command needs them."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from flows.running.processes import Terminated, leave, sigterm_interrupts
from tasks.kit.command_line import Commands, Finite, Place, errors_in_a_line
from tasks.kit.printable import message

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
OPTIONS = (
    click.option("--dataset", help="Name of a dataset, or path of your own file."),
    click.option("--folder", help="Folder of the dataset's files, if it is not bundled."),
    click.option("--perturbation", "perturbations", multiple=True, help="Repeat for several."),
    click.option("--judge", "judges", multiple=True, help="Repeat for several."),
    click.option("--prompt", help="Name of the judge prompt."),
    click.option("--votes", "votes_per_pair", type=int, help="Votes of each judge per pair."),
    click.option("--mode", type=MODES, help="How positions are chosen and votes counted."),
    click.option("--stop", type=STOPS, help="Ask no more votes once they cannot matter."),
    click.option("--probe", is_flag=True, default=None, help="One vote if repeats agree."),
    click.option("--sham", type=SHAMS, help="The meaning-free edit that shifts are over."),
    click.option("--detects-at", type=float, help="Share of flaws that detecting takes."),
    click.option("--replicates", is_flag=True, default=None, help="Ask control once more."),
    click.option("--wave", help="Label of this measurement; a new one asks again."),
    click.option("--seed", type=int, help="Of templates, shams and random positions."),
    click.option("--limit", type=int, help="At most so many questions."),
    click.option("--budget", "budget_usd", type=float, help="Hard cap in US dollars."),
    click.option(
        "--gaps-allowed",
        type=float,
        help="Share of a judge's ballots that may lack a reply. Default: .05.",
    ),
    click.option(
        "--too-fast", "too_fast_seconds", type=float, help="Leave out faster votes of people."
    ),
    click.option(
        "--patience",
        "patience_seconds",
        type=Finite(min=0),
        help="Seconds to wait for a warehouse that another program holds open. Default: 600.",
    ),
    click.option("--checks", type=CHECKS, help="What to do with texts that fail a validity check."),
    click.option("--name", help="Keep the results under this name."),
)
warehouse_option = click.option(
    "--warehouse",
    type=PATH,
    help="The DuckDB file. Default: VOIRDIRE_WAREHOUSE, else voirdire.duckdb.",
)
server_option = click.option(
    "--server",
    metavar="URL",
    help="A Prefect server, such as http://127.0.0.1:4200/api. Default: PREFECT_API_URL, else that "
    "of your own `voirdire serve`, else a new one.",
)


def study_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that change a study."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def clear_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn bad input into one line; VOIRDIRE_DEBUG=1 shows where it was found."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        # Whatever a command writes, be it by a library, only its user may read.
        mask = os.umask(0o077)
        try:
            with sigterm_interrupts(), errors_in_a_line():
                return command(*args, **options)
        except KeyboardInterrupt as stop:
            click.echo("voirdire: stopped. Every vote that was saved is kept; run again.", err=True)
            leave(143 if isinstance(stop, Terminated) else 130)
        finally:
            os.umask(mask)
            warn_of_providers()

    return run


def warn_of_providers() -> None:
    """Name each provider file of the user that is left out, if providers were loaded."""
    catalogue = getattr(sys.modules.get("tasks.providers"), "PROVIDERS", None)
    for problem in catalogue.unusable.values() if catalogue else ():
        click.echo(f"voirdire: left out: {message(problem)}", err=True)


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="voirdire")
def main() -> None:
    """Put LLM judges on the stand: how biased they are, and how sure one can be."""


@main.command()
@click.argument("study", default="quick")
@study_options
@click.option("--yes", is_flag=True, help="Do not ask before spending more than 1 USD.")
@server_option
@warehouse_option
@clear_errors
def audit(
    study: str, warehouse: Path | None, *, server: str | None, yes: bool, **options: Any
) -> None:
    """Run STUDY (quick) and show which judges are biased."""
    from flows.cli.audit import audit_here

    code = audit_here(study, _given(options), warehouse, confirmed=yes, server=server)
    sys.exit(code)


@main.command()
@click.argument("study", default="quick")
@study_options
@click.option(
    "--effect",
    type=float,
    help="Also tell how many samples a shift of this size takes.",
)
@warehouse_option
@clear_errors
def plan(study: str, warehouse: Path | None, effect: float | None, **options: Any) -> None:
    """Show what STUDY would ask, cost and see."""
    from flows.cli.plan import show_plan
    from flows.studies import make_study

    show_plan(make_study(study, _given(options)), warehouse, effect)


@main.command()
@click.argument("votes", type=PATH)
@click.option("--mode", type=MODES, default="balanced", show_default=True)
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
@click.option(
    "--only", multiple=True, help="Only this statistic; repeat for several. Or `scorecard`."
)
@click.option(
    "--interval",
    type=INTERVALS,
    default="wilson",
    show_default=True,
    help="Which interval shares get, all at the effective size of their clusters.",
)
@click.option(
    "--warehouse",
    type=PATH,
    help="Also save all results in this DuckDB file, as a study named after VOTES.",
)
@clear_errors
def measure(
    votes: Path,
    mode: str,
    form: str,
    only: tuple[str, ...],
    warehouse: Path | None,
    *,
    interval: str,
) -> None:
    """Measure a file of votes collected elsewhere.

    VOTES is a .jsonl, .csv or .parquet file; docs/reference/file-formats.md describes its columns.
    """
    from flows.cli.measure import show_measures

    show_measures(votes, mode, form, only, warehouse, interval=interval)


@main.command()
@click.argument("study", required=False)
@click.option("--humans", type=PATH, help="Labels of people: .json, .csv, .parquet.")
@click.option("--judges", type=PATH, help="Labels of judges, in the same form.")
@click.option(
    "--metric",
    default="accuracy",
    show_default=True,
    help="What fits: a name (see `voirdire list`), or PATH:FUNCTION of (label, other), 0 to 1.",
)
@click.option("--epsilon", type=float, default=0.1, show_default=True, help="Margin: 0 to < 1.")
@click.option("--epsilon-kind", "kind", type=KINDS, default="additive", show_default=True)
@click.option("--test", type=TESTS, default="auto", show_default=True)
@click.option(
    "--min-instances", "least", type=int, default=30, show_default=True, help="Of an annotator."
)
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
@click.option("--curve", is_flag=True, help="Also the winning rate at epsilon 0 to .3.")
@click.option("--plan", is_flag=True, help="How many instances it takes, from people's labels.")
@click.option("--name", help="Keep the results under this name.")
@click.option("--save/--no-save", default=True, help="Keep the results and write a report.")
@click.option("--pictures", type=FOLDER, help="Also write the pictures into this folder.")
@warehouse_option
@clear_errors
def calibrate(
    study: str | None, humans: Path | None, judges: Path | None, form: str, **options: Any
) -> None:
    """Tell which judges may replace human annotators (alternative annotator test).

    Labels for which no file is given are the votes of STUDY in the warehouse.
    """
    from tasks.kit.memory import prepare_for_millions

    prepare_for_millions()
    from flows.cli.calibrate import show_calibration

    show_calibration(study, humans, judges, form, **options)


@main.command()
@click.argument("study", default="quick")
@click.option("--formulas", is_flag=True, help="Leave out bootstrap and permutation.")
@click.option(
    "--too-fast",
    "too_fast_seconds",
    type=Finite(min=0),
    help="Leave out votes of people that took less than so many seconds. Default: the study's, 3.",
)
@warehouse_option
@clear_errors
def remeasure(
    study: str, warehouse: Path | None, *, formulas: bool, too_fast_seconds: float | None
) -> None:
    """Measure the saved votes of STUDY (quick) anew, with this version; nobody is asked.

    Votes of people join those of the judges, and all stand in one table, ranked.
    """
    from tasks.kit.memory import prepare_for_millions

    prepare_for_millions()
    from flows.cli.ranking_table import show_ranked
    from flows.cli.terminal import say
    from flows.results.remeasure import measure_anew

    told = measure_anew(study, warehouse, formulas=formulas, too_fast_seconds=too_fast_seconds)
    show_ranked(study, warehouse)
    say(told)


@main.command()
@click.argument("query")
@click.option(
    "--format",
    "form",
    type=FILES,
    help="Default: as --output ends (.json, .csv, .parquet), else table.",
)
@click.option("--output", type=FILE, help="Write the rows to this file.")
@warehouse_option
@clear_errors
def sql(query: str, form: str | None, output: Path | None, warehouse: Path | None) -> None:
    """Run a query on the warehouse, read-only; it reaches no other file and no network."""
    from flows.cli.query import show_query

    show_query(query, form, warehouse, output)


@main.command()
@click.argument("study", required=False)
@click.option("--output", type=PATH, required=True, help="A new folder for the files.")
@click.option("--format", "form", type=COPIES, default="parquet", show_default=True)
@warehouse_option
@clear_errors
def export(study: str | None, output: Path, form: str, warehouse: Path | None) -> None:
    """Write all tables and marts, or those of STUDY, as files."""
    from flows.publishing.export import export as write_files

    write_files(study, output, form, warehouse)


@main.command()
@click.option(
    "--output", type=FILE, help="Where to. Default: beside the warehouse, as NAME.snapshot.duckdb."
)
@warehouse_option
@clear_errors
def snapshot(output: Path | None, warehouse: Path | None) -> None:
    """Copy the warehouse, for tools that keep a file open; an earlier copy is replaced."""
    from flows.cli.query import write_snapshot

    write_snapshot(output, warehouse)


@main.command()
@click.argument("study", default="quick")
@click.option("--out", type=FILE, help="Where to write the HTML file.")
@click.option("--number", is_flag=True, help="Print one number per judge too, if you must.")
@warehouse_option
@clear_errors
def report(study: str, out: Path | None, warehouse: Path | None, *, number: bool) -> None:
    """Write the report of STUDY from the warehouse."""
    from flows.cli.query import rewrite_report

    rewrite_report(study, out, warehouse, number=number)


@main.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.pass_context
def booth(context: click.Context) -> None:
    """Let people vote on the pairs of STUDY (quick), on a web page."""
    # A room of its own, which nobody imports; in this very process, so that signals reach it.
    os.execv(sys.executable, [sys.executable, "-m", "booth", *context.args])  # noqa: S606


@main.command(name="list")
@click.argument("name", required=False)
@clear_errors
def list_(name: str | None) -> None:
    """List every name that an option takes, or explain a NAME: a statistic, a row, a column.

    The name of a list, such as `metrics`, prints that list alone.
    """
    from flows.cli.listing import explain, show_catalogues

    if name:
        explain(name)
    else:
        show_catalogues()


@main.command()
@click.option(
    "--port", type=click.IntRange(1, 65535), default=4200, show_default=True, help="Of its server."
)
@click.option("--no-auth", is_flag=True, help="Let in whoever reaches the server: it runs code.")
@server_option
@warehouse_option
@clear_errors
def serve(warehouse: Path | None, *, port: int, no_auth: bool, server: str | None) -> None:
    """Offer every study in the Prefect UI, and run those whose schedule is switched on."""
    from flows.serve import serve_studies

    warn_of_providers()
    serve_studies(warehouse, port=port, server=server, auth=not no_auth)


@main.command()
@click.option("--on", multiple=True, metavar="STUDY", help="Switch on; repeat for several.")
@click.option("--off", multiple=True, metavar="STUDY", help="Switch off; repeat for several.")
@server_option
@clear_errors
def schedules(*, on: tuple[str, ...], off: tuple[str, ...], server: str | None) -> None:
    """Show, and switch on or off, when studies run by themselves while they are served."""
    from flows.serve import switch_schedules

    switch_schedules(on, off, server)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Keep the options that were given."""
    lists = {"perturbations", "judges"}
    given = {k: v for k, v in options.items() if v not in (None, ())}
    return {k: list(v) if k in lists else v for k, v in given.items()}


if __name__ == "__main__":
    main()
