"""``voirdire browse`` in a real browser."""

import os
import signal
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import BrowserContext, Page, expect

from booth.browsing.__main__ import browse
from flows.cli.main import main
from warehouse.store import Warehouse

Serve = Callable[..., Any]


def test_a_flipped_pair_by_keys_alone(
    browsed: Warehouse, served: Serve, person: Callable[..., BrowserContext]
) -> None:
    site = served(browsed, "--judge", "offline/honest", command="browse")
    link = site.said.splitlines()[0]
    for width, scheme in product((1280, 390), ("light", "dark")):
        context = person(viewport={"width": width, "height": 800}, color_scheme=scheme)
        _go_by_keys(context.new_page(), link, width)
    # The browsers keep their connections open, and it ends without a word.
    assert site.stop(signal.SIGINT) == (0, "")
    assert site.errors.read_text() == ""


def _go_by_keys(page: Page, link: str, width: int) -> None:
    """Find a flipped pair by keys alone."""
    errors: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(link)
    assert "token" not in page.url
    expect(page.get_by_role("status")).to_have_text("1 to 4 of 4 comparisons")
    page.get_by_label("flipped verdicts").check()
    expect(page.get_by_role("status")).to_have_text("1 to 2 of 2 comparisons")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("2 of 2")
    # The hostile text is shown as text, and what the perturbation added is marked.
    assert "<script>window.pwned=1</script>" in page.locator(".side").last.inner_text()
    assert page.locator("ins").first.inner_text() == "Padded 1. "
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.keyboard.press("k")
    expect(page.get_by_role("status")).to_have_text("1 of 2")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_label("Search")).to_be_focused()
    page.keyboard.type("question 1?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("1 to 1 of 1 comparison")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert errors == []
    base = link.partition("/study/")[0]
    assert [address for address in asked if not address.startswith(base)] == []


def test_it_ends_without_a_word_while_a_browser_keeps_its_connection(
    browsed: Warehouse,
    hosted: Serve,
    person: Callable[..., BrowserContext],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[list[str]] = []
    # What would take the place of this process is run in a thread of it.
    monkeypatch.setattr(os, "execv", lambda _, words: started.append(words))
    CliRunner().invoke(main, ["browse", "quick", "--pair", "demo/0/a2"])
    [(*_, view)] = started
    site = hosted(browsed, view, command=browse)
    page = person().new_page()
    page.goto(site.said.splitlines()[0])
    expect(page.get_by_role("status")).to_have_text("1 of 2")
    assert site.stop() == ""
