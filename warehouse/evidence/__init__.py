"""Queries for what lies behind results: comparisons, waves, and the pairs and votes of people."""

NEWER_WAVES = """
    with waves as (
        select parameters->>'wave' as wave, min(started_at) as began from runs
        where study = $study and flow = 'audit' and state = 'completed'
        group by wave
    )
    select wave from waves
    where began > (select began from waves where wave = $wave) order by began
"""
"""The waves of a study that began after one of its waves, the newest last."""
