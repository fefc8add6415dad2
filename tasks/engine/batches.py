"""Provider batches: ballots as lines of a file, answered together at a lower price.

What a batch holds is what single calls would send, and what comes back is read as their replies.
The form is OpenAI's: https://platform.openai.com/docs/guides/batch.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tasks.engine.client import guarded, litellm_call, preview_body, read_reply, request_of
from tasks.engine.http import most_bytes_of_call
from tasks.engine.journal import CallError, Reply
from tasks.engine.litellm_adapter import price_of
from tasks.kit.printable import redact
from tasks.providers import Judge, Provider

ENDPOINT = "/v1/chat/completions"
MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
"""Of one file, as OpenAI and Azure take it."""

KEY = "voirdire_batch"
"""Name of our own key in a batch's metadata."""

FILE_SECONDS = 600.0
"""For a file to go up or come down."""

FILE_BYTES = 500_000_000
"""Of the replies of a batch: ten thousand bytes for each of 50 000."""

PAGE = 100
"""Batches per page of the provider's list: the most that OpenAI gives."""

CONNECTION = ("api_base", "api_key", "api_version", "organization")
"""Parameters of a judge that say where a call goes, not what is sent."""

ENDS = {"completed", "failed", "expired", "cancelled"}


class Seen(NamedTuple):
    """A batch as its provider tells of it."""

    provider_batch: str
    state: str
    """``waiting``, ``completed``, ``failed``, ``expired`` or ``cancelled``."""
    error: str | None = None
    files: tuple[str, ...] = ()
    """Of replies and of errors, as far as there are any."""
    seconds: float = 0.0
    """From its creation to its end."""


async def request_body(
    provider: Provider, judge: Judge, messages: list[dict[str, str]], params: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the body that a single call would send, and the parameters that it would not.

    Raises
    ------
    CallError
        If litellm would refuse to send it, or it needs more than a body.
    """
    request, dropped = request_of(provider, judge, messages, params)
    if beyond := sorted({"extra_headers", "extra_query"} & set(request)):
        raise CallError(f"a batch cannot send {', '.join(beyond)}", passing=False)
    body = await guarded(preview_body(request, judge), provider, provider.timeout_seconds)
    return body, dropped


def request_line(ballot_id: str, body: dict[str, Any]) -> bytes:
    """Return the line that asks one ballot."""
    line = {"custom_id": ballot_id, "method": "POST", "url": ENDPOINT, "body": body}
    return json.dumps(line).encode() + b"\n"


def split(lines: dict[str, bytes]) -> Iterator[list[str]]:
    """Divide ballots among files that the provider takes."""
    part: list[str] = []
    size = 0
    for ballot_id, line in lines.items():
        if part and (len(part) == MOST_REQUESTS or size + len(line) > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(ballot_id)
        size += len(line)
    if part:
        yield part


async def upload(provider: Provider, judge: Judge, batch: str, content: bytes) -> str:
    """Bring a file to the provider; return its id."""
    file = (f"{batch}.jsonl", content, "application/jsonl")
    told = await _ask(
        "acreate_file", provider, judge, file=file, purpose="batch", timeout=FILE_SECONDS
    )
    return str(told.id)


async def create(provider: Provider, judge: Judge, batch: str, file: str) -> str:
    """Have the provider answer a file; return the id of its batch."""
    told = await _ask(
        "acreate_batch",
        provider,
        judge,
        completion_window="24h",
        endpoint=ENDPOINT,
        input_file_id=file,
        metadata={KEY: batch},
        timeout=provider.timeout_seconds,
    )
    return str(told.id)


async def find(provider: Provider, judge: Judge, batch: str) -> str | None:
    """Return the provider's id of a batch of ours; null if it has none of that key."""
    page = await _ask(
        "alist_batches", provider, judge, limit=PAGE, timeout=provider.timeout_seconds
    )
    while True:
        for told in page.data:
            if (told.metadata or {}).get(KEY) == batch:
                return str(told.id)
        if not page.has_next_page():
            return None
        page = await guarded(page.get_next_page(), provider, provider.timeout_seconds)


async def look(provider: Provider, judge: Judge, provider_batch: str) -> Seen:
    """Return how far a batch has come."""
    told = await _ask(
        "aretrieve_batch",
        provider,
        judge,
        batch_id=provider_batch,
        timeout=provider.timeout_seconds,
    )
    if told.status not in ENDS:
        return Seen(provider_batch, "waiting")
    files = tuple(file for file in (told.output_file_id, told.error_file_id) if file)
    ends = (told.completed_at, told.expired_at, told.cancelled_at, told.failed_at)
    ended_at = next((moment for moment in ends if moment), told.created_at)
    return Seen(
        provider_batch,
        told.status,
        _reasons(told, provider),
        files,
        max(0.0, ended_at - told.created_at),
    )


async def download(provider: Provider, judge: Judge, file: str) -> bytes:
    """Return the content of a file at the provider."""
    most_bytes_of_call.set(FILE_BYTES)
    told = await _ask("afile_content", provider, judge, file_id=file, timeout=FILE_SECONDS)
    content: bytes = told.content
    return content


def read_lines(content: bytes, ballots: set[str]) -> dict[str, dict[str, Any] | str]:
    """Read output or error lines: each ballot's reply, or the reason why it has none.

    Lines of other ballots and lines that are none of a batch are left out. Of two lines of one
    ballot a reply comes before an error, and the first before the second.
    """
    found: dict[str, dict[str, Any] | str] = {}
    for line in content.splitlines():
        told = _parsed(line)
        ballot_id = told.get("custom_id")
        if isinstance(ballot_id, str) and ballot_id in ballots:
            outcome = _outcome(told)
            if isinstance(found.get(ballot_id, ""), str) and isinstance(outcome, dict):
                found[ballot_id] = outcome
            found.setdefault(ballot_id, outcome)
    return found


def replies(
    provider: Provider, judge: Judge, seen: Seen, contents: list[bytes], ballots: list[str]
) -> dict[str, Reply]:
    """Return what came of each ballot of a batch that has ended."""
    lines = read_lines(b"\n".join(contents), set(ballots))
    silent = "its batch came back without a line for it"
    if seen.state != "completed":
        silent = f"its batch {'was cancelled' if seen.state == 'cancelled' else seen.state}"
        silent = f"{silent}: {seen.error}" if seen.error else silent
    return {
        ballot_id: _reply(provider, judge, lines.get(ballot_id, silent), seen.seconds)
        for ballot_id in ballots
    }


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


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


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
    """Return what an error says, whatever its form."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("code")
    return str(error) if error else "no reason given"


def _reasons(told: Any, provider: Provider) -> str | None:
    """Return why a batch failed as a whole, as far as the provider says."""
    errors = getattr(told.errors, "data", None) or []
    return (
        "; ".join(
            redact(str(error.message), provider.secret_variables)[:500] for error in errors[:3]
        )
        or None
    )


async def _ask(verb: str, provider: Provider, judge: Judge, **words: Any) -> Any:
    where = {name: judge.params[name] for name in CONNECTION if name in judge.params}
    route = judge.model.split("/", maxsplit=1)[0]
    return await litellm_call(
        verb, provider, custom_llm_provider=route, max_retries=0, **where, **words
    )
