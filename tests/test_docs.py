"""README and docs: short, current, and without dead links or names of files that are gone."""

import re
import tomllib
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from types import ModuleType

import pytest

from flows.cli.questions import questions
from tasks.kit.defaults import CALIBRATION, DEFAULTS, DETECTS_AT
from tasks.perturbations import Item, Perturbation
from tasks.readers import label_table
from tasks.readers import questions as own_questions
from tasks.readers.samples import PEOPLE, SHARES
from tasks.readers.votes import COLUMNS, OPTIONAL

REPO = Path(__file__).parents[1]
DOCS = REPO / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TEXTS = [*sorted(REPO.glob("*.md")), *PAGES]
ROOMS = ("booth", "flows", "schemas", "scripts", "tasks", "warehouse", "benchmarks", "tests")


def _read(name: str) -> str:
    return (REPO / name).read_text(encoding="utf-8")


def _without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", _without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def _links(file: Path) -> Iterator[tuple[str, str]]:
    text = re.sub(r"`[^`\n]*`(?!\])", "", _without_code(file.read_text(encoding="utf-8")))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield path, anchor


def test_the_readme_is_short() -> None:
    readme = _read("README.md")
    assert len(readme.splitlines()) <= 150
    assert len(readme.split()) <= 1100


def test_every_relative_link_leads_somewhere() -> None:
    dead = []
    for file in TEXTS:
        for path, anchor in _links(file):
            target = (file.parent / path).resolve() if path else file
            if not target.exists() or (
                anchor and anchor not in _anchors(target.read_text(encoding="utf-8"))
            ):
                dead.append((file.name, path, anchor))
    assert dead == []


def test_every_question_of_sql_is_shown() -> None:
    page = _read("docs/how-to/sql.md")
    assert [name for name in questions() if f"--ask {name}" not in page] == []


def test_docs_link_to_pages_of_the_site_only() -> None:
    outside = [
        (file.name, path)
        for file in PAGES
        for path, _ in _links(file)
        if path and not (file.parent / path).resolve().is_relative_to(DOCS)
    ]
    assert outside == []


def test_every_page_is_in_the_navigation() -> None:
    def listed(entries: list[dict[str, object]]) -> Iterator[str]:
        for entry in entries:
            for value in entry.values():
                if isinstance(value, str):
                    yield value
                elif isinstance(value, list):
                    yield from listed(value)

    named = list(listed(tomllib.loads(_read("zensical.toml"))["project"]["nav"]))
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


def test_files_that_are_named_exist() -> None:
    pattern = re.compile(rf"`((?:{'|'.join(ROOMS)}|docs)/[\w./-]+\.(?:py|toml|sql|md))`")
    examples = {"tasks/perturbations/bandwagon.py", "tests/tasks/perturbations/test_bandwagon.py"}
    gone = {
        (file.name, name)
        for file in TEXTS
        for name in pattern.findall(file.read_text(encoding="utf-8"))
        if "NAME" not in name and "PROVIDER" not in name and not (REPO / name).is_file()
    }
    assert {name for _, name in gone} <= examples, gone


def test_reference_pages_are_current(generator: ModuleType) -> None:
    for name, page in generator.PAGES.items():
        written = _read(f"docs/reference/{name}").splitlines()
        changes = "\n".join(unified_diff(written, page().splitlines(), n=0, lineterm=""))
        assert not changes, f"run `make reference`; {name} differs:\n{changes}"


def test_a_stale_page_is_named(
    generator: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in generator.PAGES:
        (tmp_path / name).write_text(_read(f"docs/reference/{name}"), encoding="utf-8")
    (tmp_path / "marts.md").write_text("# Marts\n", encoding="utf-8")
    (tmp_path / "commands.md").unlink()
    monkeypatch.setattr(generator, "REFERENCE", tmp_path)
    assert generator.stale() == ["commands.md", "marts.md"]


def test_every_key_of_a_file_that_users_write_has_a_meaning() -> None:
    for page, many in (("providers.md", 2), ("study-file.md", 3)):
        tables = re.findall(
            r"^\| key \|.*\n\|.*\n((?:\|.*\n)+)", _read(f"docs/reference/{page}"), re.MULTILINE
        )
        assert len(tables) == many
        assert [line for table in tables for line in table.splitlines() if "|  |" in line] == []


def test_prose_of_docstrings_is_escaped_and_literals_are_not(generator: ModuleType) -> None:
    written = generator._prose("a *b* in [0, 1] of ``x_y * [z]``, not _c")
    assert written == r"a \*b\* in \[0, 1\] of `x_y * [z]`, not \_c"


def test_the_perturbation_of_the_readme_works() -> None:
    (code,) = re.findall(r'```python\n("""Bandwagon.*?)```', _read("README.md"), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "bandwagon.py", "exec"), names)
    made = names["bandwagon"]
    assert isinstance(made, Perturbation)
    item = Item("q/1/a2", "Why is the sky blue?", "Air scatters blue light more than red light.")
    text = made.make(item, 0)
    assert text is not None
    assert text == made.make(item, 0)
    assert text.startswith(f"{item.answer}\n\nIn a survey, ")
    assert made.check(item.answer, text) is None
    for sham in (made.sham, made.second_sham):
        assert sham
        assert sham(item, text, 0) not in (None, item.answer, text)


