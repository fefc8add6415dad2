"""The pages of ``voirdire browse`` to whoever asks, without a browser."""

import asyncio
import html
import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import duckdb
import httpx
import polars as pl
import pytest
from click.testing import CliRunner

from booth.browsing.app import check_view, make_app
from flows.cli.main import main
from flows.results.vote_summary import of_people
from flows.running.run_row import first_row
from flows.studies import make_study
from schemas.calibration import Disagreements, Ratings
from schemas.judging import Shifts, VoteLog
from warehouse.store import Saving, Warehouse, WarehouseBusyError

Make = Callable[..., Any]
TOKEN = "a-token"
BASE = "http://127.0.0.1:8760"
ROW = re.compile(r'<li><a href="([^"]+)">')
WRITER = """
import sys
from warehouse.store import Warehouse
warehouse = Warehouse(sys.argv[1])
for number in range(15):
    warehouse.update_run("audit", planned=number + 1)
"""


class Client:
    """A browser without eyes: it keeps cookies, and follows redirects."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(make_app(warehouse, TOKEN, 8760)),
            base_url=BASE,
            follow_redirects=True,
        )

    def get(self, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._client.get(path, **more))

    def post(self, path: str) -> httpx.Response:
        return asyncio.run(self._client.post(path))


@pytest.fixture
def client(browsed: Warehouse) -> Client:
    client = Client(browsed)
    client.get(f"/?token={TOKEN}")
    return client


def test_the_link_opens_the_pages_and_nothing_else_does(browsed: Warehouse) -> None:
    client = Client(browsed)
    closed = client.get("/study/quick")
    assert closed.status_code == 403
    assert "You cannot open this page" in closed.text
    for path in ("/?token=wrong", "/?token=", "/docs", "/openapi.json", "/%00", "/study/"):
        answer = client.get(path)
        assert (answer.status_code, answer.text) == (403, closed.text)
    entered = client.get(f"/study/quick?judge=offline%2Fhonest&token={TOKEN}")
    assert str(entered.url) == f"{BASE}/study/quick?judge=offline%2Fhonest"
    cookie = entered.history[0].headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert TOKEN not in entered.text
    assert client.get("/study/quick").status_code == 200
    # Another name that leads here, a form, and a wrong token.
    for name in ("evil.example", "127.0.0.1:8761", "evil.example:8760", "127.0.0.1:8760.evil"):
        assert client.get("/study/quick", headers={"host": name}).status_code == 403
    assert client.post("/study/quick").status_code == 403
    assert client.get("/study/quick?token=wrong").status_code == 403


def test_pages_run_no_script_of_texts_and_name_no_other_site(client: Client, hostile: str) -> None:
    for path in ("/", "/study/quick", "/study/quick?sample=demo%2F1%2Fa2", "/study/nope"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert "no-store" in answer.headers["cache-control"]
        assert re.findall(r"<script(?! src=\"/static/)|<style|\sstyle=|<img", answer.text) == []
        outside = re.findall(r"(?:src|href|action)=\"(?!/(?:static/|study/|\"))[^\"]*", answer.text)
        assert outside == []
    shown = client.get("/study/quick?sample=demo%2F1%2Fa2").text
    assert "&lt;script&gt;window.pwned=1&lt;/script&gt; \ufffdgnp.exe" in shown
    assert "\u202e" not in shown
    reply = client.get("/study/quick?invalid=1&pair=").text
    assert reply.count("&lt;img src=x onerror=window.pwned=2&gt;") == 2
    named = client.get("/study/quick", params={"judge": hostile, "search": '"><b>'}).text
    assert "<b>" not in named
    assert "No comparison matches" in named


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ({}, 8),
        ({"judge": "offline/honest"}, 4),
        ({"judge": "offline/honest", "flipped": "1"}, 2),
        ({"perturbation": "padding"}, 8),
        ({"perturbation": "boast"}, 0),
        ({"category": "easy"}, 2),
        ({"category": "hard", "flipped": "1"}, 1),
        ({"invalid": "1"}, 1),
        ({"disagree": "1"}, 1),
        ({"disagree": "1", "flipped": "1"}, 0),
        ({"search": "QUESTION 2?"}, 2),
        ({"search": "demo/3"}, 2),
        ({"search": "gnp.exe", "flipped": "1"}, 1),
        ({"prompt": "nope"}, 0),
        ({"judge": "", "search": " ", "wave": ""}, 8),
        ({"page": "1"}, 8),
        ({"page": "2"}, 0),
        ({"page": "-1"}, 8),
        ({"page": "9" * 50}, 8),
        ({"judge": "\0' or true --"}, 0),
        ({"search": "%"}, 0),
    ],
)
def test_filters_leave_what_they_say(client: Client, query: dict[str, str], rows: int) -> None:
    answer = client.get("/study/quick", params=query)
    assert answer.status_code == 200
    assert len(ROW.findall(answer.text)) == rows


def test_one_comparison_has_texts_votes_and_neighbours(client: Client) -> None:
    flipped = "/study/quick?flipped=1"
    first, second = ROW.findall(client.get(flipped).text)
    text = client.get(first.replace("&amp;", "&")).text
    assert "1 of 2" in text
    assert "Question 0?" in text
    assert "Anchor 0." in text
    assert "<ins>Padded 0. </ins>Target 0." in text
    assert re.search(r"Verdict, control: <strong><bdi>anchor</bdi></strong>, perturbed", text)
    # Two orders of three arms, and the other judge.
    assert text.count('data-name="Order">anchor first') == 3
    assert text.count('data-name="Order">target first') == 3
    assert 'data-name="Seconds" class="number">1.0' in text
    (after,) = re.findall(r'id="after" href="([^"]+)"', text)
    assert after == second
    assert "offline/random" in text
    (kept,) = re.findall(r'<a href="([^"]+)">link to this comparison', text)
    assert "Question 0?" in client.get(kept.replace("&amp;", "&")).text


def test_of_an_edit_of_white_space_alone_the_text_is_shown_without_marks(
    client: Client, browsed: Warehouse
) -> None:
    with duckdb.connect(str(browsed.path)) as connection:
        connection.execute(
            "update pairs set target = 'Target  0.' where arm = 'sham' and sample = 'demo/0/a2'"
        )
    text = client.get("/study/quick?sample=demo%2F0%2Fa2&judge=offline%2Fhonest").text
    assert "sham: an edit without meaning; only white space differs" in text
    assert '<div class="said" dir="auto">Target  0.</div>' in text
    words = ("show", "quick", "--pair", "demo/0/a2", "--warehouse", str(browsed.path))
    shown = CliRunner().invoke(main, words).stdout
    assert "  sham (only white space differs): Target  0.\n" in shown
    assert "{+Padded 0. +}Target 0." in shown


def test_from_one_pair_all_of_its_judge_and_perturbation_are_reached(client: Client) -> None:
    named = {"judge": "offline/random", "perturbation": "padding"}
    rows = ROW.findall(client.get("/study/quick", params=named).text)
    (sample,) = re.findall(r"Sample <bdi>([^<]+)", client.get(rows[0].replace("&amp;", "&")).text)
    # What `voirdire browse quick --judge ... --perturbation ... --pair ...` opens.
    text = client.get("/study/quick", params={**named, "sample": sample}).text
    assert "1 of 1" in text
    (alike,) = re.findall(r'<a href="([^"]+)">all comparisons of this judge and pert', text)
    assert len(rows) > 1
    assert ROW.findall(client.get(alike.replace("&amp;", "&")).text) == rows


def test_what_people_say_is_found_from_the_study_and_from_the_calibration(client: Client) -> None:
    both = "people: anchor, judge over both orders: tie"
    assert both in client.get("/study/quick?disagree=1&pair=").text
    # In the list it is short, and said once.
    rows = client.get("/study/quick?disagree=1").text
    assert f'title="{both}">people: anchor, both orders: tie</span>' in rows
    assert "The label of the judge over both orders is shown beside people's label." in rows
    listed = client.get("/study/quick-people").text
    assert "Question 3?" in listed
    assert "people: anchor, judge: tie" in listed
    assert '<p role="status" class="count">1 to 1 of 1 disagreement</p>' in listed
    assert "A disagreement is an item that a judge labels differently from people." in listed
    # All rows are disagreements, and nothing was perturbed.
    assert 'type="checkbox"' not in listed
    assert client.get("/study/quick").text.count('type="checkbox"') == 3
    assert "Question 3?" in client.get("/study/quick-people?pair=").text


def test_why_there_is_no_disagreement_is_said(client: Client, browsed: Warehouse) -> None:
    compare = f"`voirdire calibrate quick --warehouse {browsed.path}`"
    none = f"No label that differs from people's is saved. {compare} compares"
    with duckdb.connect(str(browsed.path)) as connection:
        connection.execute("delete from differing_labels")
    text = html.unescape(client.get("/study/quick?disagree=1").text)
    assert none in re.sub("</?code>", "`", text)
    # Beside another filter as well.
    both = html.unescape(client.get("/study/quick?disagree=1&judge=offline/honest").text)
    assert none in re.sub("</?code>", "`", both)
    assert none not in re.sub("</?code>", "`", client.get("/study/quick?flipped=1").text)
    # The filter appears when people have voted.
    box = 'name="disagree"'
    assert (box in text, box in client.get("/study/quick").text) == (True, False)
    with duckdb.connect(str(browsed.path)) as connection:
        connection.execute("update vote_log set human = true where judge = 'offline/honest'")
    assert box in client.get("/study/quick").text


def test_studies_are_listed_with_what_they_are(client: Client, browsed: Warehouse) -> None:
    reported = re.sub(r"<[^>]+>|\s+", " ", client.get("/").text)
    reported = re.sub(" +", " ", reported)
    # Four samples in three arms, two orders and two judges are 48 votes.
    (day,) = browsed.query("select max(started_at) from runs where flow = 'audit'").row(0)
    run = f"last run {day:%Y-%m-%d %H:%M} UTC"
    assert f" quick audit of pairs demo 2 judges, 48 votes {run}" in reported
    assert " quick-people calibration demo: verdicts 1 judge last run " in reported
    first = browsed.read(VoteLog).filter(judge="offline/honest")
    person = first.with_columns(judge=pl.lit("people/ann"), human=pl.lit(value=True))
    voted = VoteLog.of(person)
    browsed.save([Saving(VoteLog, voted, part=of_people())], run="r9", study="quick")
    reported = re.sub(" +", " ", re.sub(r"<[^>]+>|\s+", " ", client.get("/").text))
    assert " quick audit of pairs demo 2 judges, 48 votes, 1 person with 24 votes " in reported


def test_comparisons_and_disagreements_are_counted_each_by_its_unit(
    client: Client, browsed: Warehouse
) -> None:
    disagree = "/study/quick?disagree=1"
    assert "1 to 1 of 1 comparison</p>" in client.get(disagree).text
    with duckdb.connect(str(browsed.path)) as connection:
        connection.execute(
            "insert into shifts select * replace ('boast' as perturbation) from shifts"
        )
    text = client.get(disagree).text
    assert "1 to 2 of 2 comparisons: 1 disagreement, counted by item</p>" in text
    assert "A comparison is one judge&#39;s verdict on one sample" in text.replace("'", "&#39;")


def test_disagreements_are_in_the_order_of_show(client: Client, browsed: Warehouse) -> None:
    """Items 0 and 2 are added as ranks 3 and 2 behind item 3; another judge's come before."""
    again = "insert into differing_labels by name select * replace ({}) from differing_labels"
    with duckdb.connect(str(browsed.path)) as connection:
        connection.execute(again.format("'demo/0/a2' as item, 3 as \"rank\""))
        connection.execute(again.format("'demo/2/a2' as item, 2 as \"rank\"") + " where rank = 1")
        connection.execute(
            again.format("'offline/honest' as judge, 'demo/1/a2' as item") + " where rank = 1"
        )
    listed = client.get("/study/quick?disagree=1").text
    assert "1 to 4 of 4 comparisons, the worst of each judge first" in listed
    judges = re.findall(r"offline/(honest|random)", listed.partition("<ol")[2])
    assert judges == ["honest", "random", "random", "random"]
    assert re.findall(r"Question (\d)", listed.partition("<ol")[2]) == ["1", "3", "2", "0"]
    # The next one of a row is the next of the list.
    row = client.get("/study/quick?disagree=1&pair=").text
    assert "1 of 4" in row
    both = client.get("/study/quick?disagree=1&moved=1").text
    assert "No comparison matches" in both


