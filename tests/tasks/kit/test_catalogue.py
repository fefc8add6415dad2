from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tasks import perturbations, prompts, providers, statistics
from tasks.datasets import DATASETS
from tasks.kit.catalogue import Catalogue, modules, read_toml, tables
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, PROVIDERS
from tasks.statistics import STATISTICS
from tasks.validation.unknown_names import UnknownNameError, unknown

CATALOGUES: list[Catalogue[Any]] = [DATASETS, PERTURBATIONS, PROMPTS, PROVIDERS, JUDGES, STATISTICS]


class Tool(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    weight: int


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hammer.toml").write_text("weight = 3")
    (tmp_path / "saw.toml").write_text("weight = 2")
    (tmp_path / "_draft.toml").write_text("weight = 1")
    (tmp_path / "notes.txt").write_text("weight = 0")
    return tmp_path


@pytest.fixture
def tools(folder: Path) -> Catalogue[Tool]:
    return tables("tool", folder, lambda name, data: Tool(name=name, **data))


def test_entries_are_found_by_file_name_in_order(tools: Catalogue[Tool]) -> None:
    assert list(tools) == ["hammer", "saw"]
    assert len(tools) == 2
    assert "saw" in tools
    assert "_draft" not in tools
    assert tools["hammer"] == Tool(name="hammer", weight=3)


def test_an_entry_is_loaded_once_and_only_when_asked_for(folder: Path) -> None:
    loaded: list[str] = []

    def parse(name: str, _: dict[str, Any]) -> str:
        loaded.append(name)
        return name

    catalogue = tables("tool", folder, parse)
    assert "saw" in catalogue
    assert loaded == []
    assert catalogue["saw"] is catalogue["saw"]
    assert loaded == ["saw"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("hamer", "no tool 'hamer'. Did you mean 'hammer'? Known: hammer, saw."),
        ("xyz", "no tool 'xyz'. Known: hammer, saw."),
        ("", "no tool ''. Known: hammer, saw."),
        ("../saw", "no tool '../saw'. Did you mean 'saw'? Known: hammer, saw."),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(
    tools: Catalogue[Tool], wanted: str, said: str
) -> None:
    for ask in (tools.require, tools.__getitem__):
        with pytest.raises(UnknownNameError) as raised:
            ask(wanted)
        assert str(raised.value) == said
    assert isinstance(raised.value, LookupError)


@pytest.mark.parametrize(
    ("wanted", "near", "can_add"),
    [
        ("fair", "offline/fair", False),
        ("offline/fiar", "offline/fair", False),
        ("opus-5.5", "anthropic/opus-5.5", True),
        ("foo/bar", None, True),
        ("openai/new", None, True),
    ],
)
def test_an_unknown_judge_is_answered_with_how_to_add_one(
    wanted: str, near: str | None, can_add: bool
) -> None:
    with pytest.raises(UnknownNameError) as raised:
        JUDGES.require(wanted)
    said = str(raised.value)
    hint = f" Did you mean '{near}'?" if near else ""
    assert said.startswith(f"no judge '{wanted}'.{hint} Known: ")
    assert (
        said.endswith(
            "To add a judge or a provider, write a provider file: `voirdire init` writes an "
            "example to your own folder, and docs/how-to/own-model.md explains it."
        )
        == can_add
    )


def test_an_empty_catalogue_knows_none() -> None:
    assert str(unknown("tool", "saw", [])) == "no tool 'saw'. Known: none."


def test_an_error_says_where_the_name_was_sought_and_what_to_do() -> None:
    error = unknown("votes of study", "mine", ["yours"], where="in w.duckdb", step="Ask first.")
    assert str(error) == "no votes of study 'mine' in w.duckdb. Known: yours. Ask first."


def test_of_many_names_the_most_alike_are_given() -> None:
    many = [f"saw_{number}" for number in range(8)] + ["hammer"]
    known = ", ".join(many[:8])
    assert str(unknown("tool", "saw", many)) == (
        f"no tool 'saw'. Did you mean 'saw_7'? Known: {known}, …; `voirdire list` shows all."
    )


@pytest.mark.parametrize("content", [b"weight = ", b"weight = 1\nweight = 2", b"weight = \xff"])
def test_a_file_that_is_no_toml_is_named(folder: Path, content: bytes) -> None:
    (folder / "drill.toml").write_bytes(content)
    with pytest.raises(ValueError, match=r"^drill\.toml is not valid TOML: "):
        read_toml(folder / "drill.toml")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "Field required"),
        ('weight = "heavy"', "valid integer"),
        ("weight = 1\nwieght = 2", "Extra inputs are not permitted"),
        ('weight = 1\nname = "axe"', "multiple values for keyword argument 'name'"),
    ],
)
def test_a_file_that_is_no_entry_is_named(folder: Path, content: str, said: str) -> None:
    (folder / "drill.toml").write_text(content)
    tools = tables("tool", folder, lambda name, data: Tool(name=name, **data))
    with pytest.raises(ValueError, match=r"^drill\.toml is not a tool: ") as raised:
        tools["drill"]
    assert said in str(raised.value)
    assert tools["saw"].weight == 2


