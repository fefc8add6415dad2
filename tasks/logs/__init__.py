"""Logs of other tools: recognised, read, described, and counted for statistics."""
