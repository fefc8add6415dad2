"""Calibration against people: the alternative annotator test, agreement, and its planner."""
