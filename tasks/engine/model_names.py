"""Find models whose name does not tell litellm the provider, without a call.

``python -m tasks.engine.model_names`` reads JSON ``[model]`` from standard input and writes those
for which litellm knows no provider.
"""

import json
import sys
from collections.abc import Sequence

from tasks.engine.litellm_adapter import from_process, has_route, load_litellm


def without_provider(models: Sequence[str]) -> list[str]:
    """Return the models for which litellm knows no provider, so that every call would fail.

    Another process imports litellm, and only if a name does not begin with a usual provider.

    Raise RuntimeError if that process fails.
    """
    doubtful = sorted({model for model in models if not has_route(model)})
    if not doubtful:
        return []
    what = "looking up the providers of models"
    found: list[str] = from_process(__name__, json.dumps(doubtful), what)
    return found


def _is_unknown(model: str) -> bool:
    litellm = load_litellm()
    try:
        litellm.get_llm_provider(model=model)
    except litellm.exceptions.BadRequestError:
        return True
    return False


if __name__ == "__main__":
    unknown = [model for model in json.load(sys.stdin) if _is_unknown(model)]
    sys.stdout.write(json.dumps(unknown) + "\n")
