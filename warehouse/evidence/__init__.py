"""Queries for what lies behind results."""
