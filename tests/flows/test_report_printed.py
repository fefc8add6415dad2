"""The report on paper."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

pytestmark = [pytest.mark.served, pytest.mark.xdist_group("served")]

PAGE = re.compile(rb"/Type\s*/Page\b(?!s)")
MOST_PAGES = 12


def test_quick_prints_on_twelve_pages(
    voirdire: Callable[..., Any], browser: Browser, tmp_path: Path
) -> None:
    assert voirdire("audit", "quick").returncode == 0
    page = browser.new_page()
    page.goto((tmp_path / "reports" / "quick.html").as_uri())
    folded = page.locator("details:not([open])").count()
    assert folded > 3
    assert 1 < len(PAGE.findall(page.pdf())) <= MOST_PAGES
    # What is folded is what makes it long.
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert len(PAGE.findall(page.pdf())) > MOST_PAGES
