"""Write the reference pages in docs/reference from the code that they describe.

``python scripts/reference_pages.py`` writes them; ``--check`` names those that are stale.
"""

import argparse
import ast
import inspect
import itertools
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

# The pages describe the bundled entries, not the entries of whoever writes the pages.
if __name__ == "__main__":
    os.environ["VOIRDIRE_HOME"] = os.devnull
    os.environ.pop("VOIRDIRE_PROVIDERS", None)

from booth.cli import booth
from flows.cli.main import main as voirdire
from flows.studies import STUDIES, Study, StudyFile
from tasks import providers as own_providers
from tasks.charts import CHARTS
from tasks.conclusions.derived_columns import COLUMNS
from tasks.curate import FOLDER_VARIABLES
from tasks.datasets import DATASETS
from tasks.kit import command_line, stage, user_folder
from tasks.kit.defaults import Thresholds
from tasks.kit.exit_codes import ExitCode
from tasks.kit.printable import AUTHENTICATION
from tasks.metrics import METRICS
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, PROVIDERS, Judge, Provider
from tasks.readers.formats import FORMATS
from tasks.simulation.traits import Traits
from tasks.statistics import STATISTICS, Statistic
from warehouse import path_checks
from warehouse.descriptions import FRAMES, picked_columns
from warehouse.store import Warehouse

REPO = Path(__file__).resolve().parents[1]
REFERENCE = REPO / "docs" / "reference"
NOTICE = "<!-- Written by scripts/reference_pages.py from the code: change that, not this page. -->"
WIDTH = 100
MOST_INTEGER = 2**63 - 1
COLUMN_HEADS = ("column", "type", "meaning")
COMMANDS = (
    "Each command prints this text with `--help`. [Exit codes](exit-codes.md) and "
    "[environment variables](environment.md) have pages of their own."
)
MARTS_NOTE = (
    "A mart is a view in the schema `mart`, made for queries, as in "
    "`voirdire sql 'from mart.bias'`. Rows have no order: end a query with `order by`. A column "
    "without a meaning here is explained by the first line of its mart, or by the "
    "[statistic](statistics.md) of its name."
)
STATISTICS_NOTE = (
    "`voirdire list NAME` prints these texts without what callers in Python need. `simulated` "
    "says whether "
    "[operating characteristics](operating-characteristics.md) has figures of the row's size or "
    "coverage, or says there why it needs none."
)

OUTPUT_NOTE = (
    "Results go to standard output, messages to standard error. An error message names what is "
    "wrong, its value, what is allowed and the next step; with `VOIRDIRE_DEBUG=1` it also has a "
    "traceback."
)
VARIABLES = (
    (path_checks, "VARIABLE"),
    (user_folder, "VARIABLE"),
    (own_providers, "VARIABLE"),
    (stage, "DAYS_VARIABLE"),
    (command_line, "DEBUG_VARIABLE"),
)
"""Modules and their constants that name an environment variable; the text below it is its
meaning."""
PREFECT_VARIABLES = (
    (
        f"`PREFECT_API_URL`, `{AUTHENTICATION}`",
        "a Prefect server that is already running, and its authentication string",
    ),
    (
        "`PREFECT_HOME`",
        "the folder of Prefect's database and cached results. Default: `~/.prefect`",
    ),
)
KEYS_NOTE = """\
A guide says what [your own folder](../how-to/extend.md#a-folder-of-your-own) holds.

[The providers](providers.md#bundled-providers) list the variables of their API keys and \
addresses. Keys are read from the environment only and reach no parameter, log, artifact, report \
or table.

`audit` does not ask judges whose calls a variable such as `OPENAI_BASE_URL` would send elsewhere \
than the provider file says.

Two variables are for the tests only: `VOIRDIRE_REQUIRE_MATRIX=1` and \
`VOIRDIRE_REQUIRE_BROWSER=1` make a missing emulator or browser an error instead of a skipped test.\
"""


def commands() -> str:
    """Return the page of commands: what ``--help`` prints."""
    root = voirdire.make_context("voirdire", [], resilient_parsing=True, terminal_width=WIDTH)
    parts = [COMMANDS, _fenced(_help(root))]
    for name, command in sorted(voirdire.commands.items()):
        shown = booth if name == "booth" else command
        parts += [f"## voirdire {name}", _fenced(_help(_context(shown, name, root)))]
    return _page("Commands", *parts)


