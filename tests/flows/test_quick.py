"""The study ``quick`` as a user runs it: its words, and its report on paper."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, expect
from waiting import PATIENCE_SECONDS

from booth.browsing.app import check_view
from schemas.results import FINDINGS
from warehouse.store import Warehouse

pytestmark = pytest.mark.served

PAGE = re.compile(rb"/Type\s*/Page\b(?!s)")
MOST_PAGES, MOST_BYTES = 12, 2_700_000


PROMOTE, DETRACT = ("fake_reference", "rich_content"), ("factual_error", "gender_bias")
PLANTED = {
    "fair": {**dict.fromkeys(PROMOTE, "no relevant bias"), **dict.fromkeys(DETRACT, "detects")},
    "leaning": {**dict.fromkeys(PROMOTE, "no relevant bias"), **dict.fromkeys(DETRACT, "detects")},
    "dazzled": {
        **dict.fromkeys(PROMOTE, "biased"),
        "factual_error": "overlooks",
        "gender_bias": "rewards",
    },
    # What it makes of references and markup cancels out over the questions.
    "hasty": {**dict.fromkeys(PROMOTE, "mixed"), **dict.fromkeys(DETRACT, "detects some")},
    # It has no taste for references and markup, but the sham itself moves it.
    "fussy": {**dict.fromkeys(PROMOTE, "inconclusive"), **dict.fromkeys(DETRACT, "detects")},
}
README = Path(__file__).parents[2] / "README.md"
QUERIES = re.compile(r'^\$ voirdire sql "([^"]+)"\n(.*?)```', re.MULTILINE | re.DOTALL)
NOT_TO_BE_USED = "offline/dazzled (simulated): do not use. Does not detect flaws"


@pytest.fixture(scope="module")
def audited(
    voirdire_in: Callable[..., Any],
    environment_in: Callable[[Path], dict[str, str]],
    fill_once: Callable[..., tuple[Path, Any]],
) -> tuple[Callable[..., Any], Any, Path]:
    """Return what runs commands after an audit, what the audit said, and their folder."""

    def there(folder: Path) -> Callable[..., Any]:
        return voirdire_in(folder, environment_in(folder))

    folder, done = fill_once("quick", lambda folder: there(folder)("audit", "quick"))
    assert done.returncode == 0
    return there(folder), done, folder


def test_quick_says_what_is_planted(audited: tuple[Callable[..., Any], Any, Path]) -> None:
    voirdire, done, folder = audited
    warehouse = Warehouse(folder / "voirdire.duckdb")
    cells = warehouse.query(
        "select replace(judge, 'offline/', ''), perturbation, finding from mart.bias "
        "where kind <> 'position'"
    ).rows()
    assert {(judge, name): word for judge, name, word in cells} == {
        (judge, name): word for judge, own in PLANTED.items() for name, word in own.items()
    }
    shifts = dict(
        warehouse.query(
            "select replace(judge, 'offline/', ''), shift from mart.bias "
            "where perturbation = 'fake_reference'"
        ).rows()
    )
    assert shifts["dazzled"] > 0.05
    assert abs(shifts["fair"]) < 0.1
    # The queries of the README give what stands there.
    queries = QUERIES.findall(README.read_text(encoding="utf-8"))
    assert len(queries) == 3
    for query, shown in queries:
        printed = voirdire("sql", query).stdout.splitlines()
        assert printed == shown.splitlines()
    words = [word for _, _, word in cells]
    # Most cells are decided, and every word occurs.
    assert sum(word != "inconclusive" for word in words) >= 16
    assert set(words) == set(FINDINGS)
    assert NOT_TO_BE_USED in " ".join(done.stdout.split())
    page = (folder / "reports" / "quick.html").read_text(encoding="utf-8")
    assert page.index("<strong>do not use</strong>") < page.index('<h2 id="findings">')
    assert "Does not detect flaws" in page


def test_its_report_prints_on_twelve_pages(
    audited: tuple[Callable[..., Any], Any, Path], browser: Browser
) -> None:
    _, _, folder = audited
    file = folder / "reports" / "quick.html"
    assert file.stat().st_size < MOST_BYTES
    page = browser.new_page()
    page.goto(file.as_uri())
    folded = page.locator("details:not([open])").count()
    assert folded > 3
    assert 1 < len(PAGE.findall(page.pdf())) <= MOST_PAGES
    # What is folded is what makes it long.
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert len(PAGE.findall(page.pdf())) > MOST_PAGES
    # No table needs scrolling on a common screen, whatever is unfolded.
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.evaluate(WIDER) == 0


SMALL = """() => [...document.querySelectorAll("small, table *, p")].filter(
    (each) => each.textContent.trim() && each.checkVisibility() && !each.closest("svg")
        && parseFloat(getComputedStyle(each).fontSize) < 12.5).map((each) => each.textContent)"""
WIDER = """() => [...document.querySelectorAll(".wide")].filter(
    (each) => each.checkVisibility() && each.scrollWidth > each.clientWidth).length"""


def test_its_tables_can_be_read(
    audited: tuple[Callable[..., Any], Any, Path], browser: Browser
) -> None:
    _, _, folder = audited
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((folder / "reports" / "quick.html").as_uri())
    assert page.evaluate(SMALL) == []
    assert page.evaluate(WIDER) == 0
    # Reasons have the minus sign of the tables.
    assert re.findall(r"[\s\[(]-\.\d", page.locator("body").inner_text()) == []
    # Of the text before the first table, one paragraph is open.
    explained = page.locator("#results ~ p").first.bounding_box()
    table = page.locator("#results ~ .wide").first.bounding_box()
    assert explained
    assert table
    assert table["y"] - explained["y"] < 250
    # A telephone shows that columns continue; a judge whose flaw is rewarded rests on the shift.
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate(WIDER) > 0
    assert page.evaluate(SMALL) == []
    rewarding = page.locator("tbody[data-perturbation=gender_bias] tr", has_text="rewards")
    assert "DP" not in rewarding.first.locator("td.words").inner_text()
    page.close()


CUT = """() => {
    const cut = [];
    const pictures = [...document.querySelectorAll(".panel svg")].filter(
        (svg) => !svg.parentElement.closest("svg"));
    for (const svg of pictures) {
        const box = svg.getBoundingClientRect();
        for (const text of svg.querySelectorAll("text")) {
            const { left, right, top, bottom } = text.getBoundingClientRect();
            if (left < box.left - 0.5 || right > box.right + 0.5) cut.push(text.textContent);
            if (top < box.top - 0.5 || bottom > box.bottom + 0.5) cut.push(text.textContent);
        }
    }
    return [pictures.length, cut];
}"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("live", [False, True])
def test_no_letter_of_its_charts_is_cut(
    audited: tuple[Callable[..., Any], Any, Path], browser: Browser, width: int, *, live: bool
) -> None:
    _, _, folder = audited
    size: Any = {"width": width, "height": 900}
    page = browser.new_page(viewport=size, java_script_enabled=live)
    page.goto((folder / "reports" / "quick.html").as_uri())
    for panel in page.locator(".panel").all() if live else ():
        panel.scroll_into_view_if_needed()
        expect(panel.locator("div > svg")).to_be_visible(timeout=PATIENCE_SECONDS * 1000)
    pictures, cut = page.evaluate(CUT)
    assert pictures > 10
    assert cut == []
    page.close()


