"""Ratings of single answers: means over repeats, arms side by side, worst cases."""
