"""Simulated judges, and an emulated provider."""