def test_a_flipped_pair_of_its_report_is_one_click_from_the_finding_and_its_command_shows_it(
    audited: tuple[Callable[..., Any], Any, Path], browser: Browser
) -> None:
    voirdire, _, folder = audited
    page = browser.new_page()
    page.goto((folder / "reports" / "quick.html").as_uri())
    biased = page.locator("tbody[data-perturbation=fake_reference] tr", has_text="biased").first
    assert biased.locator(".who").inner_text() == "offline/dazzled"
    biased.get_by_role("link", name="flipped").click()
    group = page.locator("details.examples[open]")
    shown, total = map(int, re.findall(r"fake_reference: (\d+) of (\d+)", group.inner_text())[0])
    assert (shown, group.locator("section").count()) == (10, 10)
    assert biased.get_by_role("link").inner_text() == f"{total} flipped"
    pair = group.locator("section").first
    # The reference that was added
    assert re.search(r"\(\d{4}\)", pair.locator("ins").first.inner_text())
    words = shlex.split(pair.locator(".command code").first.inner_text())
    assert words[0] == "voirdire"
    whole = " ".join(voirdire(*words[1:]).stdout.split())
    assert pair.locator("h3").inner_text()[:40] in whole
    assert "offline/dazzled (simulated) fake_reference:" in whole
    link = pair.locator(".command a").get_attribute("href")
    assert link
    view = link.removeprefix("http://127.0.0.1:8760")
    check_view(Warehouse(folder / "voirdire.duckdb"), view)
    sample = pair.locator("small bdi").first.inner_text()
    assert dict(parse_qsl(urlsplit(view).query))["sample"] == sample


def test_the_texts_behind_a_finding_are_shown(
    audited: tuple[Callable[..., Any], Any, Path],
) -> None:
    voirdire, _, _ = audited
    shown = voirdire(
        "show", "--judge", "offline/dazzled", "--perturbation", "fake_reference", "--most", "1"
    ).stdout
    flat = " ".join(shown.split())
    assert re.search(r"1 of \d+ offline/dazzled \(simulated\) fake_reference: \w+ -> \w+", flat)
    # The reference that was added, the sham's words, and the replies in both orders.
    assert re.search(r"target: .*\{\+.*\(\d{4}\).*\+\} sham: .*\{\+.*\+\} control, ", flat)
    for arm in ("control", "perturbed", "sham"):
        for first in ("anchor", "target"):
            assert re.search(rf"{arm}, {first} first: (anchor|target|tie): Simulated judge", flat)
    (row,) = json.loads(voirdire("show", "--most", "1", "--format", "json").stdout)
    assert len(row["sham_targets"]) == 1
    assert len(row["sham_replies"]) == 2
    unread = voirdire("show", "--invalid", "--most", "1").stdout
    assert "1 of 33" in unread


