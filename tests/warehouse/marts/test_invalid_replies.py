from warehouse.store import Warehouse


def test_replies_without_a_verdict(judged: Warehouse) -> None:
    found = judged.query("select study, arm, choice, reply, target from mart.invalid_replies")
    assert found.rows() == [
        ("quick", "experimental", "invalid", "cannot say", "It is 4, says Lee (2019).")
    ]
