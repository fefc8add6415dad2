from warehouse.store import Warehouse


def test_compared_pairs_are_there_without_texts_too(judged: Warehouse) -> None:
    found = judged.query(
        "select sample, control, experimental, question, control_replies"
        " from mart.compared_pairs order by sample"
    )
    assert found.rows()[1] == ("d/2/a2", "tie", "tie", None, None)
    assert found.height == 2


def test_pass_and_fail_are_compared_by_criterion_and_repeat(rated: Warehouse) -> None:
    compared = rated.query(
        "select criterion, repeat, control, sham, experimental"
        " from mart.compared_pairs order by all"
    )
    assert compared.rows() == [
        ("depth", 0, "3", None, "5"),
        ("tone", 0, "fail", "fail", "pass"),
        ("tone", 1, "pass", None, "pass"),
    ]