def study_file() -> str:
    """Return the page of study files: the fields of a study and of the file around it."""
    bundled = {name: file for name, file in STUDIES.items() if _is_bundled(STUDIES.files[name])}
    studies = [
        (f"`{name}`", file.about, f"`{file.cron}`" if file.cron else "", _code(file.on_alert))
        for name, file in bundled.items()
    ]
    above = [
        (f"`{name}`", _type(field), _default(field), text)
        for name, field, text in _fields(StudyFile)
        if name != "study"
    ]
    below, limits = (
        [
            (f"`{name}`", _ranged(field), _default(field), _described(field))
            for name, field in model.model_fields.items()
            if name != "thresholds"
        ]
        for model in (Study, Thresholds)
    )
    heads = ("key", "type", "default", "meaning")
    return _page(
        "Study file",
        "A study is a TOML file, in `flows/studies` or in "
        "[a folder of your own](../how-to/nightly.md#a-study-of-your-own). "
        "The options of `voirdire audit` and the form in the Prefect UI change the same fields.",
        "## Keys at the top of the file",
        _table(heads, above),
        "## Keys in the table `[study]`",
        _table(heads, below),
        "## Keys in the table `[study.thresholds]`",
        _described(Study.model_fields["thresholds"]),
        _table(heads, limits),
        "## Bundled studies",
        _table(("study", "about", "cron", "runs after an alert"), studies),
    )


def providers() -> str:
    """Return the page of providers: their judges, and the keys of a provider file."""
    bundled = {n: each for n, each in PROVIDERS.items() if _is_bundled(PROVIDERS.files[n])}
    rows = [
        (
            f"`{name}`",
            ", ".join(f"`{judge}`" for judge in file.judges),
            ", ".join(f"`{variable}`" for variable in _variables(file.provider)) or "none",
        )
        for name, file in bundled.items()
    ]
    judges = [
        (f"`{name}`", f"`{judge.model}`", _simulated(judge) + judge.about)
        for name, judge in JUDGES.items()
        if judge.provider in bundled
    ]
    heads = ("key", "type", "default", "meaning")
    fields = {
        model: [
            (f"`{name}`", _type(field), _default(field), text)
            for name, field, text in _fields(model)
            if name not in {"judge", "provider"} or model is Provider
        ]
        for model in (Provider, Judge)
    }
    return _page(
        "Providers and judges",
        "A judge is named `PROVIDER/JUDGE`. How to add one: "
        "[audit your own model](../how-to/own-model.md).",
        "## Bundled providers",
        _table(("provider", "judges", "environment variables"), rows),
        "## Bundled judges",
        _table(("judge", "model, as litellm names it", "about"), judges),
        "## Keys of the table `[provider]`",
        _table(heads, fields[Provider]),
        "## Keys of a table `[judges.NAME]`",
        _table(heads, fields[Judge]),
        "## Traits of simulated judges",
        "Keys of the table `[judges.NAME.params.traits]`, where `[provider]` has "
        "`simulated = true`. The [formula](methods.md#13-simulated-judge) has most of these names. "
        "How to make one: [simulated judges](../how-to/simulated-judges.md).",
        _table(
            ("trait", "type", "allowed", "default", "meaning"),
            [
                (f"`{name}`", _type(field), _allowed(field), _default(field), text)
                for name, field, text in _fields(Traits)
            ],
        ),
    )


def catalogues() -> str:
    """Return the page of datasets, perturbations, judge prompts, metrics and charts."""
    shams = {(False, False): "none", (True, False): "one", (True, True): "two"}
    return _page(
        "Catalogues",
        "Each entry is one file; [how to add one](../how-to/extend.md).",
        "## Datasets",
        _table(
            ("dataset", "about", "source", "licence"),
            [(f"`{n}`", e.summary, e.source, e.license) for n, e in DATASETS.items()],
        ),
        "## Perturbations",
        "*Promote* changes nothing that should count; *detract* makes the answer worse.",
        _table(
            ("perturbation", "kind", "bias", "about", "shams", "source"),
            [
                (
                    f"`{n}`",
                    e.kind,
                    e.bias,
                    e.summary,
                    shams[e.sham is not None, e.second_sham is not None],
                    e.source,
                )
                for n, e in PERTURBATIONS.items()
            ],
        ),
        "## Judge prompts",
        _table(
            ("prompt", "verdict", "source"),
            [(f"`{n}`", e.verdict_form, e.source) for n, e in PROMPTS.items()],
        ),
        "## Metrics of `voirdire calibrate`",
        _table(
            ("metric", "labels", "about", "source"),
            [(f"`{n}`", e.labels, e.summary, e.source) for n, e in METRICS.items()],
        ),
        "## Formats of logs",
        _table(
            ("format", "log", "recognised by the fields", "content", "source"),
            [
                (f"`{n}`", e.title, _alternatives(e.needs), e.summary, e.source)
                for n, e in FORMATS.items()
            ],
        ),
        "## Charts of the report",
        _table(
            ("chart", "reads", "title", "how to read it"),
            [
                (f"`{n}`", ", ".join(f"`{r}`" for r in e.reads), e.title, e.reading)
                for n, e in sorted(CHARTS.items(), key=lambda pair: pair[1].order)
            ],
        ),
    )


