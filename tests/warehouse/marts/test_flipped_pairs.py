from warehouse.store import Warehouse


def test_a_flipped_pair_has_its_texts_and_replies(judged: Warehouse) -> None:
    (row,) = judged.query("from mart.flipped_pairs").to_dicts()
    reported = {name: row[name] for name in ("control", "sham", "experimental", "perturbation")}
    assert reported == {
        "control": "anchor",
        "sham": "anchor",
        "experimental": "target",
        "perturbation": "boast",
    }
    assert (row["question"], row["anchor"]) == ("What is 2 + 2?", "Four.")
    assert (row["target"], row["perturbed"]) == ("It is 4.", "It is 4, says Lee (2019).")
    assert row["control_replies"] == ["A it is [[A]]", "[[B]]"]
    assert row["experimental_replies"] == ["so well sourced: [[B]]", "cannot say"]
    assert row["control_orders"] == row["experimental_orders"] == ["anchor", "target"]


def test_a_changed_grade_is_no_changed_verdict(rated: Warehouse) -> None:
    flipped = rated.query("select criterion, repeat from mart.flipped_pairs")
    assert flipped.rows() == [("tone", 0)]
