"""Counts that statistics start from: votes by arm and order, verdicts, shifts, annotations."""
