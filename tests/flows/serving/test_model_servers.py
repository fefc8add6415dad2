import asyncio
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from flows.serving import local_models
from flows.serving.local_models import ModelServer, model_servers, start_servers
from tasks.providers import JUDGES, Judge, Provider

# A server that takes a moment to load, and ends with its standard input or when it is told to.
SERVER = """
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, HTTPServer

loaded = time.monotonic() + .3

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if "end" in self.path:
            os._exit(3)
        self.send_response(200 if time.monotonic() > loaded else 503)
        self.end_headers()
        self.wfile.write(json.dumps({"data": [{"id": "tiny"}], "pid": os.getpid()}).encode())

    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
server.serve_forever()
"""
Use = Callable[..., str]


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


@pytest.fixture
def use(port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Use:
    """Make a judge of a provider that is served by a program; return its address."""

    def use(program: str = SERVER, model: str = "shop/tiny") -> str:
        (tmp_path / "served_by.py").write_text(program)
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
        address = f"http://127.0.0.1:{port}/v1"
        judge = Judge(judge="shop/judge", provider="shop", model=model)
        provider = Provider(api_base=address, serve="served_by")
        monkeypatch.setattr(local_models, "JUDGES", {"shop/judge": judge})
        monkeypatch.setattr(local_models, "provider_of", lambda _: provider)
        monkeypatch.setattr(local_models, "_servers", {})
        monkeypatch.setattr(local_models, "SECONDS_BETWEEN_CHECKS", 0.05)
        return address

    return use


def _server() -> ModelServer:
    (server,) = local_models._servers.values()
    return server


@contextmanager
def _somebody(port: int, status: int, body: object) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()


async def _within() -> tuple[str, bool]:
    async with model_servers(["shop/judge"]):
        return await asyncio.to_thread(_server().state), _server().alive


def test_a_server_is_started_and_ends_with_the_asking(use: Use) -> None:
    use()
    assert asyncio.run(_within()) == ("ready", True)
    assert _server().state() == "absent"
    assert asyncio.run(_within()) == ("ready", True)


def test_one_that_was_begun_early_is_the_one_that_is_used(use: Use) -> None:
    use()
    start_servers(["shop/judge"])
    begun = _server()._process

    async def within() -> bool:
        async with model_servers(["shop/judge"]):
            return _server()._process is begun

    assert asyncio.run(within())
    assert begun
    assert begun.poll() is not None


def test_one_that_answers_already_is_used_and_left_alone(use: Use, port: int) -> None:
    use("raise SystemExit('must not be run')")
    with _somebody(port, 200, {"data": [{"id": "other"}, {"id": "tiny"}]}):
        assert asyncio.run(_within()) == ("ready", False)
        assert _server().state() == "ready"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, {"data": [{"id": "huge"}]}, r"by a server of other models \(huge\), not tiny"),
        (200, {"data": []}, r"other models \(none\)"),
        (200, {"data": 3}, r"serves no models \(/models returns 200\)"),
        (200, ["tiny"], "serves no models"),
        (404, {}, r"serves no models \(/models returns 404\)"),
    ],
)
def test_something_else_at_the_address_is_not_asked(
    status: int, body: object, said: str, use: Use, port: int
) -> None:
    address = use()
    with _somebody(port, status, body):
        start_servers(["shop/judge"])
        with pytest.raises(RuntimeError, match=f"{address} is taken .*{said}.*Nothing was asked"):
            asyncio.run(_within())


def test_a_port_that_speaks_no_http_is_taken(use: Use, port: int) -> None:
    use()

    def greet(listening: socket.socket) -> None:
        line, _ = listening.accept()
        with line:
            line.recv(1000)
            line.sendall(b"220 mail.example ESMTP\r\n")

    with socket.create_server(("127.0.0.1", port)) as listening:
        greeting = threading.Thread(target=greet, args=(listening,))
        greeting.start()
        with pytest.raises(RuntimeError, match="taken by a program that does not speak HTTP"):
            asyncio.run(_within())
        greeting.join()


def test_a_server_that_does_not_start_says_why(use: Use) -> None:
    address = use("import sys\nprint('noise', file=sys.stderr)\nsys.exit('no model: install it.')")
    said = (
        f"no server for tiny at {address}: no model: install it. Nothing was asked. Correct this; "
        f"`python -m served_by --port {urlsplit(address).port}` starts the server by hand and "
        "prints why it fails."
    )
    with pytest.raises(RuntimeError) as error:
        asyncio.run(_within())
    assert str(error.value) == said
    # again, and what it said before is forgotten
    with pytest.raises(RuntimeError, match="no model: install it"):
        asyncio.run(_within())


def test_one_that_never_answers_is_given_up(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    use("import sys; sys.stdin.read()")
    monkeypatch.setattr(local_models, "START_SECONDS", 0.2)
    with pytest.raises(RuntimeError, match="no error message"):
        asyncio.run(_within())
    assert not _server().alive


def test_one_that_ends_meanwhile_is_started_again(use: Use) -> None:
    use()

    async def within() -> bool:
        async with model_servers(["shop/judge"]):
            first = _server()._process
            assert first
            first.kill()
            await asyncio.to_thread(first.wait)
            for _ in range(200):
                if _server().alive and await asyncio.to_thread(_server().state) == "ready":
                    return _server()._process is not first
                await asyncio.sleep(0.05)
            return False

    assert asyncio.run(within())
    assert _server().state() == "absent"


def test_the_same_server_serves_when_another_process_was_faster(use: Use, port: int) -> None:
    # it finds the port taken and ends, while the other one is not ready yet
    use("raise SystemExit('taken')")
    late = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if late.is_set() else 503)
            self.end_headers()
            self.wfile.write(b'{"data": [{"id": "tiny"}]}')
            late.set()

        def log_message(self, *_: object) -> None:
            pass

    start_servers(["shop/judge"])
    begun = _server()._process
    assert begun
    begun.wait()
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        assert asyncio.run(_within()) == ("ready", False)
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "address",
    ["", "http://127.0.0.1/v1", "https://127.0.0.1:1/v1", "http://example.org:80/v1"],
)
def test_only_this_machine_is_served(address: str) -> None:
    with pytest.raises(ValueError, match=rf"api_base \({address}\) .*must be on this machine"):
        ModelServer(address, "served_by")


@pytest.mark.parametrize("module", ["-c print(1)", "a b", "a/b", "a..b", ".a"])
def test_a_module_is_a_name(module: str) -> None:
    with pytest.raises(ValueError, match="serve"):
        Provider(serve=module)


def test_nothing_is_started_for_judges_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_models, "_servers", {})
    others = [name for name in JUDGES if not name.startswith("local/")]

    async def within() -> None:
        async with model_servers(others):
            pass

    start_servers(others)
    asyncio.run(within())
    assert local_models._servers == {}
