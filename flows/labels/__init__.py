"""Labels of people and judges, and what is known of the items, for a calibration."""
