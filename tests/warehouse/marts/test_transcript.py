from itertools import product

from warehouse.store import Warehouse


def test_a_ballot_belongs_to_the_study_that_asked_the_judge(judged: Warehouse) -> None:
    found = judged.query("select study, ballot_id from mart.transcript order by ballot_id")
    assert found.rows() == [
        ("quick", f"{pair}/{first}") for pair, first in product(("p1", "p2"), ("anchor", "target"))
    ]
