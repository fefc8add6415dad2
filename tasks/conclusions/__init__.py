"""Rules for findings: thresholds, cautions, position bias, exclusions."""