def test_what_is_not_there_is_said(client: Client) -> None:
    missing = client.get("/study/nope")
    assert missing.status_code == 404
    assert "No study is named nope" in missing.text
    assert "/study/quick" in missing.text
    unlike = client.get("/study/quick?judge=sim/nope").text
    assert "There is no judge &#39;sim/nope&#39; in this study." in unlike
    assert "Known: offline/" in unlike
    gone = client.get("/study/quick?sample=nope")
    assert (gone.status_code, "No such comparison" in gone.text) == (404, True)
    # Of a row that a new measurement has replaced, the first of the filters is shown.
    assert "1 of 8" in client.get("/study/quick?pair=0000").text


def test_votes_that_were_collected_elsewhere_have_no_texts(
    audited: Make, make_vote_log: Make, make_shifts: Make
) -> None:
    warehouse = audited()
    shifts = make_shifts([{"sample": "s1", "control": "anchor", "experimental": "target"}])
    log = make_vote_log([{"choice": "first"}, {"choice": "second", "arm": "experimental"}])
    frames = [Saving(VoteLog, log), Saving(Shifts, shifts)]
    warehouse.save(frames, run="r1", study="mine")
    client = Client(warehouse)
    assert "collected elsewhere" in client.get(f"/study/mine?token={TOKEN}").text
    text = client.get("/study/mine?pair=").text
    assert "collected elsewhere" in text
    assert text.count('data-name="Reply" class="reply"><span class="off">unknown') == 2


