from datetime import UTC, datetime

import polars as pl

from tasks.drift.replies import reply_changes


def test_each_wave_is_compared_with_the_one_that_was_voted_on_before() -> None:
    nights = [
        ("ada", "n9", 1, None, None),  # the name of a wave says nothing of its time
        ("ada", "n1", 2, "m", "f1"),  # nothing was known before
        ("ada", "n2", 3, "m", "f2"),
        ("ada", "n3", 4, "m2", "f3"),
        ("bea", "n3", 5, "m", "f1"),  # of another judge
    ]
    columns = ("judge", "wave", "first_vote", "models", "fingerprints")
    waves = pl.DataFrame(
        [dict(zip(columns, night, strict=True)) for night in nights], infer_schema_length=None
    ).with_columns(
        prompt=pl.lit("p"),
        first_vote=pl.col("first_vote").map_elements(
            lambda day: datetime(2024, 1, day, tzinfo=UTC), pl.Datetime(time_zone="UTC")
        ),
    )
    assert reply_changes(waves).select("judge", "wave", "notice").rows() == [
        ("ada", "n2", "another fingerprint"),
        ("ada", "n3", "another model"),
    ]
