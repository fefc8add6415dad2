"""Provider batches: files of requests, answered together within a day at a lower price.

A line holds the body that a single call would send, and its response is read like a call's.
The format is OpenAI's: https://platform.openai.com/docs/guides/batch.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from tasks.engine.client import (
    call_error,
    current_slot,
    litellm_call,
    max_bytes_without_slot,
    request_of,
    send,
    with_timeout,
)
from tasks.engine.journal import CallError, Reply, parsed
from tasks.engine.litellm_adapter import load_litellm, price_of, reply_of
from tasks.engine.queue import RequestSlot
from tasks.kit.printable import redact
from tasks.providers import Judge, Provider

ENDPOINT = "/v1/chat/completions"
MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000
"""Limits of a file at OpenAI and Azure."""

KEY = "voirdire_batch"
"""Name of our key in a batch's metadata."""

FILE_SECONDS = 600.0
"""Timeout of uploading or downloading a file."""

MAX_FILE_BYTES = 500_000_000
"""Limit of a batch's replies: ten thousand bytes for each of 50 000."""

PAGE = 100
"""Batches per page of the provider's list, OpenAI's maximum."""

CONNECTION = ("api_base", "api_key", "api_version", "organization")
"""Parameters of a judge that concern the connection, not the request."""

NO_SUCH_ADDRESS = {404, 405, 501}
"""Status codes of an address that has no files, so no batches."""

NO_BATCHES = (
    "its provider takes no batches at this address: set mode = 'live' for the judge, or correct "
    "api_base in its provider's file"
)

END_STATES = {"completed", "failed", "expired", "cancelled"}


class BatchStatus(NamedTuple):
    """The state of a batch at its provider."""

    provider_batch: str
    state: str
    """``waiting``, ``completed``, ``failed``, ``expired`` or ``cancelled``."""
    error: str | None = None
    files: tuple[str, ...] = ()
    """Ids of the files of replies and errors, if there are any."""
    seconds: float = 0.0
    """Time from its creation to its end."""


class _Previewed(BaseException):
    """A request was stopped before it was sent.

    litellm logs an Exception as a failed call, which takes three times as long as the request.
    """


class RequestPreview(RequestSlot):
    """A slot that keeps the body of the request and stops it before it is sent."""

    def __init__(self) -> None:
        super().__init__(self._stop, lambda: None)
        self.body: bytes | None = None

    async def send(self, body: bytes) -> None:
        """Keep the body, and send nothing."""
        self.body = body
        await self._stop()

    async def _stop(self) -> None:
        raise _Previewed


async def preview_body(request: dict[str, Any], judge: Judge) -> bytes | None:
    """Return the body that a request would send; null if it was sent without asking the slot.

    Raise Exception if litellm refuses it.
    """
    preview = RequestPreview()
    try:
        with suppress(_Previewed):
            await send(request, judge, preview)
    finally:
        # What this task sends later is no preview.
        current_slot.set(None)
    return preview.body


