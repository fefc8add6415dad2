"""Shorten commands that messages print."""

import re

WAREHOUSE = re.compile(r" --warehouse ('[^']*'|[^`\s]+)(?=`)")


def in_short(text: str) -> str:
    """Return a text without the warehouse that is added to the commands in it."""
    return WAREHOUSE.sub("", text)
