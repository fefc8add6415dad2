"""Models of parameters, whose fields the docstrings below them describe."""

from typing import Any

from pydantic import ConfigDict


def _in_a_line(schema: dict[str, Any]) -> None:
    """Write the descriptions of fields without the line breaks of their docstrings."""
    for field in schema["properties"].values():
        field["description"] = " ".join(field["description"].split())


def documented(*, frozen: bool = False) -> ConfigDict:
    """Return the configuration of such a model, for which an unknown field is an error."""
    return ConfigDict(
        extra="forbid",
        frozen=frozen,
        use_attribute_docstrings=True,
        json_schema_extra=_in_a_line,
    )
