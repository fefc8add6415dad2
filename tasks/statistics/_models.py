"""The judges that are no people."""

from typing import cast

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts, Tallies

JUDGE = ("dataset", "judge")


def people_of(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return ``dataset`` and ``judge`` of each judge that is a person."""
    person = tallies.filter(pl.col("human").fill_null(value=False))
    return person.select(pl.col(JUDGE).cast(pl.String)).unique()


def of_models(shifts: DataFrame[Shifts], tallies: DataFrame[Tallies]) -> DataFrame[Shifts]:
    """Return the shifts of judges that are no person; ``tallies`` tell who is one."""
    people = people_of(tallies)
    judges = shifts.select(JUDGE).unique().select(pl.col(JUDGE).cast(pl.String))
    if judges.join(people, on=JUDGE, how="semi").is_empty():
        return shifts
    names = [pl.col(name).cast(pl.String) for name in JUDGE]
    models = shifts.join(people, left_on=names, right_on=JUDGE, how="anti")
    return cast("DataFrame[Shifts]", models)
