"""Commands that read results from the warehouse; heavy imports wait until one needs them."""

import os
import sys
from pathlib import Path
from typing import Any, get_args

import click

from flows.cli.completion import (
    DEFAULT_STUDY,
    complete_from,
    complete_judges,
    complete_results,
    complete_values,
    complete_waves,
)
from flows.cli.options import (
    OUTPUT_FILE,
    PATH,
    command,
    format_option,
    name_option,
    pictures_option,
    shown_options,
)
from flows.running.processes import UNCHANGED
from schemas.keys import Gate
from tasks.evidence.browse_address import PORT, view_of
from tasks.kit.command_line import port_option, warehouse_option


@command(
    "Results",
    "voirdire show quick --judge offline/dazzled",
    "voirdire show quick --invalid --most 3",
    stopped=UNCHANGED,
)
@click.argument("study", default=DEFAULT_STUDY, shell_complete=complete_results)
@shown_options
@click.option(
    "--wave",
    shell_complete=complete_waves,
    help="Show only this wave. Default: all waves that have results.",
)
@click.option(
    "--flipped",
    is_flag=True,
    help="Show pairs on which a perturbation changed the verdict. Default if no other view "
    "(--moved, --invalid, --disagree, --changed or --all) is chosen.",
)
@click.option(
    "--moved", is_flag=True, help="Show grades that a perturbation moved, the furthest first."
)
@click.option("--invalid", is_flag=True, help="Show replies without a verdict.")
@click.option(
    "--disagree",
    is_flag=True,
    help="Show items that the judge and people label differently, the worst first.",
)
@click.option(
    "--changed",
    is_flag=True,
    help="Show votes that differ from those of the baseline wave, with both replies.",
)
@click.option("--all", is_flag=True, help="Show all pairs, also those with the same verdict.")
@click.option(
    "--pair",
    "sample",
    metavar="ID",
    help="Show only this sample, the sample of this pair_id, or all samples of this question, by "
    "its id in your data. Default: all samples.",
)
@click.option(
    "--most",
    type=click.IntRange(1, 1_000_000),
    default=10,
    show_default=True,
    help="Show at most this many.",
)
@format_option("text", "json")
@warehouse_option
def show(study: str, warehouse: Path | None, **options: Any) -> None:
    """Show the texts, verdicts and replies behind the results of STUDY (default: quick)."""
    from flows.cli.printing.evidence import show_evidence

    kinds = ("flipped", "moved", "invalid", "disagree", "changed", "all")
    whats = [what for what in kinds if options.pop(what)]
    if len(whats) > 1:
        both = " and ".join(f"--{what}" for what in whats)
        raise ValueError(f"{both} cannot be given together. Give one of them.")
    show_evidence(study, whats[0] if whats else "flipped", warehouse, **options)


@command(
    "Results",
    'voirdire sql "select judge, shift, finding from bias"',
    "voirdire sql --ask which_judge --set study=quick",
    stopped=UNCHANGED,
)
@click.argument("query", required=False)
@click.option(
    "--ask",
    metavar="QUESTION",
    shell_complete=complete_from("flows.cli.questions", "questions"),
    help="Answer this question, such as `which_judge`; `voirdire sql` lists all. Default: run "
    "QUERY.",
)
@click.option(
    "--set",
    "values",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=complete_values,
    help="Set a parameter of the question, such as study=nightly (repeatable). Default: the "
    "default of the question.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "parquet"]),
    help="Print or write rows in this format. Default: the suffix of --output, or a table.",
)
@click.option(
    "--output", type=OUTPUT_FILE, help="Write the result to this file. Default: print it."
)
@warehouse_option
def sql(**options: Any) -> None:
    """Run a read-only query on the warehouse, without access to other files or the network.

    Without QUERY, list the marts (views made for queries) and the questions that --ask answers.
    """
    from flows.cli.sql_and_report import show_query

    show_query(**options)


