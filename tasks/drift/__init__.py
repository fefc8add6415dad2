"""Drift: changes between waves, their tests, and the alerts that they raise."""
