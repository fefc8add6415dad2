"""The pairs behind results: examples, and links to their pages."""
