"""Reports, artifacts and exports."""
