"""The emulator of a provider with more that tests and benchmarks need.

It has a batch endpoint, models that answer like a synthetic judge, keys, and refusals; and its
behaviour can be changed while it runs (``POST /behaviour``).
``python tests/support/emulated_provider.py --port 8080`` serves it on loopback.
"""

import sys
from typing import Any, Literal

from aiohttp import web
from emulated_batches import Batches
from pydantic import Field

from tasks.simulation import emulator
from tasks.simulation.emulator import Emulator, error_body
from tasks.simulation.judge import answer
from tasks.simulation.traits import Traits


class Behaviour(emulator.Behaviour):
    """How the provider behaves."""

    key: str = ""
    """The only API key that is accepted; empty: all are."""
    models: list[str] = []
    """The only models that there are; empty: any."""
    context: int = 0
    """Words that fit into the model; 0: any number."""
    forbidden: str = ""
    """A prompt with this text breaks the content policy."""
    traits: dict[str, Traits] = {}
    """Model -> the synthetic judge that answers for it; others answer by a hash of the request. A
    change while it runs is a model that changes without notice."""
    vary: bool = False
    """Draw every reply of a model with ``traits`` anew, as above temperature 0; else the same
    request gets the same reply. Which it is depends on ``seed`` and how often it was asked."""
    batch_seconds: float = Field(default=0.0, ge=0)
    """From the creation of a batch to its end."""
    batch_errors: float = Field(default=0.0, ge=0, le=1)
    """Chance that a line of a batch fails."""
    batch_end: Literal["completed", "failed", "expired", "cancelled"] = "completed"
    """How batches end."""
    batch_left: float = Field(default=0.5, ge=0, le=1)
    """Share of its lines that a batch leaves out if it expires or is cancelled."""
    batch_vanishes: bool = False
    """Drop the connection when a batch has been created."""


class EmulatedProvider(Emulator):
    """The emulator with batches, synthetic judges and refusals."""

    behaviour: Behaviour

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour)
        self.batches = Batches(lambda: self.behaviour, self._answer)

    def app(self) -> web.Application:
        """Return the routes."""
        app = super().app()
        self.batches.add_routes(app.router)
        app.router.add_post("/behaviour", self.change)
        return app

    def all_counts(self) -> dict[str, Any]:
        """Return the counts since the start, with those of batches."""
        return {**super().all_counts(), **self.batches.counts}

    async def change(self, request: web.Request) -> web.Response:
        """Change the behaviour."""
        changes = await request.json()
        self.behaviour = Behaviour(**{**self.behaviour.model_dump(), **changes})
        return web.json_response(self.behaviour.model_dump())

    def _refuse(self, request: web.Request, body: dict[str, Any]) -> web.Response | None:
        key = self.behaviour.key
        if key and request.headers.get("Authorization") != f"Bearer {key}":
            return self._error(401, "Incorrect API key provided.", "invalid_api_key")
        return super()._refuse(request, body)

    def _refusal(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        rules = self.behaviour
        if refusal := super()._refusal(body):
            return refusal
        text = " ".join(str(message["content"]) for message in body["messages"])
        if rules.models and body["model"] not in rules.models:
            message = f"The model {body['model']} does not exist."
            return 404, error_body(message, "model_not_found")
        if rules.forbidden and rules.forbidden in text:
            return 400, error_body("Flagged by the content policy.", "content_policy_violation")
        if rules.context and len(text.split()) > rules.context:
            message = f"This model's maximum context length is {rules.context} tokens."
            return 400, error_body(message, "context_length_exceeded")
        return None

    def _verdict(self, request: dict[str, Any], body: str) -> str:
        traits = self.behaviour.traits.get(request["model"])
        if traits is None:
            return super()._verdict(request, body)
        repeat = request.get("seed", 0)
        if self.behaviour.vary:
            repeat += self.behaviour.seed + self.prompts[hash(body)]
        return answer(request["messages"], traits, repeat)

    def _answer(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Answer a line of a batch, by the same rules as a request of its own."""
        refusal = self._refusal(request)
        if refusal:
            return refusal
        return 200, self._reply(request)


if __name__ == "__main__":
    port = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 0
    emulator.run(EmulatedProvider(Behaviour()), port)
