"""Pure functions from frames to frames, and what asks providers."""
