"""Notices that another model, or another fingerprint of it, replied than in the wave before."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import ReplyChanges

MODEL, FINGERPRINT = "another model", "another fingerprint"


def reply_changes(waves: pl.DataFrame) -> DataFrame[ReplyChanges]:
    """Compare what replied in each wave with the judge's wave before; a notice, never an alert.

    Parameters
    ----------
    waves
        One row per ``judge``, ``prompt`` and ``wave``: its ``models`` and ``fingerprints``, each as
        one text (null if no reply names one), and ``first_vote``, by which waves are ordered.
    """
    ordered = waves.sort("judge", "prompt", "first_vote", "wave")
    changed = {
        what: (pl.col(what) != pl.col(what).shift().over("judge", "prompt")).fill_null(value=False)
        for what in ("models", "fingerprints")
    }
    notice = (
        pl.when(changed["models"])
        .then(pl.lit(MODEL))
        .when(changed["fingerprints"])
        .then(pl.lit(FINGERPRINT))
    )
    return ReplyChanges.of(ordered.with_columns(notice=notice).drop_nulls("notice"))