def statistics() -> str:
    """Return the page of statistics: their docstrings, and the columns derived from them."""
    overview = [
        (f"[`{n}`](#{n})", e.summary, ", ".join(f"`{row}`" for row in e.gives))
        for n, e in STATISTICS.items()
    ]
    derived = [(f"`{name}`", each.about) for name, each in COLUMNS.items()]
    parts = [
        STATISTICS_NOTE,
        _table(("statistic", "about", "rows"), overview),
        "## Derived columns",
        "They belong to a family of estimates rather than to one statistic.",
        _table(("column", "meaning"), derived),
    ]
    for name, entry in STATISTICS.items():
        parts += [f"## {name}", *_statistic(entry)]
    return _page("Statistics", *parts)


def tables() -> str:
    """Return the page of the warehouse's tables."""
    rows = _warehouse(
        "select c.table_name, t.comment as grain, c.column_name, c.data_type, c.comment from "
        "duckdb_columns() c join duckdb_tables() t using (schema_name, table_name) "
        "where schema_name = 'main' and t.comment is not null order by table_name, column_index"
    )
    parts = []
    for table, (grain, columns) in _grouped(rows).items():
        parts += [
            f"## {table}",
            grain,
            _table(COLUMN_HEADS, [(f"`{n}`", t.lower(), m) for n, t, m in columns]),
        ]
    return _page(
        "Tables",
        "Facts (questions, answers, pairs, ballots, votes) never change; results (estimates, "
        "findings and so on) are replaced whenever a study is measured again. "
        "Most queries are easier on the [marts](marts.md).",
        *parts,
    )


def marts() -> str:
    """Return the page of marts: the grain and the columns of each view."""
    known = dict(
        _warehouse(
            "select column_name, min(comment) from duckdb_columns() where schema_name = 'main' "
            "and comment is not null group by 1 having count(distinct comment) = 1"
        )
    )
    known |= dict(
        _warehouse(
            "select column_name, any_value(comment order by list_position(['estimates', "
            "'findings'], table_name)) from duckdb_columns() where table_name in "
            "('findings', 'estimates') group by 1"
        )
    )
    rows = _warehouse(
        "select c.table_name, v.comment, c.column_name, c.data_type from duckdb_columns() c "
        "join duckdb_views() v on v.view_name = c.table_name and v.schema_name = c.schema_name "
        "where c.schema_name = 'mart' order by c.table_name, c.column_index"
    )
    parts = []
    for mart, (grain, columns) in _grouped(rows).items():
        named = known | _of_its_table(mart) | MART_COLUMNS["all"] | _picked(mart)
        named |= MART_COLUMNS.get(mart, {})
        described = [(f"`{n}`", t.lower(), _meaning(n, named)) for n, t in columns]
        parts += [f"## {mart}", grain, _table(COLUMN_HEADS, described)]
    return _page(
        "Marts",
        MARTS_NOTE,
        *parts,
    )


def exit_codes() -> str:
    """Return the page of exit codes."""
    meanings = _attribute_docstrings(inspect.getsource(ExitCode))
    return _page(
        "Exit codes",
        _table(("code", "meaning"), [(str(int(each)), meanings[each.name]) for each in ExitCode]),
        OUTPUT_NOTE,
    )


def environment() -> str:
    """Return the page of environment variables."""
    own = [
        (f"`{getattr(module, name)}`", _attribute_docstrings(inspect.getsource(module))[name])
        for module, name in VARIABLES
    ]
    own += [
        (f"`{variable}`", f"the folder of the dataset `{dataset}`, if `--folder` is not given")
        for dataset, variable in FOLDER_VARIABLES.items()
    ]
    own += PREFECT_VARIABLES
    return _page("Environment variables", _table(("variable", "meaning"), own), KEYS_NOTE)


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "study-file.md": study_file,
    "providers.md": providers,
    "catalogues.md": catalogues,
    "statistics.md": statistics,
    "tables.md": tables,
    "marts.md": marts,
    "exit-codes.md": exit_codes,
    "environment.md": environment,
}


