"""Words for pass and for fail, as people and tools write them."""

VERDICTS = (
    ("pass", "fail"),
    ("passed", "failed"),
    ("true", "false"),
    ("yes", "no"),
    ("y", "n"),
    ("1", "0"),
    ("correct", "incorrect"),
    ("good", "bad"),
    ("right", "wrong"),
    ("accept", "reject"),
    ("accepted", "rejected"),
    ("acceptable", "unacceptable"),
)
"""Words for pass and for fail, in lower case."""

PASS_WORDS = {word: word == good for good, bad in VERDICTS for word in (good, bad)}
"""Word -> whether it means a pass."""
