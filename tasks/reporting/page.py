"""Report pages: one base template, one environment, the charts, and the scripts they hold."""

import base64
import hashlib
import json
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup, escape

from tasks.charts import charts_of
from tasks.drawing.render import inline_svg
from tasks.drawing.spec import LOOK, Spec, rounded, with_variables
from tasks.kit.printable import laid_out
from tasks.progress import step
from tasks.reporting.wording import clean, with_minus_signs

TEMPLATES = Path(__file__).with_name("templates")
RUNTIME = Path(__file__).parents[1] / "drawing" / "vendor" / "vega.js"


def page(template: str, charts: list[dict[str, Any]], **values: Any) -> str:
    """Write a page that loads nothing from elsewhere; every text in it is escaped.

    Its scripts are the runtime of the charts, if there are any, and our own; the page names their
    digests, so that a browser runs nothing else.
    """
    step("writing the report")
    scripts = [_script(RUNTIME)] if charts else []
    scripts.append(_script(TEMPLATES / "report.js"))
    rendered: str = (
        environment()
        .get_template(template)
        .render(
            values,
            charts=charts,
            contents=[],
            look=_data(with_variables(LOOK)),
            scripts=[text for text, _ in scripts],
            hashes=" ".join(digest for _, digest in scripts),
        )
    )
    return rendered


@cache
def environment() -> Any:
    """Return the environment of all templates, which keeps those that are compiled."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    class Loader(FileSystemLoader):
        def get_source(self, environment: Environment, template: str) -> Any:
            source, *more = super().get_source(environment, template)
            return (_with_whole_percentages(source), *more)

    made = Environment(
        loader=Loader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    # A reason is plain text in the warehouse: `signed` gives it the minus signs of the tables.
    made.filters |= {"signed": with_minus_signs, "breakable": breakable, "anchor": anchor}
    made.filters |= {"verbatim": verbatim, "with_code": with_code}
    return made


@lru_cache(10_000)  # A report has tens of thousands of cells, most of them with the same texts.
def breakable(text: str) -> Markup:
    """Return the text of a cell; a long name may break after an underscore."""
    inner = escape(clean(text))
    if "_" not in inner:
        return inner
    return Markup("<bdi>{}</bdi>").format(Markup("_<wbr>").join(inner.split("_")))


def verbatim(text: str) -> Markup:
    """Return a text that keeps its line breaks and spaces; all other texts lose them."""
    return escape(laid_out(text))


def with_code(text: str) -> Markup:
    """Return a sentence whose parts between backticks are code."""
    parts = enumerate(clean(text).split("`"))
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(part) if at % 2 else escape(part) for at, part in parts)


def drawings(**frames: pl.DataFrame) -> list[dict[str, Any]]:
    """Draw every chart of these frames that has something to show."""
    drawn = []
    for chart in charts_of(*frames):
        step(f"drawing: {chart.title}")
        if panels := [_panel(spec) for spec in chart(**frames)]:
            about = {"name": chart.name, "title": chart.title, "reading": chart.reading}
            drawn.append({**about, "panels": panels})
    return drawn


def panels_of(**frames: pl.DataFrame) -> list[Spec]:
    """Return every panel of :func:`drawings` as it is drawn."""
    return [_bare(spec) for chart in charts_of(*frames) for spec in chart(**frames)]


def _panel(spec: Spec) -> dict[str, Any]:
    """Return heading, picture and data of a panel; a page writes its heading as text."""
    bare = _bare(spec)
    return {
        "title": spec["title"]["text"],
        "notes": spec["title"].get("subtitle", []),
        # The drawing escapes its texts itself.
        "picture": Markup(inline_svg(bare)),  # noqa: S704
        "data": _data(with_variables(bare)),
    }


def _bare(spec: Spec) -> Spec:
    return {name: rounded(part) for name, part in spec.items() if name != "title"}


def anchor(title: str) -> str:
    """Return the name of a section's anchor: ``how-to-read`` of ``How to read?``."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _data(value: Any) -> Markup:
    """Write a value as JSON within a script element, which no text in it can end."""
    written = json.dumps(value, separators=(",", ":"))
    for character in "<>&":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return Markup(written)  # noqa: S704


@cache
def _script(file: Path) -> tuple[Markup, str]:
    """Return a script of ours, and its digest as a content security policy has it."""
    text = file.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(text), f"'sha256-{digest}'"  # noqa: S704


def _harmless(value: object) -> object:
    """Remove invisible characters from texts, but not from our own drawings."""
    return _with_whole_percentages(clean(value)) if type(value) is str else value


def _with_whole_percentages(text: str) -> str:
    """Keep ``95 %`` in one line; a tag of a template that ends after a number is no percentage."""
    return re.sub(r"(?<=\d) %(?!\})", "\N{NO-BREAK SPACE}%", text)