async def request_body(
    provider: Provider, judge: Judge, messages: list[dict[str, str]], params: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the body that a single call would send, and the parameters that are left out.

    Raise CallError if litellm refuses the request, or it needs headers or a query besides its body.
    """
    request, dropped = request_of(provider, judge, messages, params)
    if beyond := sorted({"extra_headers", "extra_query"} & set(request)):
        raise CallError(f"a batch cannot send {', '.join(beyond)}", transient=False)
    body = await with_timeout(preview_body(request, judge), provider, provider.timeout_seconds)
    if body is None:
        raise CallError(
            "litellm sent a request that was to be previewed only", transient=False, free=False
        )
    return json.loads(body), dropped


def request_line(ballot_id: str, body: dict[str, Any]) -> bytes:
    """Return the line with the request of one ballot."""
    line = {"custom_id": ballot_id, "method": "POST", "url": ENDPOINT, "body": body}
    return json.dumps(line).encode() + b"\n"


def split(lines: dict[str, bytes]) -> Iterator[list[str]]:
    """Divide ballots among files within the provider's limits."""
    part: list[str] = []
    size = 0
    for ballot_id, line in lines.items():
        if part and (len(part) == MAX_REQUESTS or size + len(line) > MAX_BYTES):
            yield part
            part, size = [], 0
        part.append(ballot_id)
        size += len(line)
    if part:
        yield part


async def upload(provider: Provider, judge: Judge, batch: str, content: bytes) -> str:
    """Upload a file to the provider; return its id."""
    file = (f"{batch}.jsonl", content, "application/jsonl")
    try:
        uploaded = await _call(
            "acreate_file", provider, judge, file=file, purpose="batch", timeout=FILE_SECONDS
        )
    except CallError as error:
        if getattr(error.__cause__, "status_code", None) not in NO_SUCH_ADDRESS:
            raise
        raise CallError(f"{NO_BATCHES} ({error})", transient=False) from error
    return str(uploaded.id)


async def create(provider: Provider, judge: Judge, batch: str, file: str) -> str:
    """Create a batch from an uploaded file; return its id at the provider."""
    created = await _call(
        "acreate_batch",
        provider,
        judge,
        completion_window="24h",
        endpoint=ENDPOINT,
        input_file_id=file,
        metadata={KEY: batch},
    )
    return str(created.id)


async def find(provider: Provider, judge: Judge, batch: str) -> str | None:
    """Return the provider's id of the batch with our key; null if there is none."""
    page = await _call("alist_batches", provider, judge, limit=PAGE)
    while True:
        for listed in page.data:
            if (listed.metadata or {}).get(KEY) == batch:
                return str(listed.id)
        if not page.has_next_page():
            return None
        page = await with_timeout(page.get_next_page(), provider, provider.timeout_seconds)


async def status_of(provider: Provider, judge: Judge, provider_batch: str) -> BatchStatus:
    """Return the state of a batch."""
    found = await _call("aretrieve_batch", provider, judge, batch_id=provider_batch)
    if found.status not in END_STATES:
        return BatchStatus(provider_batch, "waiting")
    files = tuple(file for file in (found.output_file_id, found.error_file_id) if file)
    ends = (found.completed_at, found.expired_at, found.cancelled_at, found.failed_at)
    ended_at = next((moment for moment in ends if moment), found.created_at)
    return BatchStatus(
        provider_batch,
        found.status,
        _reasons(found, provider),
        files,
        max(0.0, ended_at - found.created_at),
    )


async def download(provider: Provider, judge: Judge, file: str) -> bytes:
    """Return the content of a file at the provider."""
    max_bytes_without_slot.set(MAX_FILE_BYTES)
    found = await _call("afile_content", provider, judge, file_id=file, timeout=FILE_SECONDS)
    content: bytes = found.content
    return content


def read_lines(content: bytes, ballots: set[str]) -> dict[str, dict[str, Any] | str]:
    """Return each ballot's response body, or the reason why it has none, from a batch's files.

    Lines of other ballots and invalid lines are ignored. If a ballot has several lines, a reply
    takes precedence over an error, and an earlier line over a later one.
    """
    found: dict[str, dict[str, Any] | str] = {}
    for line in content.splitlines():
        answer = parsed(line)
        ballot_id = answer.get("custom_id") if isinstance(answer, dict) else None
        if isinstance(ballot_id, str) and ballot_id in ballots:
            outcome = _outcome(answer)
            if isinstance(found.get(ballot_id, ""), str) and isinstance(outcome, dict):
                found[ballot_id] = outcome
            found.setdefault(ballot_id, outcome)
    return found


def replies(
    provider: Provider, judge: Judge, status: BatchStatus, contents: list[bytes], ballots: list[str]
) -> dict[str, Reply]:
    """Return the reply, or the error, of each ballot of a batch that has ended."""
    lines = read_lines(b"\n".join(contents), set(ballots))
    missing = "its batch came back without a line for it"
    if status.state != "completed":
        missing = f"its batch {'was cancelled' if status.state == 'cancelled' else status.state}"
        missing = f"{missing}: {status.error}" if status.error else missing
    return {
        ballot_id: _reply(provider, judge, lines.get(ballot_id, missing), status.seconds)
        for ballot_id in ballots
    }


def read_reply(body: dict[str, Any], provider: Provider, judge: Judge, seconds: float) -> Reply:
    """Read a response body of a batch as the response of a single call is read.

    Raise CallError if it is not a completion.
    """
    try:
        litellm = load_litellm()
        response = litellm.convert_to_model_response_object(
            response_object=body, model_response_object=litellm.ModelResponse()
        )
        return reply_of(response, seconds, judge)
    except Exception as error:
        raise call_error(error, provider) from error


def _reply(
    provider: Provider, judge: Judge, outcome: dict[str, Any] | str, seconds: float
) -> Reply:
    if isinstance(outcome, str):
        return Reply("", error=redact(outcome, provider.secret_variables)[:500])
    try:
        reply = read_reply(outcome, provider, judge, seconds)
    except CallError as error:
        return Reply("", error=f"its reply cannot be read: {error}")
    if judge.usd_per_million:
        return reply
    price = price_of(judge, simulated=False)
    if price is None or reply.prompt_tokens is None or reply.completion_tokens is None:
        return reply._replace(cost_usd=None)
    cost = reply.prompt_tokens * price.prompt + reply.completion_tokens * price.completion
    return reply._replace(cost_usd=cost)


def _outcome(line: dict[str, Any]) -> dict[str, Any] | str:
    response, error = line.get("response"), line.get("error")
    if not isinstance(response, dict):
        return f"the provider gave no reply: {_message(error)}"
    status, body = response.get("status_code"), response.get("body")
    if status != 200:
        inner = body.get("error") if isinstance(body, dict) else body
        return f"the provider answered {status}: {_message(inner or error)}"
    return body if isinstance(body, dict) else "the provider's reply holds no body"


def _message(error: Any) -> str:
    """Return the message of an error in any of its forms."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("code")
    return str(error) if error else "no reason given"


def _reasons(found: Any, provider: Provider) -> str | None:
    """Return why a whole batch failed; null if the provider gives no reason."""
    errors = getattr(found.errors, "data", None) or []
    return (
        "; ".join(
            redact(str(error.message), provider.secret_variables)[:500] for error in errors[:3]
        )
        or None
    )


async def _call(
    verb: str, provider: Provider, judge: Judge, timeout: float | None = None, **arguments: Any
) -> Any:
    connection = {name: judge.params[name] for name in CONNECTION if name in judge.params}
    route = judge.model.split("/", maxsplit=1)[0]
    arguments |= {"custom_llm_provider": route, "max_retries": 0, **connection}
    arguments["timeout"] = timeout or provider.timeout_seconds
    return await litellm_call(verb, provider, **arguments)
