"""The DuckDB warehouse."""
