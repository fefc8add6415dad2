"""The command line: a thin layer on the flows. Heavy imports wait until a command needs them."""

import os
import sys
from pathlib import Path
from typing import Any, get_args

import click

from flows.cli.completion import (
    DEFAULT_STUDY,
    complete_from,
    complete_source,
    complete_studies,
)
from flows.cli.options import (
    PATH,
    category_option,
    choice_option,
    command,
    compared_options,
    format_option,
    interval_option,
    label_table_options,
    log_options,
    pictures_option,
    server_option,
    study_options,
)
from flows.cli.result_commands import browse, export, gate, report, show, snapshot, sql
from flows.running.processes import KEPT, UNCHANGED, warn_of_ignored_files
from schemas.keys import EpsilonKind, Mode, Test
from tasks.kit.command_line import (
    CONTEXT,
    Commands,
    Finite,
    port_option,
    print_notice,
    warehouse_option,
)
from tasks.kit.user_folder import require_home


@click.group(
    cls=Commands,
    context_settings=CONTEXT,
    sections=("Audit", "People", "Results", "Operate"),
    examples=("voirdire audit quick", "voirdire show quick"),
)
@click.version_option(package_name="voirdire")
def main() -> None:
    """Measure the biases of LLM judges, with confidence intervals."""
    # The matrices are small: threads that wait for the next product would double the CPU time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A server or worker that is started with -m must not import what lies in the current folder.
    os.environ.setdefault("PYTHONSAFEPATH", "1")


@command(
    "Audit",
    "voirdire audit quick",
    "voirdire audit --judge openai/gpt-5.4-mini --name mini --budget 5",
    stopped=KEPT,
)
@click.argument("study", required=False, shell_complete=complete_studies)
@study_options("Save the results under this name. Default: the name of STUDY.")
@click.option("--yes", is_flag=True, help="Spend more than 1 USD without asking for confirmation.")
@server_option("your running `voirdire serve`, else a temporary server")
@warehouse_option
def audit(
    study: str | None, warehouse: Path | None, *, server: str | None, yes: bool, **options: Any
) -> None:
    """Run STUDY (default: quick) and show which judges are biased."""
    require_home()
    from flows.cli.printing.live import shown

    named = options.get("name") or study or DEFAULT_STUDY
    with shown(f"audit {named}", lines=True) as view:
        from flows.cli.audit import audit_here

        given = _given(options)
        code = audit_here(study, given, warehouse, confirmed=yes, server=server, view=view)
    sys.exit(code)


@command(
    "Audit",
    "voirdire plan quick",
    "voirdire plan --judge openai/gpt-5.4-mini --name mini --effect .1",
    stopped=UNCHANGED,
)
@click.argument("study", required=False, shell_complete=complete_studies)
@study_options(
    "Name the planned study. Without STUDY and other options, plan the study that already has "
    "this name. Default: the name of STUDY."
)
@click.option(
    "--effect",
    type=Finite(),
    help="Also show how many samples are needed to detect a shift of this size. Default: "
    "only the smallest shifts that the planned number of samples detects.",
)
@warehouse_option
def plan(study: str | None, warehouse: Path | None, effect: float | None, **options: Any) -> None:
    """Show the calls, the cost and the smallest detectable effects of STUDY (default: quick)."""
    require_home()
    from flows.cli.plan import show_plan, study_to_plan
    from tasks.kit.defaults import limited_by

    planned = study_to_plan(study, _given(options), warehouse)
    with limited_by(planned.thresholds):
        show_plan(planned, warehouse, effect)


@command(
    "Results",
    "voirdire measure votes.jsonl",
    "voirdire measure results.json --only scorecard --format json",
)
@click.argument("votes", type=PATH)
@choice_option(
    "--mode",
    among=get_args(Mode),
    text="Say how pairs were shown. balanced: each in both orders equally often. paper: in an "
    "order drawn at random.",
)
@format_option("table", "json", "csv")
@click.option(
    "--only",
    multiple=True,
    help="Show only this statistic (repeatable), or `scorecard`. Default: all statistics.",
)
@interval_option
@click.option(
    "--warehouse",
    type=PATH,
    help="Also save all results in this DuckDB file, as a study with the name of the file VOTES. "
    "Default: nothing is saved.",
)
@log_options
@category_option
@compared_options
def measure(votes: Path, **options: Any) -> None:
    """Compute all statistics of a file of votes that were collected elsewhere.

    VOTES is a .jsonl, .csv or .parquet file; docs/reference/file-formats.md describes its columns.
    Logs of other tools (files, or a folder of them) are recognised by their content; `voirdire list
    formats` names them.
    """
    require_home()
    from flows.cli.printing.live import shown

    with shown(f"measure {votes.name}") as view:
        from flows.cli.measure import show_measures

        show_measures(votes, view=view, **options)


