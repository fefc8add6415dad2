"""Serve an application on one socket until Ctrl-C or SIGTERM."""

import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raise ValueError if that is not possible, such as where another process listens.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ValueError(
            f"cannot listen on {host}, port {port}: {error.strerror}. Choose another --port."
        ) from error
    listening.listen(128)
    return listening


def serve(app: Any, listening: socket.socket, announce: Callable[[], None]) -> None:
    """Serve pages until Ctrl-C or SIGTERM; ``announce`` is called when they are served."""
    import uvicorn

    from booth.web.connections import bounded, most_connections

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        http=bounded(most_connections()),
    )
    server = uvicorn.Server(config)
    # Signals go to the main thread, which may have work left after the server has ended.
    serving = threading.Thread(target=_run, args=(server, listening), daemon=True)
    signals = catch_signals()
    serving.start()
    announce()
    wait_for_signal(signals, serving)
    server.should_exit = True
    serving.join()


def _run(server: Any, listening: socket.socket) -> None:
    import asyncio

    from booth.web.connections import LogOnceAMinute

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(LogOnceAMinute())
        await server.serve(sockets=[listening])

    asyncio.run(run())


def catch_signals() -> SimpleQueue[int]:
    """Return a queue into which Ctrl-C and SIGTERM put their numbers from now on."""
    # SimpleQueue is reentrant. An Event set by a signal handler in the thread that is about to wait
    # for it would deadlock.
    signals: SimpleQueue[int] = SimpleQueue()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: signals.put(number))
    return signals


def wait_for_signal(signals: SimpleQueue[int], serving: threading.Thread) -> None:
    """Wait until a signal comes or the server ends."""
    while serving.is_alive():
        with suppress(Empty):
            signals.get(timeout=0.2)
            return
