"""Redaction of secrets and of terminal control sequences."""

import os

from collections.abc import Iterable

SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD")
"""Ends of the parts of a variable's name, if the variable holds a secret."""

AUTHENTICATION = "PREFECT_API_AUTH_STRING"
"""Variable of the authentication string of the Prefect server, which runs code as us."""

SHORTEST = 4
"""A shorter value would be found in the middle of words."""


def redact(text: str, variables: Iterable[str] = ()) -> str:
    """Replace the values of environment variables that are named like keys, or among ``variables``.

    Characters that cannot be seen (escapes, marks of direction) are written out, and it is one
    line. Whoever shortens a text does it afterwards: the half of a key would not be found.
    """
    names = {*variables, *(name for name in os.environ if _is_secret(name))}
    secrets = {os.environ.get(name, "").strip() for name in names if name}
    # One may begin with another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "[key]") if len(secret) >= SHORTEST else text
    line = text if text.isprintable() else " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _is_secret(name: str) -> bool:
    return name == AUTHENTICATION or any(part.endswith(SECRETS) for part in name.upper().split("_"))
