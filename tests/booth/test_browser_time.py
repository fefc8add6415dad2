"""Seconds of votes in a real browser: those on the page, however slow the machine is.

A vote takes at most what passed in all, less what was measured of the absence, so no bound depends
on how long a step takes.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserType, Page, expect
from waiting import wait_for

from warehouse.store import Warehouse

ABSENCE = 6.0
"""Seconds that a ballot is not on the page."""
SECONDS = """
    select seconds from votes join ballots using (ballot_id)
    where starts_with(judge, 'people/') order by cast_at
"""
Audited = Callable[..., Warehouse]
Serve = Callable[..., Any]
Enter = Callable[..., Page]


def reported_looks(warehouse: Warehouse, count: int) -> None:
    """Wait until pages have reported so many looks."""
    (journal,) = warehouse.path.parent.rglob("quick.jsonl")
    wait_for(
        lambda: journal.read_text(encoding="utf-8").count('"look"') >= count,
        f"pages reported fewer than {count} looks",
    )


def voted(warehouse: Warehouse, booth: Any, page: Page) -> tuple[float, float]:
    """Choose, and end the booth; return the seconds of that vote, and when it was cast."""
    before = page.get_by_role("status").inner_text()
    page.keyboard.press("1")
    expect(page.get_by_role("status")).not_to_have_text(before)
    cast = time.monotonic()
    booth.stop()
    return warehouse.query(SECONDS).rows()[-1][0], cast


def test_time_in_a_hidden_tab_does_not_count(audited: Audited, hosted: Serve, enter: Enter) -> None:
    warehouse = audited()
    booth = hosted(warehouse, "quick", "--voter", "ann", "--limit", "6")
    began = time.monotonic()
    page = enter(booth.links["ann"])
    hide = """hidden => {
        Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.wait_for_timeout(500)
    page.evaluate(hide, arg=True)
    hidden = time.monotonic()
    # A tab that is hidden may never come back, so it tells at once; shown again, it goes on.
    reported_looks(warehouse, 1)
    page.wait_for_timeout(ABSENCE * 1000)
    absent = time.monotonic() - hidden
    page.evaluate(hide, arg=False)
    seconds, cast = voted(warehouse, booth, page)
    assert 0.5 <= seconds <= cast - began - absent


def test_time_between_two_looks_does_not_count(
    audited: Audited, hosted: Serve, enter: Enter
) -> None:
    warehouse = audited()
    booth = hosted(warehouse, "quick", "--voter", "ann", "--limit", "6")
    began = time.monotonic()
    page = enter(booth.links["ann"])
    page.wait_for_timeout(500)
    context = page.context
    page.close()
    closed = time.monotonic()
    reported_looks(warehouse, 1)
    time.sleep(ABSENCE)
    absent = time.monotonic() - closed
    later = context.new_page()
    later.goto(booth.links["ann"])
    seconds, cast = voted(warehouse, booth, later)
    assert 0.5 <= seconds <= cast - began - absent


def test_a_browser_that_quits_has_reported_half_of_the_time_or_more(
    audited: Audited, hosted: Serve, chromium: tuple[BrowserType, dict[str, Any]], tmp_path: Path
) -> None:
    warehouse = audited()
    booth = hosted(warehouse, "quick", "--voter", "ann", "--limit", "6")
    kind, how = chromium
    began = time.monotonic()
    context = kind.launch_persistent_context(tmp_path / "profile", **how)
    page = context.new_page()
    page.goto(booth.links["ann"])
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("status")).to_have_text("1 of 6")
    reported_looks(warehouse, 1)
    context.close()
    closed = time.monotonic()
    time.sleep(ABSENCE)
    absent = time.monotonic() - closed
    context = kind.launch_persistent_context(tmp_path / "profile", **how)
    page = context.new_page()
    page.goto(booth.links["ann"])
    seconds, cast = voted(warehouse, booth, page)
    context.close()
    assert 4 <= seconds <= cast - began - absent


def test_time_on_an_earlier_ballot_counts_there_only(
    audited: Audited, hosted: Serve, enter: Enter
) -> None:
    warehouse = audited()
    booth = hosted(warehouse, "quick", "--voter", "ann", "--limit", "6")
    began = time.monotonic()
    page = enter(booth.links["ann"])
    page.keyboard.press("2")
    expect(page.get_by_role("status")).to_have_text("2 of 6")
    page.wait_for_timeout(500)
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("status")).to_have_text("1 of 6")
    back = time.monotonic()
    page.wait_for_timeout(ABSENCE * 1000)
    absent = time.monotonic() - back
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("status")).to_have_text("2 of 6")
    # Of the second ballot, and of the first, which has a choice.
    reported_looks(warehouse, 2)
    seconds, cast = voted(warehouse, booth, page)
    assert 0.5 <= seconds <= cast - began - absent


def test_reloads_and_tabs_add_up_to_no_more_than_time_passed(
    audited: Audited, hosted: Serve, enter: Enter
) -> None:
    warehouse = audited()
    booth = hosted(warehouse, "quick", "--voter", "ann", "--limit", "6")
    began = time.monotonic()
    page = enter(booth.links["ann"])
    page.wait_for_timeout(1000)
    page.reload()
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_timeout(4000)
    # Headless, both are seen at once.
    page.close()
    reported_looks(warehouse, 2)
    seconds, cast = voted(warehouse, booth, other)
    assert 5 <= seconds <= cast - began
