"""The shelves: every frame in one DuckDB file, and SQL views on them."""
