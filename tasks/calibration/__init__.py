"""May a judge replace people? The alternative annotator test, agreement, and its planner."""
