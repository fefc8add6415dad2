"""Shared tools: catalogues, cached stages, random numbers, defaults, the command line."""
