"""The booth: the page where people vote on the pairs of a study."""
