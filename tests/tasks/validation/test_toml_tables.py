from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from tasks.validation.toml_tables import entry, require_tables


class Handle(BaseModel):
    model_config = ConfigDict(extra="forbid")

    wood: str
    length: int = 1


class Tool(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    weight: int = Field(ge=1)
    kind: Literal["hand", "power"] = "hand"
    handle: Handle | None = None


def _said(table: object, hint: str = "") -> str:
    with pytest.raises(ValueError, match=r"^\[tools\.saw\] ") as raised:
        entry(Tool, "[tools.saw]", table, hint, name="saw")
    return str(raised.value)


def test_a_table_becomes_an_entry() -> None:
    table = {"weight": 2, "handle": {"wood": "ash"}}
    tool = entry(Tool, "[tools.saw]", table, name="saw")
    assert tool == Tool(name="saw", weight=2, handle=Handle(wood="ash"))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            {"wieght": 2, "weight": 1},
            "[tools.saw] has no key 'wieght'. Did you mean 'weight'? Known: weight, kind, handle.",
        ),
        ({"weight": 1, "x": 2}, "[tools.saw] has no key 'x'. Known: weight, kind, handle."),
        # what is given elsewhere is no key of the table
        (
            {"weight": 1, "name": "axe"},
            "[tools.saw] has no key 'name'. Known: weight, kind, handle.",
        ),
        ({}, "[tools.saw] needs the key 'weight'."),
        (
            {"weight": 0},
            "[tools.saw] weight is 0, but must be a whole number, at least 1. Give such a value.",
        ),
        (
            {"weight": 1, "kind": "x"},
            (
                "[tools.saw] kind is a text (not shown, because it may hold a secret), but must be "
                "'hand' or 'power'. Give such a value, or leave the key out."
            ),
        ),
        ({"weight": 1, "handle": {}}, "[tools.saw] needs the key 'handle.wood'."),
        (
            {"weight": 1, "handle": {"wood": "ash", "lenght": 2}},
            "[tools.saw] handle has no key 'lenght'. Did you mean 'length'? Known: wood, length.",
        ),
        (
            {"y": 1},
            (
                "[tools.saw] has no key 'y'. Known: weight, kind, handle.\n"
                "[tools.saw] needs the key 'weight'."
            ),
        ),
        ("heavy", "[tools.saw] must be a table."),
    ],
)
def test_what_is_wrong_is_named(table: object, said: str) -> None:
    assert _said(table) == said


def test_a_hint_is_for_what_looks_like_nothing_known() -> None:
    hint = " Ask the smith."
    assert "'x'. Ask the smith. Known" in _said({"weight": 1, "x": 2}, hint)
    assert "smith" not in _said({"weight": 1, "wieght": 2}, hint)


def test_values_are_not_repeated() -> None:
    assert "sk-live" not in _said({"weight": "sk-live", "key": "sk-live", "kind": "sk-live"})


def test_a_file_holds_known_tables_only() -> None:
    require_tables({"tools": {}}, ["tools", "shop"])
    with pytest.raises(ValueError, match=r"the file has no key 'tool'\. Did you mean 'tools'\?"):
        require_tables({"tool": {}}, ["tools", "shop"])


class Shop(BaseModel):
    flow: str = "in"
    tool: Tool


@pytest.mark.parametrize(
    ("name", "meant"),
    [("weight", "[tool] weight"), ("wieght", "[tool] weight"), ("flwo", "'flow'")],
)
def test_a_key_of_an_inner_table_is_sent_there(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=r"^the file has no key") as raised:
        entry(Shop, "the file", {name: 1, "tool": {"name": "saw", "weight": 1}})
    said = f"the file has no key '{name}'. Did you mean {meant}? Known: flow, tool."
    assert str(raised.value) == said