def test_a_judge_of_single_answers_is_browsed_too(audited: Make, make_ratings: Make) -> None:
    warehouse = audited()
    rows = [
        {"sample": "s1", "kind": "label", "value": 0},
        {"sample": "s1", "kind": "label", "value": 1, "arm": "experimental"},
        {"sample": "s2", "kind": "label", "value": None},
    ]
    warehouse.save([Saving(Ratings, make_ratings(rows))], run="r1", study="own")
    client = Client(warehouse)
    listed = client.get(f"/study/own?token={TOKEN}").text
    assert len(ROW.findall(listed)) == 2
    flipped = client.get("/study/own?flipped=1&pair=").text
    assert "perturbed: <strong><bdi>pass</bdi></strong>" in flipped
    assert flipped.count('data-name="Repeat"') == 2
    # One answer has no order.
    assert "Order" not in flipped
    assert len(ROW.findall(client.get("/study/own?invalid=1").text)) == 1


def test_moved_grades_are_a_filter_and_flipped_verdicts_are_none(
    audited: Make, make_ratings: Make
) -> None:
    warehouse = audited()
    given = {"g1": (6.0, 7.0), "g2": (5.0, 2.5), "g3": (4.0, 4.0), "g4": (8.0, 9.0)}
    rows = [
        {"sample": sample, "arm": arm, "value": value}
        for sample, pair in given.items()
        for arm, value in zip(("control", "experimental"), pair, strict=True)
    ]
    warehouse.save([Saving(Ratings, make_ratings(rows))], run="r1", study="grades")
    client = Client(warehouse)
    listed = client.get(f"/study/grades?token={TOKEN}").text
    assert "moved grades" in listed
    assert "flipped verdicts" not in listed
    why = "Judges of this study give grades: these move, and no verdict flips."
    assert why in client.get("/study/grades?flipped=1").text
    moved = client.get("/study/grades?moved=1")
    assert "1 to 3 of 3 comparisons, the furthest first</p>" in moved.text
    first, second, _ = (link.replace("&amp;", "&") for link in ROW.findall(moved.text))
    text = client.get(first).text
    assert "Sample <bdi>g2</bdi>" in text
    assert "control: <strong><bdi>5</bdi></strong>, perturbed: <strong><bdi>2.5" in text
    assert "moved by 2.5" in text
    (after,) = re.findall(r'id="after" href="([^"]+)"', text)
    assert after.replace("&amp;", "&") == second
    assert "Sample <bdi>g1</bdi>" in client.get(second).text
    none = "This study has no grades that a perturbation could move."
    assert none in client.get("/study/quick?moved=1").text