@command(
    "Results",
    "voirdire browse",
    "voirdire browse quick --judge offline/dazzled --perturbation fake_reference",
)
@click.argument("study", required=False, shell_complete=complete_results)
@shown_options
@click.option(
    "--pair",
    "sample",
    metavar="ID",
    help="Open this sample, the sample of this pair_id, or a sample of this question, by its id in "
    "your data. Default: the list of all comparisons.",
)
@port_option(PORT, "Listen on this port, on this machine only. 0: any free port.", least=0)
@warehouse_option
def browse(study: str | None, warehouse: Path | None, *, port: int, **filters: str | None) -> None:
    """Browse comparisons, texts and replies behind the results of STUDY on a local page.

    Prints the link and serves the pages until Ctrl-C, also while a run writes. Without STUDY, the
    page lists all studies. Links keep their form: http://127.0.0.1:8760/study/quick?judge=... .
    """
    given = {name: value for name, value in filters.items() if value is not None}
    if given and study is None:
        raise ValueError(f"--{next(iter(given))} needs a STUDY, as in `voirdire browse quick`.")
    view = view_of(study, **given) if study else "/"
    words = ["--port", str(port), *(["--warehouse", str(warehouse)] if warehouse else [])]
    # No other room imports booth. Replacing this process lets signals reach it.
    os.execv(  # noqa: S606
        sys.executable, [sys.executable, "-m", "booth.browsing", *words, "--", view]
    )


@command(
    "Results",
    "voirdire export quick --output results",
    "voirdire export --output everything --format csv",
)
@click.argument("study", required=False, shell_complete=complete_results)
@click.option("--output", type=PATH, required=True, help="Write the files to this new folder.")
@format_option("parquet", "csv", "json", text="Write files of this format.")
@warehouse_option
def export(study: str | None, output: Path, form: str, warehouse: Path | None) -> None:
    """Write all tables and marts to files, or only the rows of STUDY."""
    from flows.publishing.export import export as write_files

    write_files(study, output, form, warehouse)


@command("Results", "voirdire snapshot", "voirdire snapshot --output bi.duckdb")
@click.option(
    "--output",
    type=OUTPUT_FILE,
    help="Write the copy to this path. Default: NAME.snapshot.duckdb in the folder of the "
    "warehouse.",
)
@warehouse_option
def snapshot(output: Path | None, warehouse: Path | None) -> None:
    """Copy the warehouse for tools that keep a file open, replacing an earlier copy."""
    from flows.cli.sql_and_report import write_snapshot

    write_snapshot(output, warehouse)


@command("Results", "voirdire report quick", "voirdire report quick --pictures charts --number")
@click.argument("study", default=DEFAULT_STUDY, shell_complete=complete_results)
@click.option(
    "--output",
    "--out",
    "out",
    type=OUTPUT_FILE,
    help="Write the HTML file to this path. Default: reports/STUDY.html beside voirdire.duckdb, "
    "or NAME-reports/STUDY.html beside NAME.duckdb.",
)
@pictures_option
@click.option("--number", is_flag=True, help="Also print two summary scores per judge.")
@warehouse_option
def report(**options: Any) -> None:
    """Write the HTML report of STUDY (default: quick), or of a calibration, from the warehouse."""
    from flows.cli.sql_and_report import rewrite_report

    rewrite_report(**options)


@command(
    "Results",
    "voirdire gate quick",
    "voirdire gate nightly --judge openai/gpt-5.4-mini --junit gate.xml",
)
@click.argument("study", default=DEFAULT_STUDY, shell_complete=complete_results)
@click.option(
    "--wave",
    shell_complete=complete_waves,
    help="Check the gates of this wave. Default: the wave that was measured last.",
)
@name_option(
    "--judge",
    "judges",
    several=True,
    text="Check only the gates of this judge (repeatable). Default: all judges.",
    complete=complete_judges,
)
@name_option(
    "--prompt",
    "prompts",
    several=True,
    text="Check only the gates of judges under this prompt (repeatable). Default: all prompts.",
)
@click.option(
    "--only",
    "gates",
    multiple=True,
    type=click.Choice(get_args(Gate)),
    help="Check only this gate (repeatable). Default: all gates.",
)
@click.option(
    "--junit",
    "junit_file",
    type=OUTPUT_FILE,
    help="Write a test case per gate to this file, as JUnit XML. Default: no file.",
)
@click.option(
    "--markdown",
    "markdown_file",
    type=OUTPUT_FILE,
    help="Write a summary to this file, as Markdown. Default: no file.",
)
@warehouse_option
def gate(**options: Any) -> None:
    """Exit with 0 if the recommendation for each judge of STUDY (default: quick) is "use".

    Exit codes: 1 if a gate of the scorecard fails; 0 if none fails and each recommendation is
    "use"; else 3. Inconclusive drift without an alert limits no judge. With --only, these gates
    alone decide: 1 if one fails, 3 if one is inconclusive, else 0. The study sets the limits. An
    estimate alone never passes or fails: its interval, or the finding that rests on it, does.
    """
    from flows.cli.printing.gate_table import show_gate

    raise SystemExit(show_gate(**options))
