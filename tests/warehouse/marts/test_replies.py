from collections.abc import Callable
from datetime import UTC, datetime

from flows.results.drift import reply_changes_of
from flows.studies import Study
from schemas.conclusions import ReplyChanges
from schemas.judging import Ballots, Votes
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_a_changed_fingerprint_is_a_notice(stocked: Warehouse, make: Make) -> None:
    nights = [("n1", "m", "f1"), ("n2", "m", "f1"), ("n3", "m", "f2"), ("n4", "m2", "f2")]
    ballots = [{"ballot_id": wave, "wave": wave} for wave, *_ in nights]
    votes = [
        {
            "ballot_id": wave,
            "model": model,
            "fingerprint": fingerprint,
            "raw": "x" * day,
            "completion_tokens": 10 * day,
            "seconds": float(day),
            "cast_at": datetime(2024, 1, day, tzinfo=UTC),
        }
        for day, (wave, model, fingerprint) in enumerate(nights, 2)
    ]
    stocked.save([make(Ballots, *ballots), make(Votes, *votes)], run="r2")
    study = Study(judges=["offline/honest"], prompts=["pair_v1"], wave="n4")
    stocked.save([Saving(ReplyChanges, reply_changes_of(study, stocked))], run="r2", study="quick")
    found = stocked.query(
        "select wave, votes, models, fingerprints, median_seconds, mean_characters, mean_tokens, "
        "notice from mart.replies where wave <> '' order by wave"
    )
    # The stocked vote, of wave '', reports no model, so it has nothing to be compared with.
    assert found.rows()[1:] == [
        ("n2", 1, ["m"], ["f1"], 3.0, 3.0, 30.0, None),
        ("n3", 1, ["m"], ["f2"], 4.0, 4.0, 40.0, "another fingerprint"),
        ("n4", 1, ["m2"], ["f2"], 5.0, 5.0, 50.0, "another model"),
    ]
