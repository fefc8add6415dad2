"""Rows of the report that compare judges."""

from tasks.reporting.comparison_rows import _without_result


def test_people_without_a_result_are_counted_by_reason() -> None:
    rows = [
        {"judge": f"people/{name}", "who": f"people/{name}", "reason": reason}
        for name, reason in (("ann", "only ties"), ("ben", None), ("cat", "one order"))
    ]
    rows.append({**rows[0], "judge": "people/dan", "who": "people/dan"})
    assert _without_result(rows) == (
        "No result about position for 1 person. No result about position for 1 person: one order. "
        "No result about position for 2 people: only ties."
    )
    assert _without_result([]) == ""
