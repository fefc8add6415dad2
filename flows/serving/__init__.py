"""The Prefect server: finding, starting and guarding it; deployments and schedules."""
