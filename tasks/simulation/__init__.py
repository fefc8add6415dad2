"""Simulated judges, simulated studies, and an emulated provider."""
