"""From votes in the warehouse to results, and from files of votes or labels."""
