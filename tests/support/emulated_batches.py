"""The batch endpoint of the emulated provider."""

import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from aiohttp import web

from tasks.kit.random_numbers import uniform

Answer = Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]
"""Body of a request -> status and body of the answer."""

Handler = Callable[[web.Request], Awaitable[web.Response]]


class BatchBehaviour(Protocol):
    """How the batch endpoint behaves (``Behaviour`` in ``emulated_provider.py``)."""

    seed: int
    key: str
    batch_seconds: float
    batch_errors: float
    batch_end: str
    batch_left: float
    batch_vanishes: bool


ENDS = {"completed", "failed", "expired", "cancelled"}


class Batches:
    """Files and batches, kept as long as the emulator runs."""

    def __init__(self, behaviour: Callable[[], BatchBehaviour], answer: Answer) -> None:
        self._behaviour, self._answer = behaviour, answer
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, dict[str, Any]] = {}
        self._created: dict[str, float] = {}
        self.counts: Counter[str] = Counter(batches=0, lines=0, looks=0)

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes of the endpoint."""
        for method, address, handler in (
            ("POST", "/v1/files", self.upload),
            ("GET", "/v1/files/{file}/content", self.content),
            ("POST", "/v1/batches", self.create),
            ("GET", "/v1/batches", self.page),
            ("GET", "/v1/batches/{batch}", self.tell),
            ("POST", "/v1/batches/{batch}/cancel", self.cancel),
        ):
            router.add_route(method, address, self._let_in(handler))

    def _let_in(self, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            key = self._behaviour().key
            if key and request.headers.get("Authorization") != f"Bearer {key}":
                return _error(401, "Incorrect API key provided.")
            return await handler(request)

        return handle

    async def upload(self, request: web.Request) -> web.Response:
        """Keep a file."""
        form = await request.post()
        upload = form["file"]
        content = upload.file.read() if isinstance(upload, web.FileField) else b""
        file = self._keep(content)
        return web.json_response(
            {
                "id": file,
                "object": "file",
                "bytes": len(content),
                "status": "processed",
                "created_at": int(time.time()),
                "filename": f"{file}.jsonl",
                "purpose": "batch",
            }
        )

    async def content(self, request: web.Request) -> web.Response:
        """Return a file."""
        content = self._files.get(request.match_info["file"])
        return _missing("file") if content is None else web.Response(body=content)

    async def create(self, request: web.Request) -> web.Response:
        """Begin a batch; its requests are answered when it is due."""
        asked = await request.json()
        if asked["input_file_id"] not in self._files:
            return _missing("file")
        batch = f"batch_{len(self._batches) + 1:04}"
        self.counts["batches"] += 1
        self._created[batch] = time.monotonic()
        self._batches[batch] = {
            "id": batch,
            "object": "batch",
            "endpoint": asked["endpoint"],
            "status": "validating",
            "input_file_id": asked["input_file_id"],
            "completion_window": "24h",
            "created_at": int(time.time()),
            "metadata": asked.get("metadata"),
        }
        if self._behaviour().batch_vanishes and request.transport:
            # The provider has taken it, and whoever sent it cannot know.
            request.transport.abort()
        return web.json_response(self._batches[batch])

    async def page(self, request: web.Request) -> web.Response:
        """Return a page of the batches, the newest first."""
        newest = sorted(self._batches, reverse=True)
        after, limit = request.query.get("after"), int(request.query.get("limit", "20"))
        start = newest.index(after) + 1 if after in newest else 0
        return web.json_response(
            {
                "object": "list",
                "data": [self._seen(batch) for batch in newest[start : start + limit]],
                "has_more": start + limit < len(newest),
            }
        )

    async def tell(self, request: web.Request) -> web.Response:
        """Return how far a batch has come."""
        batch = request.match_info["batch"]
        if batch not in self._batches:
            return _missing("batch")
        self.counts["looks"] += 1
        return web.json_response(self._seen(batch))

    async def cancel(self, request: web.Request) -> web.Response:
        """End a batch that is not due yet, without a reply."""
        batch = request.match_info["batch"]
        if batch not in self._batches:
            return _missing("batch")
        if self._batches[batch]["status"] not in ENDS:
            self._end(batch, "cancelled")
        return web.json_response(self._batches[batch])

    def _seen(self, batch: str) -> dict[str, Any]:
        known = self._batches[batch]
        if known["status"] not in ENDS:
            known["status"] = "in_progress"
            if time.monotonic() - self._created[batch] >= self._behaviour().batch_seconds:
                self._answer_all(batch)
        return known

    def _answer_all(self, batch: str) -> None:
        behaviour, known = self._behaviour(), self._batches[batch]
        if behaviour.batch_end == "failed":
            message = {"code": "invalid_request", "message": "The batch was refused.", "line": 1}
            self._end(batch, "failed", errors={"object": "list", "data": [message]})
            return
        replies: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        for line in self._files[known["input_file_id"]].splitlines():
            request = json.loads(line)
            drawn = uniform(behaviour.seed, "line", request["custom_id"], batch)
            if behaviour.batch_end != "completed" and drawn < behaviour.batch_left:
                continue
            reported_line = {"id": f"batch_req_{len(replies)}", "custom_id": request["custom_id"]}
            if drawn < behaviour.batch_errors:
                status, body = 500, {"error": {"message": "The server had an error."}}
            else:
                status, body = self._answer(request["body"])
            response = {"status_code": status, "request_id": "r", "body": body}
            kept = replies if status == 200 else errors
            kept.append({**reported_line, "response": response, "error": None})
        self.counts["lines"] += len(replies) + len(errors)
        files = {
            name: self._keep("".join(f"{json.dumps(line)}\n" for line in lines).encode())
            for name, lines in (("output_file_id", replies), ("error_file_id", errors))
            if lines
        }
        self._end(batch, behaviour.batch_end, **files)

    def _end(self, batch: str, state: str, **more: Any) -> None:
        self._batches[batch].update(status=state, **{f"{state}_at": int(time.time())}, **more)

    def _keep(self, content: bytes) -> str:
        file = f"file-{len(self._files) + 1:04}"
        self._files[file] = content
        return file


def _missing(what: str) -> web.Response:
    return _error(404, f"No such {what}.")


def _error(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "code": None, "param": None}
    return web.json_response({"error": error}, status=status)
