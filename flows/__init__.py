"""Flows and what runs them."""
