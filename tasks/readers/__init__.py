"""Readers of files from outside, which are bounded and trust nothing."""
