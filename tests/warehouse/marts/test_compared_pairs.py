import duckdb

from warehouse.store import Warehouse


def test_compared_pairs_are_there_without_texts_too(judged: Warehouse) -> None:
    found = judged.query(
        "select sample, control, experimental, question, control_replies"
        " from mart.compared_pairs order by sample"
    )
    assert found.rows()[1] == ("d/2/a2", "tie", "tie", None, None)
    assert found.height == 2


def test_votes_of_people_do_not_double_a_pair(judged: Warehouse) -> None:
    names = "select judge, sample, category from mart.compared_pairs order by all"
    before = [row[:2] for row in judged.query(names).rows()]
    with duckdb.connect(str(judged.path)) as connection:
        connection.execute("update vote_log set category = 'remembering'")
        connection.execute(
            "insert into vote_log select * replace ('people/ann' as judge, true as human, "
            "null as category) from vote_log where study = 'quick'"
        )
    after = judged.query(names).rows()
    assert [row[:2] for row in after] == before
    assert after[0][2] == "remembering"
    assert judged.query("select count(*) as n from mart.flipped_pairs")["n"].to_list() == [1]


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