def test_of_a_wave_without_results_it_is_said_what_measures_it(
    audited: Make, make_vote_log: Make, make_shifts: Make
) -> None:
    warehouse, now = audited(), datetime.now(UTC)
    for wave in ("n1", "n2"):
        row = first_row("audit", wave, make_study("quick", {"wave": wave}), now)
        warehouse.start_run({**row, "study": "nights", "state": "completed", "ended_at": now})
    frames = [
        Saving(VoteLog, make_vote_log([{"wave": "n2"}])),
        Saving(Shifts, make_shifts([{"sample": "s1", "wave": "n2"}])),
    ]
    warehouse.save(frames, run="n2", study="nights")
    client = Client(warehouse)
    assert "1 judge, 1 vote of wave n2" in client.get(f"/?token={TOKEN}").text
    for path in ("/study/nights?wave=n1", "/study/nights?wave=n1&pair="):
        text = client.get(path).text
        assert "has no results of wave &#39;n1&#39;, only its votes." in text
        command = f"voirdire show nights --wave n1 --warehouse {warehouse.path}"
        assert f"<code>{command}</code> names the command" in text
    assert "only its votes" not in client.get("/study/nights?wave=n3").text


def test_disagreements_of_another_wave_are_named(
    audited: Make, make_vote_log: Make, make_shifts: Make
) -> None:
    warehouse = audited()
    frames = [
        Saving(VoteLog, make_vote_log([{"wave": "n2"}])),
        Saving(Shifts, make_shifts([{"sample": "s1", "wave": "n2"}])),
    ]
    warehouse.save(frames, run="n2", study="nights")
    client = Client(warehouse)
    asked = f"/study/nights?disagree=1&token={TOKEN}"
    compare = f"<code>voirdire calibrate nights --warehouse {warehouse.path}</code>"
    none = f"is saved. {compare} compares labels of both."
    assert none in client.get(asked).text
    row = {"dataset": "demo", "judge": "ada", "prompt": "plain", "wave": "n1", "item": "s1"}
    row |= {"judge_label": "anchor", "human_label": "target", "gap": 1.0, "texts": "{}"}
    row |= {"rank": 1, "people": 1, "human_share": 1.0}
    labels = Disagreements.draft(pl.DataFrame([row]))
    run = first_row("calibrate", "c", make_study("quick", {}), datetime.now(UTC))
    of_study = {"study": "nights-people", "parameters": json.dumps({"study": "nights"})}
    warehouse.start_run({**run, **of_study, "state": "completed"})
    warehouse.save([Saving(Disagreements, labels)], run="c", study="nights-people")
    for path in (asked, "/study/nights?disagree=1&wave=n2", "/study/nights?disagree=1&wave=n1"):
        text = client.get(path).text
        assert "No comparison matches these filters." in text
        assert "Votes of n1 were compared with people. <code>voirdire calibrate nights" in text
    assert "were compared with people" not in client.get("/study/nights?disagree=1&judge=x").text


