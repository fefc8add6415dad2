"""Defaults of methods.md, section 15, in one place."""

FEWEST_CLUSTERS = 10
"""Below so many independent questions estimates are shown, and no verdict is told of them."""

TOO_FEW = f"fewer than {FEWEST_CLUSTERS} independent questions"
