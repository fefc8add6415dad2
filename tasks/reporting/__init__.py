"""The report: its sections, wording and templates."""
