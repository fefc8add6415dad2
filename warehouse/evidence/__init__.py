"""Queries for what lies behind results: comparisons, and the pairs and votes of people."""
