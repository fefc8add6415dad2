"""The booth in a real browser, as voters meet it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, BrowserType, Page, expect

from warehouse.store import Warehouse

LABELS = ["Answer 1", "Answer 2", "Tie", "Not familiar"]
HOSTILE = (
    "Hear **me** 😀\n\n<script>window.pwned = 1</script>\n\n<img src=x onerror='window.pwned = 2'>"
    "\n\n[go](javascript:window.pwned=3) ![p](http://127.0.0.1:9/p.png)"
)
VOTES = """
    select judge, raw, seconds, shown_first from votes join ballots using (ballot_id)
    where starts_with(judge, 'people/') order by cast_at
"""
Audited = Callable[..., Warehouse]
Serve = Callable[..., Any]
Enter = Callable[..., Page]


def place(page: Page) -> str:
    return page.get_by_role("status").inner_text()


def test_two_voters_at_once_cast_all_their_votes(
    audited: Audited, hosted: Serve, enter: Enter
) -> None:
    warehouse = audited()
    booth = hosted(warehouse, "quick", "--voter", "ann", "--voter", "ben", "--limit", "6")
    ann, ben = enter(booth.links["ann"]), enter(booth.links["ben"])
    for turn in range(6):
        for page, label in ((ann, LABELS[turn % 4]), (ben, LABELS[(turn + 1) % 4])):
            assert place(page) == f"{turn + 1} of 6"
            html = page.content()
            # Neither who wrote an answer nor what was done to it.
            for word in ("anchor", "target", "sham", "padding", "experimental", "demo/"):
                assert word not in html.replace("Anchor ", "").replace("Target ", "").replace(
                    "Sham ", ""
                )
            page.get_by_role("button", name=label, exact=True).click()
    for page in (ann, ben):
        expect(page.get_by_role("heading", name="That was the last one")).to_be_visible()
        page.get_by_role("button", name="Finish").click()
        expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert "ann: 6 of 6\nben: 6 of 6\nAll votes are saved in the warehouse" in booth.stop()
    rows = warehouse.query(VOTES).rows()
    for judge, first in (("people/ann", 0), ("people/ben", 1)):
        of_judge = [row for row in rows if row[0] == judge]
        assert [row[1] for row in of_judge] == [LABELS[(first + n) % 4] for n in range(6)]
        assert all(0 < row[2] < 60 for row in of_judge)
        assert [row[3] for row in of_judge].count("anchor") == 3


def test_a_reload_and_another_day_go_on_where_one_was(shared: Any, enter: Enter) -> None:
    page = enter(shared.links["reload"])
    page.get_by_role("button", name="Tie").click()
    expect(page.get_by_role("status")).to_have_text("2 of 6")
    question = page.get_by_label("Question").inner_text()
    page.reload()
    assert (place(page), page.get_by_label("Question").inner_text()) == ("2 of 6", question)
    context = page.context
    page.close()
    later = context.new_page()
    later.goto(shared.links["reload"])
    assert (place(later), later.get_by_label("Question").inner_text()) == ("2 of 6", question)


def test_a_browser_that_was_closed_goes_on_where_it_was(
    shared: Any, chromium: tuple[BrowserType, dict[str, Any]], tmp_path: Path
) -> None:
    kind, how = chromium
    for turn in range(3):
        # The whole program ends each time; what stays is its folder.
        context = kind.launch_persistent_context(tmp_path / "profile", **how)
        page = context.new_page()
        page.goto(shared.links["closed"])
        if turn == 0:
            page.get_by_role("button", name="Begin").click()
        expect(page.get_by_role("status")).to_have_text(f"{turn + 1} of 6")
        page.get_by_role("button", name="Tie").click()
        expect(page.get_by_role("status")).to_have_text(f"{turn + 2} of 6")
        context.close()


def test_a_killed_booth_has_lost_nothing_and_a_renewed_link_ends_the_old_one(
    audited: Audited, served: Serve, enter: Enter
) -> None:
    warehouse = audited()
    booth = served(warehouse, "--voter", "ann", "--voter", "ben", "--limit", "6")
    page, old = enter(booth.links["ann"]), enter(booth.links["ben"])
    for label in ("Answer 2", "Tie", "Answer 1"):
        page.get_by_role("button", name=label, exact=True).click()
    old.get_by_role("button", name="Tie").click()
    expect(page.get_by_role("status")).to_have_text("4 of 6")
    expect(old.get_by_role("status")).to_have_text("2 of 6")
    booth.kill()
    assert warehouse.query(VOTES).is_empty()
    again = served(warehouse, "--voter", "cid", "--renew", "ben")
    base, _, token = again.links["ann"].partition("/v/")
    assert token == booth.links["ann"].partition("/v/")[2]
    assert "3 of 6" in again.said
    page.goto(again.links["ann"])
    assert place(page) == "4 of 6"
    page.keyboard.press("Backspace")
    expect(page.get_by_role("status")).to_have_text("3 of 6")
    expect(page.get_by_role("button", name="Answer 1")).to_have_attribute("aria-pressed", "true")
    for address in (booth.links["ben"], old.url):
        answer = old.goto(base + "/" + address.split("/", 3)[3])
        assert answer
        assert answer.status == 403
    assert place(enter(again.links["ben"])) == "2 of 6"
    code, said = again.stop()
    assert (code, said.splitlines()[:3]) == (0, ["ann: 3 of 6", "ben: 1 of 6", "cid: 0 of 6"])
    votes = warehouse.query(VOTES).rows()
    assert [row[1] for row in votes if row[0] == "people/ann"] == ["Answer 2", "Tie", "Answer 1"]
    assert [row[1] for row in votes if row[0] == "people/ben"] == ["Tie"]
    # Tokens stand in no log.
    assert again.errors.read_text() == ""


def test_a_wrong_and_a_reused_link_open_nothing_and_look_alike(
    shared: Any, enter: Enter, person: Callable[..., BrowserContext]
) -> None:
    link = shared.links["wrong"]
    mine = enter(link)
    stranger = person().new_page()
    pages = []
    forged = link[:-4] + ("AAAA" if link[-4:] != "AAAA" else "BBBB")
    for address in (forged, link + "x", link.partition("/v/")[0], mine.url, link):
        answer = stranger.goto(address)
        assert answer
        assert answer.status == 403
        pages.append(stranger.content())
    expect(stranger.get_by_role("heading", name="You cannot open this page")).to_be_visible()
    assert len(set(pages)) == 1
    assert stranger.context.cookies() == []
    mine.reload()
    assert place(mine) == "1 of 6"


def test_by_http_from_elsewhere_the_origin_of_our_own_forms_is_ours(
    shared: Any, person: Callable[..., BrowserContext]
) -> None:
    page = person().new_page()
    address = shared.links["http"].replace("127.0.0.1", "vote.example")
    page.goto(address)
    with page.expect_request(lambda request: request.method == "POST") as begun:
        page.get_by_role("button", name="Begin").click()
    headers = begun.value.all_headers()
    assert "sec-fetch-site" not in headers
    assert headers["origin"] == address.partition("/v/")[0]
    page.wait_for_url("**/b/*")
    page.get_by_role("button", name="Tie", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("2 of 6")


def test_html_in_an_answer_is_shown_and_not_run(
    audited: Audited, hosted: Serve, enter: Enter
) -> None:
    booth = hosted(
        audited(1, {0: HOSTILE}), "quick", "--voter", "ann", "--arms", "control", "--limit", "1"
    )
    page = enter(booth.links["ann"])
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    shown = page.get_by_role("article").filter(has_text="Hear me").inner_text()
    assert "<script>window.pwned = 1</script>" in shown
    assert "<img src=x onerror='window.pwned = 2'>" in shown
    assert "[go](javascript:window.pwned=3) [image: p]" in shown
    assert page.locator("article strong").inner_text() == "me"
    assert page.locator("article :is(script, img, a)").count() == 0
    assert page.evaluate("window.pwned") is None
    base = booth.links["ann"].partition("/v/")[0]
    assert asked
    assert all(address.startswith(base) for address in asked)


def test_keys(audited: Audited, hosted: Serve, enter: Enter) -> None:
    warehouse = audited()
    booth = hosted(warehouse, "quick", "--voter", "ann", "--limit", "6")
    page = enter(booth.links["ann"])
    for turn, key in enumerate(("1", "2", "3", "T", "n")):
        expect(page.get_by_role("status")).to_have_text(f"{turn + 1} of 6")
        page.keyboard.press(key)
    expect(page.get_by_role("status")).to_have_text("6 of 6")
    page.keyboard.press("x")
    page.keyboard.press("Control+1")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("status")).to_have_text("5 of 6")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("status")).to_have_text("6 of 6")
    page.keyboard.press("Backspace")
    expect(page.get_by_role("status")).to_have_text("5 of 6")
    page.keyboard.press("2")
    expect(page.get_by_role("status")).to_have_text("6 of 6")
    # By Tab and Enter, as without a mouse.
    page.get_by_role("button", name="Tie").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="That was the last one")).to_be_visible()
    page.keyboard.press("Backspace")
    expect(page.get_by_role("status")).to_have_text("6 of 6")
    booth.stop()
    said = [row[1] for row in warehouse.query(VOTES).rows()]
    assert sorted(said) == sorted(["Answer 1", "Answer 2", "Tie", "Tie", "Answer 2", "Tie"])


def test_a_form_that_is_sent_again_changes_nothing(
    audited: Audited, hosted: Serve, enter: Enter
) -> None:
    warehouse = audited()
    booth = hosted(warehouse, "quick", "--voter", "ann", "--limit", "6")
    page = enter(booth.links["ann"])
    nonce = page.locator("input[name=nonce]").get_attribute("value") or ""
    page.get_by_role("button", name="Answer 1").click()
    expect(page.get_by_role("status")).to_have_text("2 of 6")
    for form in ({"nonce": nonce, "choice": "Tie"}, {"nonce": "x.y", "choice": "Tie"}, {}):
        answer = page.request.post(page.url, form=dict(form))
        assert "2 of 6" in answer.text()
    huge = page.request.post(page.url, form={"nonce": "n" * 10_000, "choice": "Tie"})
    assert huge.status == 403
    booth.stop()
    assert [row[1] for row in warehouse.query(VOTES).rows()] == ["Answer 1"]


def test_a_phone(audited: Audited, hosted: Serve, enter: Enter) -> None:
    wide = "W" * 400 + "\n\n```\n" + "x = 1; " * 60 + "\n```\n\n" + "| a " * 30 + "|\n" + "|--" * 30
    voters = ("--voter", "390", "--voter", "320")
    booth = hosted(audited(1, {0: wide}), "quick", *voters, "--arms", "control", "--limit", "1")
    for width, link in booth.links.items():
        size = {"width": int(width), "height": 800}
        page = enter(link, viewport=size, has_touch=True, is_mobile=True)
        assert page.evaluate("document.documentElement.scrollWidth") == int(width)
        one, two = (box.bounding_box() for box in page.get_by_role("article").all())
        assert one
        assert two
        assert one["y"] + one["height"] <= two["y"]
        for label in LABELS:
            box = page.get_by_role("button", name=label, exact=True).bounding_box()
            assert box
            assert box["height"] >= 44
            assert box["y"] + box["height"] <= 800  # within reach, wherever one has scrolled to
        page.get_by_role("button", name="Tie").tap()
        expect(page.get_by_role("heading", name="That was the last one")).to_be_visible()


def test_a_desk_shows_the_answers_side_by_side(shared: Any, enter: Enter) -> None:
    page = enter(shared.links["desk"], viewport={"width": 1280, "height": 800})
    one, two = (box.bounding_box() for box in page.get_by_role("article").all())
    assert one
    assert two
    assert (one["y"], one["width"]) == (two["y"], two["width"])
    assert one["x"] + one["width"] < two["x"]
