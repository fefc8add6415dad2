"""Ids that depend on content alone."""

import hashlib
import json

LENGTH = 32


def content_key(*parts: object) -> str:
    """Return 128 bits of SHA-256 over the JSON of ``parts``, as hex.

    >>> content_key("a", "bc") == content_key("ab", "c")
    False
    """
    packed = json.dumps(parts, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(packed.encode()).hexdigest()[:LENGTH]
