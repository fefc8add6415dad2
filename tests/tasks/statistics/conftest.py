from collections.abc import Callable, Sequence
from typing import Any

import pytest


@pytest.fixture(scope="session")
def votes() -> Callable[..., list[dict[str, Any]]]:
    """Return a factory of votes: of each sample a pair, with the anchor and the target first."""

    def make(
        pairs: Sequence[tuple[str | None, str | None]],
        cluster: Sequence[str] | None = None,
        **more: object,
    ) -> list[dict[str, Any]]:
        return [
            {
                "sample": f"s{number:03}", "shown_first": side, "choice": choice,
                "cluster": cluster[number] if cluster else f"s{number:03}", **more,
            }
            for number, pair in enumerate(pairs)
            for side, choice in zip(("anchor", "target"), pair, strict=True)
        ]  # fmt: skip

    return make
