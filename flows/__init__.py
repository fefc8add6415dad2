"""Flows, and the code that runs them."""
