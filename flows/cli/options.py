"""Options that several commands share: the fields of a study, the warehouse and the server."""

from collections.abc import Callable
from typing import Any

import click

from tasks.kit.command_line import Finite, Place

CHECKS = click.Choice(["drop", "flag"])
MODES = click.Choice(["balanced", "paper"])
PATH = Place()
SHAMS = click.Choice(["first", "second", "both", "none"])
STOPS = click.Choice(["none", "lossless", "pair"])
OPTIONS = (
    click.option("--dataset", help="Name of a dataset, or path of your own data file."),
    click.option("--folder", help="Folder with the files of a dataset that is not bundled."),
    click.option(
        "--perturbation",
        "perturbations",
        multiple=True,
        help="Perturbation to test. Repeat the option for several.",
    ),
    click.option(
        "--judge", "judges", multiple=True, help="Judge to audit. Repeat the option for several."
    ),
    click.option("--prompt", help="Name of the judge prompt."),
    click.option("--votes", "votes_per_pair", type=int, help="Votes per judge and pair."),
    click.option(
        "--mode",
        type=MODES,
        help="balanced: show each pair equally often in both orders. paper: draw positions at "
        "random, as in arXiv 2402.10669.",
    ),
    click.option(
        "--stop",
        type=STOPS,
        help="Stop asking about a pair early: when the verdict can no longer change (lossless), "
        "or when one answer leads by two votes (pair).",
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
        "measure against the control.",
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
    click.option("--wave", help="Label of this measurement. A new label casts all votes again."),
    click.option("--seed", type=int, help="Random seed of templates, shams and positions."),
    click.option("--limit", type=int, help="Maximum number of questions."),
    click.option("--budget", "budget_usd", type=float, help="Maximum cost in US dollars."),
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
        help="Drop texts that fail a validity check, or keep and flag them.",
    ),
    click.option("--name", help="Save the results under this name."),
)
warehouse_option = click.option(
    "--warehouse",
    type=PATH,
    help="Path of the DuckDB file. Default: VOIRDIRE_WAREHOUSE, else voirdire.duckdb.",
)
server_option = click.option(
    "--server",
    metavar="URL",
    help="API address of a Prefect server, such as http://127.0.0.1:4200/api. Default: "
    "PREFECT_API_URL, else your running `voirdire serve`, else a temporary server.",
)


def study_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that change a study."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """Keep the options that were given."""
    lists = {"perturbations", "judges"}
    given = {k: v for k, v in options.items() if v not in (None, ())}
    return {k: list(v) if k in lists else v for k, v in given.items()}
