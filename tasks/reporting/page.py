"""Report pages: one base template, one environment, and the charts."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from tasks.charts import charts_of
from tasks.progress import step
from tasks.reporting.wording import clean


def page(template: str, **values: Any) -> str:
    """Write a page that loads nothing from elsewhere; every text in it is escaped."""
    step("writing the report")
    rendered: str = environment().get_template(template).render(values)
    return rendered


@cache
def environment() -> Any:
    """Return the environment of all templates, which keeps those that are compiled."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )


def drawings(**frames: pl.DataFrame) -> list[dict[str, Any]]:
    """Draw every chart of these frames that has something to show."""
    from markupsafe import Markup

    drawn = [
        {
            "name": chart.name,
            "title": chart.title,
            "reading": chart.reading,
            # The drawing escapes its texts itself.
            "panels": [Markup(p) for p in _panels(chart, frames)],  # noqa: S704
        }
        for chart in charts_of(*frames)
    ]
    return [chart for chart in drawn if chart["panels"]]


def _panels(chart: Any, frames: Mapping[str, pl.DataFrame]) -> Iterable[str]:
    step(f"drawing: {chart.name}")
    drawn: Iterable[str] = chart(**frames)
    return drawn


def _harmless(value: object) -> object:
    """Remove invisible characters from texts, but not from our own drawings."""
    return clean(value) if type(value) is str else value
