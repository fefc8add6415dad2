"""Render Markdown of models as HTML without raw HTML, remote content or scripts."""

from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

SCHEMES = ("http://", "https://", "mailto:")
LINK = {"rel": "noopener noreferrer nofollow", "target": "_blank"}
DEEPEST = 6
BELOW = 2
"""Levels that the page's own headings take."""


class _Renderer(RendererHTML):
    """Renderer that allows only what the page's content security policy allows."""

    def image(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Any) -> str:
        """Show an image as its alternative text, as nothing may be fetched."""
        token = tokens[idx]
        source = str(token.attrs.get("src", ""))
        return f'<span class="image">[image: {escape(token.content or source)}]</span>'

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Add attributes that hide the referrer from a link's target; `[text]()` is no link."""
        token = tokens[idx]
        token.attrs = {**token.attrs, **LINK} if token.attrs["href"] else {}
        return self.renderToken(tokens, idx, options, env)

    def heading_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Lower heading levels below the page's own, and keep their look by a class."""
        token = tokens[idx]
        token.attrs["class"] = token.tag
        token.tag = _lower(token.tag)
        return self.renderToken(tokens, idx, options, env)

    def heading_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Close a heading at its lowered level."""
        tokens[idx].tag = _lower(tokens[idx].tag)
        return self.renderToken(tokens, idx, options, env)

    def th_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Align a cell by a class, as the page forbids inline styles."""
        style = str(tokens[idx].attrs.pop("style", ""))
        if style:
            tokens[idx].attrs["class"] = style.rpartition(":")[2]
        return self.renderToken(tokens, idx, options, env)

    td_open = th_open


def _lower(tag: str) -> str:
    return f"h{min(int(tag[1:]) + BELOW, DEEPEST)}"


def _safe(url: str) -> bool:
    return url.strip().lower().startswith(SCHEMES)


READER = MarkdownIt(
    "commonmark", {"html": False, "linkify": False, "breaks": True}, renderer_cls=_Renderer
).enable(["table", "strikethrough"])
READER.validateLink = _safe  # type: ignore[method-assign]


def rendered(text: str) -> Markup:
    """Return a text as HTML that is safe to show."""
    return Markup(READER.render(text))  # noqa: S704 - html is off, and the renderer escapes all text
