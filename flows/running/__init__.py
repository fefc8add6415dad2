"""Code that runs a flow: run record, casting, recovery, progress, stopping."""
