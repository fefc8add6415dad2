"""Who gets which file of the reports, by requests as the server passes them on."""

import asyncio
import base64
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.publishing.report_files import PLACE, write_report_file
from flows.publishing.served_files import ServedFiles, key_of, link_to, reports_of
from flows.serving.access import Access, stored

AUTH = "voirdire:secret"
RUN = "0f2c8c8e-8a4a-4e0e-9f5e-1f6f0f6f0f6f"
BASIC = {b"authorization": b"Basic " + base64.b64encode(AUTH.encode())}
Ask = Callable[..., tuple[int, dict[bytes, bytes], bytes]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    (folder / "pictures" / RUN).mkdir(parents=True)
    (folder / "quick.html").write_text("<!doctype html>quick")
    (folder / "pictures" / RUN / "forest.svg").write_text("<svg/>")
    (folder / "notes.txt").write_text("private")
    (tmp_path / "outside.html").write_text("private")
    (folder / "linked.html").symlink_to(tmp_path / "outside.html")
    return folder


@pytest.fixture
def ask(folder: Path) -> Ask:
    def send(
        name: str,
        key: str | None = None,
        headers: dict[bytes, bytes] | None = None,
        *,
        method: str = "GET",
        auth: str | None = AUTH,
    ) -> tuple[int, dict[bytes, bytes], bytes]:
        sent: list[Any] = []

        async def receive(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": f"/reports/{name}",
            "query_string": f"key={key}".encode() if key else b"",
            "headers": [*(headers or {}).items()],
        }
        asyncio.run(ServedFiles(folder, auth)(scope, receive))
        return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]

    return send


@pytest.mark.parametrize(
    ("name", "kind"),
    [("quick.html", b"text/html; charset=utf-8"), (f"pictures/{RUN}/forest.svg", b"image/svg+xml")],
)
def test_a_file_is_for_who_has_its_key_or_the_string(ask: Ask, name: str, kind: bytes) -> None:
    status, headers, body = ask(name, key_of(AUTH, name))
    assert (status, headers[b"content-type"]) == (200, kind)
    # Without allow-same-origin, its scripts cannot read the string that the UI stores.
    assert headers[b"content-security-policy"].startswith(b"sandbox allow-scripts ")
    assert b"allow-same-origin" not in headers[b"content-security-policy"]
    assert body
    assert ask(name, headers=BASIC)[2] == body
    assert ask(name, auth=None)[2] == body
    assert ask(name, key_of(AUTH, name), method="HEAD")[::2] == (200, b"")
    assert ask(name, key_of(AUTH, name), method="DELETE")[0] == 405


@pytest.mark.parametrize("names", [("desk", "desk-people"), ("desk-people", "desk")])
def test_the_link_of_a_report_to_the_other_one_works(
    ask: Ask, folder: Path, names: tuple[str, str]
) -> None:
    for name in names:
        write_report_file(folder / f"{name}.html", f"<p>{name} {PLACE}</p>")
    name, other = (f"{each}.html" for each in names)
    page = ask(name, key_of(AUTH, name))[2].decode()
    [(there, key)] = re.findall(r'href="([^"?]+)[?]key=([^"]+)"', page)
    assert there == other
    assert ask(there, key)[0] == 200
    # Without a login there are no keys.
    assert f'href="{other}"' in ask(name, auth=None)[2].decode()


@pytest.mark.parametrize(
    "key", [None, "", "x", key_of(AUTH, "other.html"), key_of("x:y", "quick.html")]
)
def test_anyone_else_is_refused_alike(ask: Ask, key: str | None) -> None:
    refused = ask("quick.html", key)
    assert refused[0] == 401
    assert refused[1][b"www-authenticate"].startswith(b"Basic ")
    # The response does not show whether a file exists.
    assert ask("missing.html", key) == refused
    assert ask("quick.html", key, {b"authorization": b"Basic eDp5"}) == refused


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "missing.html",
        "notes.txt",
        "linked.html",
        "../outside.html",
        "../reports/quick.html",
        "/etc/passwd",
        "pictures",
        "pictures/",
        f"pictures/{RUN}",
        f"pictures/{RUN}/../../quick.html",
        f"pictures/{RUN}/forest.svg/",
        "quick.html\0",
        "quick.html\n",
        "QUICK.HTML ",
        "x" * 5000 + ".html",
    ],
)
def test_nothing_else_is_served(ask: Ask, name: str) -> None:
    assert ask(name, headers=BASIC)[0] == 404
    assert ask(name, auth=None)[0] == 404


def test_warehouses_of_one_folder_have_reports_of_their_own(tmp_path: Path) -> None:
    names = ("voirdire.duckdb", "team.duckdb", "team.db")
    assert [reports_of(tmp_path / name).name for name in names] == [
        "reports",
        "team-reports",
        "team.db-reports",
    ]


def test_links_lead_to_the_server_of_this_run_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = "http://127.0.0.1:4200"
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PREFECT_API_URL", f"{url}/api")
    assert link_to(folder / "quick.html") is None
    with stored(Access(f"{url}/api", AUTH, str(folder)), os.getpid()):
        key = key_of(AUTH, "quick.html")
        assert link_to(folder / "quick.html") == f"{url}/reports/quick.html?key={key}"
        assert link_to(folder / "notes.txt") is None
        assert link_to(tmp_path / "outside.html") is None
        monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4300/api")
        assert link_to(folder / "quick.html") is None
    with stored(Access(f"{url}/api", None, str(folder)), os.getpid()):
        monkeypatch.setenv("PREFECT_API_URL", f"{url}/api")
        assert link_to(folder / "quick.html") == f"{url}/reports/quick.html"
    # A server of an earlier version has stored no folder.
    place = tmp_path / "home" / "voirdire" / "server.json"
    with stored(Access(f"{url}/api", AUTH), os.getpid()):
        old = json.loads(place.read_text())
        del old["reports"]
        place.write_text(json.dumps(old))
        assert link_to(folder / "quick.html") is None
