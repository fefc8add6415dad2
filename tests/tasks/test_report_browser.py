"""The report in a real browser: what a reader does with it, with hostile names and texts."""

import csv
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from playwright.sync_api import Browser, Page, expect

REPO = Path(__file__).parents[2]
AXE = REPO / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
REQUIRED = "VOIRDIRE_REQUIRE_BROWSER"
EVIL = "=1+1</script><script>window.pwned = 1</script><!--"
REPLY = "<img src=x onerror='window.pwned = 2'> {{7*7}} A wins"
LAYOUT = "\n\n  [[A]]"
JUDGES = ["acme/judge-1", EVIL]
EXAMPLE = {
    "dataset": "bloom",
    "judge": "acme/judge-1",
    "simulated": False,
    "prompt": "pair_v1",
    "wave": "",
    "category": "physics",
    "perturbation": "fake_reference",
    "sample": "bloom/q 7/a2",
    "criterion": "",
    "rating_kind": None,
    "control": "anchor",
    "experimental": "target",
    "sham": "tie",
    "question": f"Why? {EVIL}",
    "anchor": "It is so.",
    "target": "It is  not so.",
    "perturbed": "It is  not so (Smith 2019):\n\n* never\n    * nowhere.",
    "repeat": None,
    "control_replies": [REPLY + LAYOUT],
    "control_orders": ["anchor"],
    "experimental_replies": ["B", "B"],
    "experimental_orders": ["anchor", "target"],
    "total": 26,
}
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def written(parts: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the report of two judges and two perturbations, of which one name is hostile."""
    cells = [
        {"judge": judge, "perturbation": name, "estimate": shift, "low": shift, "high": shift + 0.1}
        for judge, shift in zip(JUDGES, (0.1234, 0.03), strict=True)
        for name in ("fake_reference", "padding")
    ]
    evil = [
        {"judge": EVIL, "statistic": name, "estimate": 0.5, "low": 0.4, "high": 0.6, **more}
        for name, more in (
            ("asr", {}),
            ("mps_sham", {"estimate": 0.03}),
            ("position_consistency", parts.OVERALL),
            ("preference_fairness", parts.OVERALL),
        )
    ]
    jury = {"judge": "jury/all", "statistic": "jury_mps", "estimate": 0.2, "low": 0.1, "high": 0.3}
    page = parts.report(
        parts.FACTS._replace(study="my study"),
        parts.estimates(*evil, jury),
        parts.findings(*cells),
        parts.perturbed(),
        examples=pl.DataFrame([EXAMPLE]),
    )
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


@pytest.fixture
def opened(written: Path, browser: Browser) -> Iterator[Open]:
    """Return what opens the report; nothing may go wrong in it, and nothing may be requested."""
    wrong: list[str] = []
    contexts = []

    def enter(**options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url))
        page.goto(written.as_uri())
        wrong.remove(written.as_uri())
        return page

    yield enter
    for context in contexts:
        context.close()
    assert wrong == []


def draw_all(page: Page) -> None:
    """Scroll to the end, as pictures are drawn where a reader comes near."""
    for panel in page.locator(".panel").all():
        panel.scroll_into_view_if_needed()
        expect(panel.locator("div > svg")).to_be_visible()


def clear_of_violations(page: Page) -> list[str]:
    if not AXE.is_file():
        reported = f"no axe in {AXE.parent}: run `make .venv/.axe`, which takes npm"
        pytest.fail(reported) if os.environ.get(REQUIRED) else pytest.skip(reported)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_and_fits_the_screen(opened: Open, width: int, scheme: str) -> None:
    # axe is a script that the report's policy forbids.
    page = opened(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    draw_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("window.pwned") is None
    assert clear_of_violations(page) == []


def test_without_script_it_shows_the_same_pictures_and_nothing_to_choose(opened: Open) -> None:
    page = opened(java_script_enabled=False, viewport={"width": 390, "height": 900})
    assert page.locator(".panel > svg").count() == page.locator(".panel").count() > 3
    expect(page.locator(".panel > svg").first).to_be_visible()
    expect(page.get_by_label("Judge", exact=True)).to_be_hidden()
    expect(page.get_by_role("link", name="Scorecard")).to_be_visible()


def test_letters_are_as_large_before_the_script_draws_as_after_it(opened: Open) -> None:
    scale = "svgs => svgs.map(svg => svg.getScreenCTM().a)"
    page = opened(viewport={"width": 1280, "height": 300})
    pictures = page.locator(".panel > svg")
    assert pictures.count() > 3
    # A matrix has no width that it could take from its panel.
    matrix = page.locator("#the-judges-as-one-jury + figure .panel")
    assert matrix.locator(":scope > svg").count() == 1
    assert {*pictures.evaluate_all(scale)} == {1}
    draw_all(page)
    assert pictures.count() == 0
    assert {*page.locator(".panel > div > svg").evaluate_all(scale)} == {1}


def test_pictures_and_tables_follow_a_choice(opened: Open) -> None:
    page = opened()
    draw_all(page)
    forest = page.locator("#how-far-each-perturbation-moves-each-judge + figure")
    expect(forest.locator(".panel:visible")).to_have_count(2)
    page.get_by_label("Judge", exact=True).select_option(EVIL)
    expect(forest.get_by_text("acme/judge-1")).to_have_count(0)
    expect(forest.get_by_text(".03").first).to_be_visible()
    names = page.locator("table:visible tbody tr:visible th .who:visible").all_inner_texts()
    assert {*names} == {EVIL}
    # A number in the heading of a folded section is of the chosen judge, or says that it is of all.
    folded = page.locator("details:visible > summary").all_inner_texts()
    numbers = [heading for heading in folded if any(map(str.isdigit, heading))]
    assert any("all judges and perturbations: " in heading for heading in numbers)
    assert all("all judges" in heading or EVIL in heading for heading in numbers)
    page.get_by_label("Perturbation", exact=True).select_option("padding")
    expect(forest.locator(".panel:visible h3")).to_have_text(["padding"])
    expect(page.locator("tbody[data-perturbation=fake_reference]")).to_be_hidden()
    expect(page.get_by_role("status").filter(has_text="Shown")).to_have_text(
        f"Shown: {EVIL}, padding"
    )
    for name in ("Judge", "Perturbation"):
        page.get_by_label(name, exact=True).select_option("")
    expect(forest.locator(".panel:visible")).to_have_count(2)


def test_hovering_shows_numbers_with_interval_and_n(opened: Open) -> None:
    page = opened()
    panel = page.locator(".panel").first
    panel.scroll_into_view_if_needed()
    result = panel.locator("div > svg").get_by_text(".12", exact=True)
    result.hover()
    tip = page.locator("#tip")
    expect(tip).to_contain_text("acme/judge-1\nMPS .12 [.12,")
    expect(tip).to_contain_text("n 58 samples, 57 questions\nbiased")


def test_a_table_is_sorted_filtered_and_copied_without_formulas(opened: Open) -> None:
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.get_by_text("All numbers, with sample sizes").click()
    table = page.locator("table[data-perturbations='2']")
    whole = table.locator("tbody tr:not(.rests)")
    count = whole.count()
    heading = table.get_by_role("button", name="Estimate", exact=True)
    for direction, first in (("ascending", "\N{MINUS SIGN}.07"), ("descending", ".98")):
        heading.click()
        expect(table.locator(f"th[aria-sort={direction}]")).to_have_text("Estimate")
        assert whole.first.locator("td").nth(2).inner_text() == first
    page.get_by_label("Filter the rows of All numbers").fill("window.pwned")
    expect(table.locator("tbody tr:not(.rests):visible")).to_have_count(4)
    assert count > 4
    page.locator("details").filter(has=table).get_by_role("button", name="Copy as CSV").click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    head = "Judge,Statistic,Perturbation,Estimate,Interval low,Interval high,Level,n,"
    assert copied[0].startswith(head)
    assert len(copied) == 5
    assert all(line.startswith(f"'{EVIL},") for line in copied[1:])
    assert any(line.startswith(f"'{EVIL},mps_sham,fake_reference,0.03,") for line in copied)


def test_copied_cells_are_numbers_that_a_spreadsheet_reads(opened: Open) -> None:
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    results = page.locator("#results ~ .tools").first
    results.get_by_role("button", name="Copy as CSV").click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    head, *rows = csv.reader(page.evaluate("navigator.clipboard.readText()").splitlines())
    assert head[:3] == ["Perturbation", "Judge", "Finding"]
    assert "p, adjusted, raw" in head
    first = dict(zip(head, rows[0], strict=True))
    reported = [first[name] for name in ("Perturbation", "MPS", "MPS low", "MPS high")]
    assert reported == ["fake_reference", "0.12", "0.12", "0.22"]
    numbers = [row[at] for row in rows for at, name in enumerate(head) if name.startswith("MPS")]
    assert [text for text in numbers if text and "\N{MINUS SIGN}" in text] == []


def test_a_filter_without_a_match_says_so(opened: Open) -> None:
    page = opened()
    page.get_by_text("All numbers, with sample sizes").click()
    page.get_by_label("Filter the rows of All numbers").fill("nothing like it")
    none = page.get_by_role("status").filter(has_text="No rows match.")
    expect(none).to_have_count(1)
    page.get_by_label("Filter the rows of All numbers").fill("")
    expect(none).to_have_count(0)
    # Of a group without rows, its heading is not left over.
    page.get_by_label("Judge", exact=True).select_option(EVIL)
    expect(page.locator("th.group:visible")).to_have_count(2)


def test_a_flipped_pair_is_one_click_from_its_finding(opened: Open) -> None:
    page = opened()
    page.get_by_role("link", name="26 flipped").click()
    example = page.locator("#examples-1")
    expect(example).to_be_visible()
    # Whose example it is, is in sight.
    expect(example.locator("summary")).to_be_in_viewport()
    shown = example.inner_text()
    assert f"Why? {EVIL}" in shown
    assert "anchor \N{RIGHTWARDS ARROW} target (sham: tie)" in shown
    added = " (Smith 2019):\n\n* never\n    * nowhere"
    assert example.locator("ins").all_inner_texts() == [added]
    # Words that were added are apart from the others, and lines from lines.
    assert "It is  not so (Smith 2019):\n\n* never\n    * nowhere." in shown
    assert f"Reply, unperturbed, anchor first: {REPLY}{LAYOUT}" in shown
    assert "Reply, perturbed, target first: B" in shown
    # The command can be pasted, whatever the names are.
    pair = "'my study' --judge acme/judge-1 --pair 'bloom/q 7/a2'"
    assert f"All texts and replies: voirdire show {pair}" in shown
    assert f"voirdire browse {pair} --perturbation fake_reference" in shown
    section = page.locator("#examples ~ p").first.inner_text()
    assert "those shown were drawn at random (the same each time)" in section
    assert "work while voirdire browse runs" in section
    link = example.get_by_role("link", name="the page of this pair")
    assert (link.get_attribute("target"), link.get_attribute("rel")) == ("_blank", "noopener")
    assert link.get_attribute("href") == (
        "http://127.0.0.1:8760/study/my%20study?judge=acme%2Fjudge-1&prompt=pair_v1"
        "&perturbation=fake_reference&sample=bloom%2Fq+7%2Fa2"
    )
    expect(page.get_by_text("fake_reference: 1 of 26")).to_be_visible()