def test_every_column_of_files_that_users_write_is_described() -> None:
    page = _read("docs/reference/file-formats.md")
    for title, known in (
        ("questions", (*own_questions.REQUIRED, *own_questions.OPTIONAL, *PEOPLE, *SHARES)),
        ("votes", (*COLUMNS, *OPTIONAL)),
        ("labels", (*label_table.IDS, label_table.CHANCE)),
    ):
        section = page.partition(f"## Files of {title}\n")[2].partition("\n## ")[0]
        assert [name for name in known if f"`{name}`" not in section] == []


def test_limits_that_the_docs_name_are_the_defaults() -> None:
    defaults = {**CALIBRATION.model_dump(), **DEFAULTS.model_dump(), "detects_at": DETECTS_AT}
    number = r"(\.?\d+(?:\.\d+)?)( %)?"
    named = re.compile(rf"(?<![\w.]){number}[^.|()\n]{{0,80}}\(`(\w+)`|`(\w+)`,? \(?{number}")
    seen, wrong = set(), []
    for page in PAGES:
        for before, percent, name, other, after, per_cent in named.findall(page.read_text("utf-8")):
            if (limit := name or other) in defaults:
                value = float(before or after) / (100 if percent or per_cent else 1)
                seen.add(limit)
                if value != defaults[limit]:
                    wrong.append((page.name, limit, value))
    assert wrong == []
    assert seen >= {"detects_at", "least_reliability", "least_winning_rate", "most_unanimous"}


def test_every_environment_variable_is_described() -> None:
    page = _read("docs/reference/environment.md")
    sources = [file for room in ROOMS[:6] for file in (REPO / room).rglob("*.py")]
    named = {
        name
        for file in [*sources, REPO / ".ci" / "run"]
        for name in re.findall(r"\bVOIRDIRE_[A-Z_]+\b", file.read_text(encoding="utf-8"))
    }
    assert {name for name in named if f"`{name}" not in page} == set()


def test_the_methods_have_every_section_that_is_cited() -> None:
    page = _read("docs/reference/methods.md")
    sections = {int(number) for number in re.findall(r"^## (\d+)\. ", page, re.MULTILINE)}
    cited = {
        int(number)
        for room in ("benchmarks", *ROOMS[:6], "tests")
        for file in (REPO / room).rglob("*.py")
        for numbers in re.findall(
            r"methods(?:\.md)?, sections? ([\d, and]*\d)", file.read_text(encoding="utf-8")
        )
        for number in re.findall(r"\d+", numbers)
    }
    assert cited
    assert cited <= sections == set(range(18))


def test_columns_of_a_mart_have_the_meaning_that_they_have_in_its_table() -> None:
    page = _read("docs/reference/marts.md")
    parts = re.split(r"^## (\w+)$", page, flags=re.MULTILINE)
    marts = dict(zip(parts[1::2], parts[2::2], strict=True))
    meanings = {
        mart: dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| (.*) \|$", text, re.MULTILINE))
        for mart, text in marts.items()
    }
    assert meanings["scorecard"]["measure"].startswith("quantity that the gate tests")
    assert meanings["scorecard"]["more_questions"].startswith("further questions that would decide")
    assert meanings["scorecard"]["too_few"].startswith("true if the questions are too few")
    assert meanings["recommendations"]["more_questions"].startswith("further questions that would")
    assert "for any judge also what limits nothing" in meanings["recommendations"]["undecided"]
    assert meanings["drift"]["measure"] == "quantity that is compared"


def test_each_limit_of_a_study_has_its_range() -> None:
    page = _read("docs/reference/study-file.md").partition("[study.thresholds]")[2]
    rows = re.findall(r"^\| `(\w+)` \| `(?:int|float)`(.*?) \|", page, re.MULTILINE)
    allowed = dict(rows)
    assert allowed["most_unanimous"] == ", above 0, below 1"
    assert allowed["fewest_questions"] == ", at least 2, at most 100000"
    assert [name for name, text in rows if not text] == []
