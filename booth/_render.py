"""Texts of models as HTML: Markdown is shown, HTML is text, and nothing is fetched or run."""

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
"""The page's own headings come first."""


class _Renderer(RendererHTML):
    """Renders what Markdown makes, within what the page allows."""

    def image(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Any) -> str:
        """Write an image as its text: nothing is fetched."""
        token = tokens[idx]
        source = str(token.attrs.get("src", ""))
        return f'<span class="image">[image: {escape(token.content or source)}]</span>'

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Let a link tell nobody where it was."""
        tokens[idx].attrs.update(LINK)
        return self.renderToken(tokens, idx, options, env)

    def heading_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Put headings below those of the page, and let them look as meant."""
        token = tokens[idx]
        token.attrs["class"] = token.tag
        token.tag = _lower(token.tag)
        return self.renderToken(tokens, idx, options, env)

    def heading_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Close what :meth:`heading_open` opened."""
        tokens[idx].tag = _lower(tokens[idx].tag)
        return self.renderToken(tokens, idx, options, env)

    def th_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Align a cell by class: the page allows no style in HTML."""
        style = str(tokens[idx].attrs.pop("style", ""))
        if style:
            tokens[idx].attrs["class"] = style.rpartition(":")[2]
        return self.renderToken(tokens, idx, options, env)

    td_open = th_open


def _lower(tag: str) -> str:
    return f"h{min(int(tag[1:]) + BELOW, DEEPEST)}"


def _safe(url: str) -> bool:
    return url.strip().lower().startswith(SCHEMES)


def _reader() -> MarkdownIt:
    reader = MarkdownIt(
        "commonmark", {"html": False, "linkify": False, "breaks": True}, renderer_cls=_Renderer
    ).enable(["table", "strikethrough"])
    reader.validateLink = _safe  # type: ignore[method-assign]
    return reader


READER = _reader()


def rendered(text: str) -> Markup:
    """Return a text as HTML that is safe to show."""
    return Markup(READER.render(text))  # noqa: S704 - html is off, and the renderer escapes all text
