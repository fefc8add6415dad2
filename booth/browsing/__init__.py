"""The pages of `voirdire browse`: the comparisons behind results, read from the warehouse."""