@command(
    "Results",
    "voirdire doctor results.json",
    "voirdire doctor logs --people 'expert_*'",
    stopped=UNCHANGED,
)
@click.argument("log", type=PATH)
@log_options
def doctor(log: Path, people: str | None, mapping: dict[str, str]) -> None:
    """Say which format LOG has, what can be computed from it, and what cannot, with the reason.

    LOG is a file of votes, or a log of another tool, or a folder of such logs.
    """
    require_home()
    from flows.cli.measure import show_recognised

    show_recognised(log, people, mapping)


@command(
    "People",
    "voirdire calibrate labels.csv --judge judge --human human",
    "voirdire calibrate --humans people.json --judges judges.json --metric jaccard",
)
@click.argument("source", required=False, metavar="[STUDY|FILE]", shell_complete=complete_source)
@log_options
@label_table_options
@click.option(
    "--humans",
    type=PATH,
    help="Read labels of people from this file (.json, .csv or .parquet), also with a log of "
    "judges as FILE, whose items it names. Default: from FILE, or the votes of people on STUDY.",
)
@click.option(
    "--judges",
    type=PATH,
    help="Read labels of judges from such a file. Default: from FILE, or the votes of judges on "
    "STUDY.",
)
@click.option(
    "--items",
    type=PATH,
    help="Read a row per item from this file (.csv, .jsonl or .parquet): texts that the list of "
    "disagreements shows, and columns of slices. For a log, or with --humans and --judges. "
    "Default: what a log knows of its items; no texts of other labels.",
)
@click.option(
    "--metric",
    default="accuracy",
    show_default=True,
    shell_complete=complete_from("tasks.metrics", "METRICS"),
    help="Compare labels by this metric: a built-in name (see `voirdire list metrics`) or "
    "PATH:FUNCTION. The function takes two labels and returns a number from 0 to 1.",
)
@click.option(
    "--all-metrics",
    is_flag=True,
    help="Also test with every other metric that suits the labels, and with both kinds of epsilon: "
    "one table and one chart.",
)
@click.option(
    "--epsilon",
    type=Finite(),
    default=0.1,
    show_default=True,
    help="Allow a judge to be worse than a person by this margin (0 to below 1).",
)
@choice_option(
    "--epsilon-kind",
    among=get_args(EpsilonKind),
    text="Subtract the margin from a person's advantage probability (additive), or the margin "
    "times that probability (multiplicative).",
)
@choice_option(
    "--test",
    among=get_args(Test),
    text="Use this test. auto: the score test for few instances, else the t test.",
)
@click.option(
    "--min-instances",
    type=int,
    default=30,
    show_default=True,
    help="Test only annotators with at least this many instances.",
)
@format_option("table", "json", "csv")
@click.option(
    "--curve", is_flag=True, help="Also show the winning rate for each epsilon from 0 to .3."
)
@click.option(
    "--plan", is_flag=True, help="Only estimate the number of instances that the test needs."
)
@click.option(
    "--name",
    help="Save the results under this name. Default: the name of FILE or of --humans, or "
    "STUDY-people.",
)
@click.option(
    "--save/--no-save", default=True, show_default=True, help="Save the results and write a report."
)
@pictures_option
@warehouse_option
def calibrate(source: str | None, humans: Path | None, **options: Any) -> None:
    """Compare judges with people: agreement, kappa, error rates, bias, disagreements.

    FILE (.csv, .jsonl or .parquet) has one row per item and a column for each judge and each
    person. With two people or more, also test which judges may replace human annotators
    (alternative annotator test).

    The labels can also be in two files, --humans and --judges; where you give no file, the votes of
    STUDY in the warehouse are the labels. FILE can also be
    a log of another tool, or a folder of logs, with ratings of judges and of people.
    """
    require_home()
    from tasks.kit.memory import prepare_for_millions

    prepare_for_millions()
    from flows.cli.printing.live import shown

    with shown(f"calibrate {Path(source or humans or '').name}".strip()) as view:
        from flows.cli.calibrate import show_calibration

        show_calibration(source, humans, view=view, **options)


