"""The rules of findings: thresholds, cautions, position bias, exclusions, gates."""
