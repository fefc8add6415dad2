"""Statistical inference for many cells at once; the cluster is the unit."""