def test_a_busy_warehouse_is_said_and_asked_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise WarehouseBusyError("held open by process 7")

    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "query_all", busy)
        answer = client.get("/study/quick?judge=ada")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert "held open by process 7" in answer.text
    assert '<a href="/study/quick?judge=ada">Try again' in answer.text
    assert client.get("/study/quick").status_code == 200


@pytest.mark.slow
def test_readers_and_a_writer_do_not_stop_each_other(client: Client, browsed: Warehouse) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(browsed.path)])
    pages = 0
    while writer.poll() is None or not pages:
        assert client.get("/study/quick?flipped=1").status_code == 200
        pages += 1
    assert writer.returncode == 0
    assert browsed.query("select planned from runs where run = 'audit'").item() == 15


@pytest.mark.parametrize(
    ("view", "says"),
    [
        ("/study/quik", "Did you mean 'quick'?"),
        ("/study/quick?judge=offline%2Fhones", "Did you mean 'offline/honest'?"),
        ("/study/quick?perturbation=paddin", "Did you mean 'padding'?"),
        (
            "/study/quick?sample=demo%2F1%2Fb2",
            "no sample, pair_id or question 'demo/1/b2' in study 'quick'. Did you mean 'demo/1",
        ),
        ("/study/quick?sample=demo%2F1%2Fa2&flipped=1&judge=offline%2Frandom", "has the sample"),
    ],
)
def test_a_view_of_what_is_not_there_is_an_error(browsed: Warehouse, view: str, says: str) -> None:
    with pytest.raises((ValueError, LookupError), match=re.escape(says)):
        check_view(browsed, view)
    check_view(browsed, "/")
    check_view(browsed, "/study/quick?judge=offline%2Fhonest&sample=experimental-1")
