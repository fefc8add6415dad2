"""Pure functions from frames to frames, and the code that asks providers."""
