"""Unit of comparison: a judge, or a judge with one of several judge prompts."""

from collections.abc import Collection

BETWEEN = " / "


def unit_name(judge: str, prompt: str, prompts: Collection[str]) -> str:
    """Name a judge, with its prompt where there are several ``prompts``.

    >>> unit_name("openai/gpt", "pair_v2", ["pair_v2"])
    'openai/gpt'
    >>> unit_name("openai/gpt", "pair_v2", ["pair_v1", "pair_v2"])
    'openai/gpt / pair_v2'
    """
    return f"{judge}{BETWEEN}{prompt}" if len({*prompts}) > 1 else judge
