"""Why no judge could be held against anybody, and what to do about it."""

from collections.abc import Mapping

import polars as pl

from tasks.scorings._labels import Kind

NEEDED: Mapping[Kind, str] = {
    "text": "names or numbers", "number": "numbers", "set": "lists of names",
    "any": "labels of any kind",
}  # fmt: skip


def why_untested(
    humans: pl.DataFrame,
    judges: pl.DataFrame,
    advantages: pl.DataFrame,
    unreadable: Mapping[str, int],
    *,
    metric: str,
    kind: Kind,
    least: int,
) -> str:
    """Return the problem and the next step, where no judge has a p against any annotator.

    Parameters
    ----------
    humans, judges
        ``annotator`` and ``item`` of each label, readable or not.
    advantages
        What came of each judge and annotator: ``n``, and ``unreadable`` labels of the annotator.
    unreadable
        Labels of each judge that cannot be read.
    """
    people = {
        str(name): (count, lost)
        for name, count, lost in _counts(humans)
        .join(advantages.group_by("annotator").agg(pl.col("unreadable").max()), on="annotator")
        .sort("annotator").rows()
    }  # fmt: skip
    known = [name for name, (count, lost) in people.items() if count > lost]
    lost = sum(each for _, each in people.values())
    gave, missing = _counts(judges)["count"].sum(), sum(unreadable.values())
    if not known or missing >= gave:
        whose, option = ("a judge", "judges") if known else ("people", "humans")
        if not (missing if known else lost):
            return f"there is no label of {whose}. Give a file with some by --{option}."
        return (
            f"no label of {whose} can be read as metric {metric} takes it ({NEEDED[kind]}): {lost} "
            f"labels of people and {missing} of judges cannot. Choose another --metric (see "
            "`voirdire list`), or mend the labels."
        )
    if len(known) < 2:
        return (
            f"only {known[0]!r:.60} has labelled: the test holds a judge against one person in the "
            "eyes of others, so it takes two people, and three to be trusted. Add labels of more."
        )
    most = int(advantages["n"].sort()[-1])
    if not most:
        both = humans.select("item").unique().join(judges.select("item").unique(), on="item")
        return (
            f"no item has a label of a judge and of two people ({both.drop_nulls().height} items "
            "have one of a judge and of a person). Are items named alike on both sides? If so, "
            "let several people label what the judge labelled."
        )
    return (
        f"no annotator has {least} instances with a label of a judge and of another person (the "
        f"most is {most}). Let people label more items, or lower --min-instances."
    )


def _counts(labels: pl.DataFrame) -> pl.DataFrame:
    """Count the labels of each annotator."""
    return labels.group_by("annotator").agg(count=pl.col("item").count())