def stale() -> list[str]:
    """Return the names of the pages that differ from what the code says now."""
    return [name for name, page in PAGES.items() if _read(REFERENCE / name) != page()]


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="name stale pages; write nothing")
    if parser.parse_args().check:
        old = stale()
        for name in old:
            sys.stdout.write(f"docs/reference/{name} is stale: run `make reference`.\n")
        return 1 if old else 0
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")
    return 0


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _page(title: str, *parts: str) -> str:
    return "\n\n".join((f"# {title}", NOTICE, *parts)) + "\n"


def _fenced(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def _context(command: click.Command, name: str, parent: click.Context) -> click.Context:
    """Return the context that the command line gives a command: its parent's settings count."""
    return click.Context(command, info_name=name, parent=parent, **command.context_settings)


def _help(context: click.Context) -> str:
    return "\n".join(line.rstrip() for line in context.get_help().splitlines())


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [tuple(heads)]
    lines += [tuple("---" for _ in lines[0])]
    lines += [tuple(_cell(each) for each in row) for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(text: str) -> str:
    return _prose(" ".join(text.split())).replace("|", "\\|")


def _prose(text: str) -> str:
    """Return prose of a docstring or comment as Markdown, its literals untouched."""
    parts = re.split(r"(``[^`]+``|`[^`]+`|\]\(#?[^)]*\))", text)
    quoted = [re.sub(r"([*<\[\]]|(?<!\w)_|_(?!\w))", r"\\\1", part) for part in parts[::2]]
    literals = [part.replace("``", "`") for part in parts[1::2]] + [""]
    text = "".join(a + b for a, b in zip(quoted, literals, strict=True)).replace("\\[`", "[`")
    return re.sub(r"(?<![\[\w/])methods\.md", "[methods](methods.md)", text)


def _alternatives(needs: Iterable[tuple[str, ...]]) -> str:
    """Return the sets of fields by which a format is recognised."""
    return "; or ".join(", ".join(f"`{name}`" for name in some) for some in needs)


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def _is_bundled(file: Path) -> bool:
    """Tell an entry of this repository from one of the user's own folder."""
    return file.resolve().parent in (REPO / "flows" / "studies", REPO / "tasks" / "providers")


def _simulated(judge: Judge) -> str:
    return "simulated: " if PROVIDERS[judge.provider].provider.simulated else ""


def _variables(provider: Provider) -> list[str]:
    named = [provider.key_variable, *provider.variables, provider.api_base_variable]
    return [variable for variable in named if variable]


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo, str]]:
    """Yield each field with the docstring that stands below it in the source."""
    texts: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel:
            texts |= _attribute_docstrings(inspect.getsource(kind))
    for name, field in model.model_fields.items():
        yield name, field, " ".join(texts.get(name, "").split("\n\n")[0].split())


def _described(field: FieldInfo) -> str:
    """Return the description of a field in a line."""
    return " ".join((field.description or "").split())


def _allowed(field: FieldInfo) -> str:
    """Return the limits of a number, without the warehouse's limit of integers."""
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = [
        f"{words[name]} {getattr(limit, name):g}"
        for limit in field.metadata
        for name in words
        if hasattr(limit, name) and getattr(limit, name) != MOST_INTEGER
    ]
    return ", ".join(limits)


def _ranged(field: FieldInfo) -> str:
    """Return the type of a field, with the limits of a number."""
    return ", ".join(filter(None, (_type(field), _allowed(field))))