def test_the_gate_says_by_its_exit_code_what_the_scorecard_says(
    audited: tuple[Callable[..., Any], Any, Path],
) -> None:
    voirdire, _, folder = audited
    judges = {"fair": 0, "leaning": 1, "fussy": 3}
    files = ("--junit", "gate.xml", "--markdown", "gate.md")
    for name, code in judges.items():
        done = voirdire("gate", "quick", "--judge", f"offline/{name}", *files)
        assert (done.returncode, done.stderr) == (code, "")
        assert " passed" in done.stdout.splitlines()[-2]
        assert done.stdout.splitlines()[-1].startswith(f"Exit code {code}: ")
    summary = (folder / "gate.md").read_text(encoding="utf-8")
    assert "offline/fussy (simulated): **use with care**" in summary
    # One minus for numbers and reasons
    assert "-.12" in summary
    assert "\N{MINUS SIGN}" not in summary + (folder / "gate.xml").read_text(encoding="utf-8")
    whole = voirdire("gate", "quick", COLUMNS="200")
    assert whole.returncode == 1
    # Each limit stands beside what it is a limit of: limits of one judge are not all of the shift.
    reported = re.findall(
        r"^offline/dazzled \(simulated\) +([a-z_ ]+?)  +fail +(\D+) -?\.",
        whole.stdout,
        re.MULTILINE,
    )
    assert dict(reported) == {
        "discernment": "best share detected over kinds of flaws",
        "position": "gap",
        "bias factual_error": "share detected",
        "bias gender_bias": "shift",
        **{f"bias {name}": "shift" for name in PROMOTE},
    }


def test_questions_are_answered_without_sql(
    audited: tuple[Callable[..., Any], Any, Path],
) -> None:
    voirdire, _, _ = audited
    listed = voirdire("sql").stdout
    assert all(name in listed for name in ("which_judge", "what_drifted", "flipped_pairs"))
    judges = json.loads(voirdire("sql", "--ask", "which_judge", "--format", "json").stdout)
    # As the judges are made: the fair one has no bias, the dazzled one looks at the form alone.
    assert (judges[0]["judge"], judges[0]["recommendation"]) == ("offline/fair", "use")
    assert (judges[-1]["judge"], judges[-1]["recommendation"]) == ("offline/dazzled", "do not use")
    ask = ("sql", "--format", "json", "--ask")
    flipped = json.loads(voirdire(*ask, "what_flipped", "--set", "study=quick").stdout)
    # Of 60, a pair could flip if both versions have a verdict, as in the statistic.
    counted = "select *, up + down as flipped from mart.flips where study = 'quick'"
    flips = json.loads(voirdire("sql", counted, "--format", "json").stdout)
    able = {(row["judge"], row["perturbation"]): row["n"] for row in flips}
    assert {(row["judge"], row["perturbation"]): row["pairs"] for row in flipped} == able
    assert max(able.values()) == 60
    # What should change nothing comes first: there, few flips are good.
    assert {(row["perturbation"], row["kind"]) for row in flipped[:10]} == {
        (name, "promote") for name in PROMOTE
    }
    for kind in ("promote", "detract"):
        beyond = [row["excess_flips"] for row in flipped if row["kind"] == kind]
        assert beyond == sorted(beyond, reverse=True)
        assert beyond[0] > beyond[-1]
    # Whoever follows references is turned by them more often than a fair judge.
    turned = {(row["judge"], row["perturbation"]): row["flipped"] for row in flipped}
    assert turned == {(row["judge"], row["perturbation"]): row["flipped"] for row in flips}
    assert (
        turned["offline/dazzled", "fake_reference"] > 3 * turned["offline/fair", "fake_reference"]
    )
    for words in ((), ("--set", "study=quick")):
        nights = json.loads(voirdire(*ask, "cost_per_judge_per_night", *words).stdout)
        total, *each = [(row["study"], row["votes"], row["cost_usd"]) for row in nights]
        assert {*each} == {("quick", 1080, 0)}
        assert total == ("quick", 1080 * len(each), 0)
    drifted = json.loads(voirdire(*ask, "what_drifted").stdout)
    assert {row["judge"] for row in drifted} == {row["judge"] for row in judges}
    reported = {(row["drift"], row["reason"], row["change"]) for row in drifted}
    assert reported == {
        ("not measured", "needs two waves (audit --wave) with verdicts on the same questions", None)
    }
    assert json.loads(voirdire(*ask, "who_disagrees_with_people").stdout) == []
    tables = voirdire("sql", "show tables").stdout.split()
    assert "bias" in tables
    assert len(tables) == len({*tables})