@command("Results", "voirdire remeasure quick", "voirdire remeasure quick --formulas")
@click.argument("study", default=DEFAULT_STUDY, shell_complete=complete_studies)
@click.option(
    "--formulas", is_flag=True, help="Skip bootstrap and permutation tests (for millions of votes)."
)
@click.option(
    "--too-fast",
    "too_fast_seconds",
    type=Finite(min=0),
    help="Exclude votes of people that took less than this many seconds. Default: the limit of the "
    "study (3 unless it sets another).",
)
@warehouse_option
def remeasure(study: str, warehouse: Path | None, **options: Any) -> None:
    """Recompute the results of STUDY (default: quick) from its saved votes; no judge is called.

    Adds the votes of people, prints one ranked table of judges and people, and writes the report
    again.
    """
    require_home()
    from tasks.kit.memory import prepare_for_millions

    prepare_for_millions()
    from flows.cli.printing.live import shown

    with shown(f"remeasure {study}"):
        from flows.cli.printing.live import Printer
        from flows.cli.printing.ranking_table import show_ranked
        from flows.cli.printing.tables import print_line
        from flows.results.remeasure import remeasure_study
        from flows.results.up_to_date import renew_report
        from tasks.kit.command_line import say
        from warehouse.path_checks import default_path
        from warehouse.store import Warehouse

        done = remeasure_study(study, warehouse, **options)
        report = renew_report(study, Warehouse(warehouse or default_path()), print_notice)
    show_ranked(study, warehouse, done.study)
    print_line(Printer(), done.message)
    if report.is_file():
        say(f"Report: {report}")


@main.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    section="People",
    examples=(
        "voirdire booth quick --voter ann",
        "voirdire booth quick --voter ann --voter ben --limit 20",
    ),
)
@click.pass_context
def booth(context: click.Context) -> None:
    """Let people vote on the pairs of STUDY (default: quick) on a web page."""
    # No other room imports booth. Replacing this process lets signals reach it.
    os.execv(sys.executable, [sys.executable, "-m", "booth", *context.args])  # noqa: S606


@command("Audit", "voirdire init", "VOIRDIRE_HOME=~/judges voirdire init")
def init() -> None:
    """Write a commented example of each kind of entry to your own folder.

    The folder is VOIRDIRE_HOME, else `voirdire` in the current folder. Existing files are kept.
    """
    from flows.cli.examples import write_examples

    write_examples()


@command("Audit", "voirdire list", "voirdire list dasr", name="list", stopped=UNCHANGED)
@click.argument(
    "name", required=False, shell_complete=complete_from("flows.cli.listing", "known_names")
)
def list_(name: str | None) -> None:
    """List all names that options accept, or explain NAME, such as a statistic or a column.

    If NAME is a list, such as `metrics`, only that list is printed.
    """
    require_home()
    from flows.cli.listing import explain, show_catalogues

    if name:
        explain(name)
    else:
        show_catalogues()


@command("Operate", "voirdire serve", "voirdire serve --port 4300 --warehouse team.duckdb")
@port_option(4200, "Run the Prefect server on this port.")
@click.option(
    "--no-auth",
    is_flag=True,
    help="Start the server without authentication. Anybody who can reach it can then run code.",
)
@server_option("a new server, which ends with this command (an error if `voirdire serve` runs)")
@warehouse_option
def serve(warehouse: Path | None, *, port: int, no_auth: bool, server: str | None) -> None:
    """Offer all studies in the Prefect UI and run them on their schedules."""
    require_home()
    from flows.serve import serve_studies

    warn_of_ignored_files()
    serve_studies(warehouse, port=port, server=server, auth=not no_auth)


@command("Operate", "voirdire schedules", "voirdire schedules --on canary")
@click.option(
    "--on",
    multiple=True,
    metavar="STUDY",
    help="Switch the schedule of STUDY on (repeatable). Default: none.",
)
@click.option(
    "--off",
    multiple=True,
    metavar="STUDY",
    help="Switch the schedule of STUDY off (repeatable). Default: none.",
)
@server_option("your running `voirdire serve`")
def schedules(*, on: tuple[str, ...], off: tuple[str, ...], server: str | None) -> None:
    """Show the schedules of served studies, and switch them on or off."""
    from flows.serve import switch_schedules

    switch_schedules(on, off, server)


@main.command(
    section="Operate",
    examples=(
        "voirdire completion bash >> ~/.bashrc",
        "voirdire completion fish > ~/.config/fish/completions/voirdire.fish",
    ),
)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that lets SHELL (bash, zsh or fish) complete commands and names.

    It completes the names of studies, judges, perturbations, prompts, datasets, metrics, questions
    and their parameters, also of your own.
    """
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    found = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}[shell]
    click.echo(found(main, {}, "voirdire", "_VOIRDIRE_COMPLETE").source())


for made in (audit, plan, measure, doctor, calibrate, remeasure, init, list_, serve, schedules):
    main.add_command(made)
for made in (browse, export, gate, report, show, snapshot, sql):
    main.add_command(made)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Keep the options that were given."""
    lists = {"perturbations", "judges", "prompts"}
    given = {k: v for k, v in options.items() if v not in (None, (), {})}
    return {k: list(v) if k in lists else v for k, v in given.items()}


if __name__ == "__main__":
    main()
