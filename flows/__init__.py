"""The stories: flows wire the stages together, and only they touch the warehouse."""