def test_a_module_must_define_its_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "shed_for_tests"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "rake.py").write_text("rake = 'a rake'")
    (package / "hoe.py").write_text("hoe = 1")
    (package / "spade.py").write_text("shovel = 'a shovel'")
    monkeypatch.syspath_prepend(str(tmp_path))
    shed = modules("tool", "shed_for_tests", package, str)
    assert list(shed) == ["hoe", "rake", "spade"]
    assert shed["rake"] == "a rake"
    for name in ("hoe", "spade"):
        said = f"^shed_for_tests.{name} must define {name!r} as a str.$"
        with pytest.raises(ValueError, match=said):
            shed[name]


def test_own_modules_are_imported_on_first_use_and_bad_ones_are_ignored(tmp_path: Path) -> None:
    files = {
        "rake": "rake = 'my rake'",
        "saw": "saw = 1",
        "torn": "torn = (",
        "failing": "x = 1\nx / 0",
        "ending": "def main():\n    raise SystemExit\n\nmain()",
        "_draft": "raise SystemError",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    bundled = tmp_path / "bundled"
    bundled.mkdir()
    (bundled / "saw.py").touch()
    shed = modules("tool", "shed", bundled, str, own=lambda: tmp_path)
    assert list(shed.own) == ["rake"]
    assert (shed["rake"], list(shed)) == ("my rake", ["rake", "saw"])
    said = {
        name: problem.partition("cannot be used: ")[2] for name, problem in shed.unusable.items()
    }
    assert said["saw"] == "there is a bundled tool of this name. Rename the file."
    assert said["torn"].startswith("SyntaxError: '(' was never closed (torn.py, line 1)")
    assert said["failing"] == "ZeroDivisionError in line 2: division by zero."
    assert said["ending"].startswith("SystemExit in line 2: importing the file calls sys.exit. ")
    with pytest.raises(UnknownNameError, match=r"^the tool 'failing' of .* cannot be used"):
        shed["failing"]
    (tmp_path / "rake.py").write_text("rake = 'another'")
    assert shed["rake"] == "my rake"
    shed.read_own()
    assert shed["rake"] == "another"


def test_an_interrupt_during_an_import_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("raise KeyboardInterrupt")
    (tmp_path / "empty").mkdir()
    shed = modules("tool", "shed", tmp_path / "empty", str, own=lambda: tmp_path)
    with pytest.raises(KeyboardInterrupt):
        list(shed)


def test_what_clashes_with_another_entry_is_not_accepted(tmp_path: Path) -> None:
    for name in ("fork", "spoon"):
        (tmp_path / f"{name}.py").write_text(f"{name} = 'tool'")

    def accept(entry: str, known: Catalogue[str]) -> None:
        if entry in known.values():
            raise ValueError("there are two.")

    (tmp_path / "empty").mkdir()
    shed = modules("tool", "t", tmp_path / "empty", str, own=lambda: tmp_path, accept=accept)
    assert list(shed) == ["fork"]
    assert shed.unusable["spoon"].endswith("spoon.py cannot be used: there are two.")


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda c: str(c.what))
def test_every_entry_of_the_real_catalogues_loads(catalogue: Catalogue[Any]) -> None:
    assert len(catalogue) > 0
    assert all(entry is not None for entry in catalogue.values())


@pytest.mark.parametrize("room", [perturbations, statistics, prompts, providers])
def test_a_misspelt_real_name_gets_a_suggestion(room: Any) -> None:
    catalogue = next(
        c for c in CATALOGUES if c in (getattr(room, n) for n in dir(room) if n.isupper())
    )
    name = next(iter(catalogue))
    with pytest.raises(UnknownNameError, match=f"Did you mean '{name}'"):
        catalogue.require(f"{name}x")


def test_entries_are_named_like_their_files() -> None:
    for catalogue in (DATASETS, PERTURBATIONS, STATISTICS):
        assert [entry.name for entry in catalogue.values()] == list(catalogue)
    assert [prompt.prompt for prompt in PROMPTS.values()] == list(PROMPTS)
    assert [judge.judge for judge in JUDGES.values()] == list(JUDGES)
    assert {name.split("/")[0] for name in JUDGES} == set(PROVIDERS)


def test_a_name_of_a_file_that_cannot_be_used_gets_its_problem() -> None:
    catalogue: Catalogue[str] = Catalogue(
        "tool", {}, lambda name, _: name, why_missing=lambda name: f"{name}.toml is empty."
    )
    with pytest.raises(UnknownNameError, match=r"^saw.toml is empty\.$"):
        catalogue["saw"]
