"""The engine's HTTP clients, which live as long as the worker, closed after a test."""

from tasks.engine import client
from tasks.engine.litellm_adapter import load_litellm


async def close_clients() -> None:
    """Close the connections to all providers."""
    while client._clients:
        await client._clients.popitem()[1].client.aclose()
    if load_litellm.cache_info().currsize:
        load_litellm().aclient_session = None
