"""Redaction of secrets and of terminal control sequences."""

import os

from tasks.providers import Provider

SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD")
"""What a part of a variable's name ends with, if the variable holds a secret."""

LETS_IN = "PREFECT_API_AUTH_STRING"
"""Variable of what lets in to the Prefect server that runs code as us."""

SHORTEST = 4
"""What is shorter would be found in the middle of words."""


def redact(text: str, provider: Provider | None = None) -> str:
    """Replace what environment variables hold that are named like keys, or that a provider needs.

    Characters that cannot be seen (escapes, marks of direction) are written out, and it is one
    line. Whoever shortens a text does it afterwards: the half of a key would not be found.
    """
    needed = [provider.key_variable, *provider.variables] if provider else []
    names = {*needed, *(name for name in os.environ if _is_secret(name))}
    secrets = {os.environ.get(name, "").strip() for name in names if name}
    # One may begin with another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "[key]") if len(secret) >= SHORTEST else text
    line = text if text.isprintable() else " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _is_secret(name: str) -> bool:
    return name == LETS_IN or any(part.endswith(SECRETS) for part in name.upper().split("_"))