def _attribute_docstrings(source: str) -> dict[str, str]:
    """Return the text below each assignment of a class, or of a module that is more than that."""
    body = ast.parse(source).body
    if len(body) == 1 and isinstance(body[0], ast.ClassDef):
        body = body[0].body
    return {
        target.id: inspect.cleandoc(text.value.value)
        for declared, text in itertools.pairwise(body)
        if isinstance(declared, ast.Assign | ast.AnnAssign)
        for target in (declared.targets if isinstance(declared, ast.Assign) else [declared.target])
        if isinstance(target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _type(field: FieldInfo) -> str:
    kind: Any = field.annotation
    shown = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
    shown = shown.replace("typing.", "").replace("NoneType", "None")
    shown = re.sub(r"\b(\w+\.)+(?=[A-Z])", "", shown)
    return f"`{shown}`"


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "needed"
    if field.default is None:
        return "none"
    return f"`{field.default!r}`"


def _statistic(entry: Statistic) -> Iterator[str]:
    frames = ", ".join(f"`{name}`" for name in entry.reads)
    yield f"Reads: {frames}. Source: {_prose(entry.source)}."
    yield _table(("row", "family", "unit", "null", "floor", "simulated"), _declared(entry))
    text = inspect.getdoc(entry.measure) or ""
    titles = re.split(r"^([A-Z]\w+(?: \w+)*)\n-{3,}\n", text, flags=re.MULTILINE)
    yield _paragraphs(titles[0])
    for title, body in zip(titles[1::2], titles[2::2], strict=True):
        yield f"**{title}**"
        yield _entries(body) if title in {"Parameters", "Returns", "Raises"} else _paragraphs(body)


def characterised() -> tuple[set[str], set[str]]:
    """Return the rows with simulated figures of size or coverage, and those that need none."""
    text = _read(REPO / "docs" / "reference" / "operating-characteristics.md")
    tables = re.findall(r"^\| `(\w+)` \|(?=.*(?:\.\d{3}|no p-value))", text, re.MULTILINE)
    listed = re.findall(r"^- ((?:`\w+`(?:, )?)+): \S", text, re.MULTILINE)
    return {*tables}, {name for names in listed for name in re.findall(r"\w+", names)}


def _declared(entry: Statistic) -> list[tuple[str, ...]]:
    """Return what a statistic declares of each of its rows, and whether it was simulated."""
    simulated, exempt = characterised()
    return [
        (
            f"`{name}`",
            row.get("family", ""),
            row.get("unit", ""),
            "" if row.get("null") is None else f"{row['null']:g}",
            row.get("floor") or "",
            "yes" if name in simulated else "not needed" if name in exempt else "not yet",
        )
        for name, row in entry.rows.items()
    ]


def _paragraphs(text: str) -> str:
    parts = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(_prose(" ".join(part.split())) for part in parts)


def _entries(text: str) -> str:
    """Return a list of names and what they are, as numpy's sections have them."""
    entries = re.split(r"^(?=\S)", text.strip(), flags=re.MULTILINE)
    parts = [entry.split("\n", maxsplit=1) for entry in entries if entry.strip()]
    return "\n".join(
        f"- `{name.strip()}`: {_prose(' '.join(''.join(about).split()))}" for name, *about in parts
    )


def _warehouse(query: str) -> list[tuple[Any, ...]]:
    """Ask an empty warehouse, which holds every table and mart."""
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Warehouse(Path(folder) / "empty.duckdb")
        warehouse.save([], run="none", study="none")
        return warehouse.query(query).rows()


def _grouped(rows: Iterable[tuple[Any, ...]]) -> dict[str, tuple[str, list[tuple[Any, ...]]]]:
    groups: dict[str, tuple[str, list[tuple[Any, ...]]]] = {}
    for name, grain, *column in rows:
        groups.setdefault(name, (_prose(grain), []))[1].append(tuple(column))
    return groups


MART_COLUMNS: dict[str, dict[str, str]] = tomllib.loads(
    (REPO / "warehouse" / "marts" / "columns.toml").read_text(encoding="utf-8")
)
FRAME_COLUMNS = {frame.place().table: frame.descriptions() for frame in FRAMES}
"""Table -> its columns and what they mean."""
ENDS = {"_low": "lower", "_high": "upper"}


def _of_its_table(mart: str) -> dict[str, str]:
    """Return the columns that a mart takes as they are from its table; none if it reads several."""
    text = (REPO / "warehouse" / "marts" / f"{mart}.sql").read_text(encoding="utf-8")
    query = re.sub(r"--.*", "", text)
    sources = set(re.findall(r"\b(?:from|join)\s+([\w.]+)", query))
    described = FRAME_COLUMNS.get(sources.pop(), {}) if len(sources) == 1 else {}
    computed = re.findall(r"\bas (\w+)", query)
    return {column: meaning for column, meaning in described.items() if column not in computed}


def _picked(mart: str) -> dict[str, str]:
    """Return what the columns are that a mart picks from the rows of statistics."""
    makers = {row: name for name, entry in STATISTICS.items() for row in entry.gives}
    return {
        column: f"`{number}` of [`{row}`](statistics.md#{makers[row]})"
        for column, (number, row) in picked_columns(mart).items()
        if row in makers
    }


def _meaning(column: str, known: Mapping[str, str]) -> str:
    """Return what a column of a mart holds, where a table or statistic says it."""
    if text := known.get(column):
        return text
    makers = {row: name for name, entry in STATISTICS.items() for row in entry.gives}
    if maker := makers.get(column):
        return f"`estimate` of [`{column}`](statistics.md#{maker})"
    for end, words in ENDS.items():
        base = column.removesuffix(end)
        if base != column:
            return f"{words} end of the interval of `{base}`"
    return ""


if __name__ == "__main__":
    sys.exit(main())
