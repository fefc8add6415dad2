import json

import polars as pl
import pytest

from tasks.calibration.planner import (
    AnnotatorModel,
    Simulation,
    chance_to_pass,
    describe_people,
    plan_annotators,
    worst_judge,
)

# Four labels, three people who are right in .8: known in .7333, else one of four by chance.
SKILL = 0.8 / 0.75 - 0.25 / 0.75
FOUR = AnnotatorModel([0.25] * 4, SKILL**2 * 0.75 + 0.25, 3)


def test_people_by_hand() -> None:
    assert FOUR.accuracy == pytest.approx(0.8)
    assert FOUR.skill == pytest.approx(SKILL)
    # those who agree less than by chance know nothing
    assert AnnotatorModel([0.5, 0.5], 0.4).accuracy == 0.5


@pytest.mark.parametrize(
    ("instances", "epsilon", "accuracy", "published"),
    [
        # methods, section 8: chances for judges as accurate as people, or 10 points worse
        (50, 0.1, 0.8, 0.20),
        (100, 0.1, 0.8, 0.39),
        (200, 0.1, 0.8, 0.73),
        (400, 0.1, 0.8, 0.97),
        (50, 0.2, 0.8, 0.73),
        (100, 0.2, 0.8, 0.96),
        (100, 0.2, 0.7, 0.49),
        (200, 0.2, 0.7, 0.80),
    ],
)
def test_known_chances(instances: int, epsilon: float, accuracy: float, published: float) -> None:
    chance = chance_to_pass(FOUR, instances, accuracy, Simulation(epsilon, draws=1500))
    # standard error at most .013, of theirs too
    assert chance == pytest.approx(published, abs=0.05)


def test_the_plan_and_the_worst_judge() -> None:
    plan = plan_annotators(FOUR, Simulation(0.2, draws=200))
    assert plan.instances in {75, 100}
    assert list(plan.chances) == [30, 50, 75, 100][: len(plan.chances)]
    assert plan.worst is not None
    # 10 points worse pass in .49 of studies with 100 instances
    assert worst_judge(FOUR, 100, Simulation(0.2, draws=400)) == pytest.approx(0.1, abs=0.02)
    none = plan_annotators(FOUR, Simulation(0.0, draws=50), sizes=[30, 50])
    assert (none.instances, none.worst) == (None, None)
    assert list(none.chances) == [30, 50]


def test_people_from_their_labels() -> None:
    labels = {"Ann": "aab", "Bob": "abb", "Cid": "aa"}
    people = describe_people(
        pl.DataFrame(
            [
                {"annotator": who, "item": str(i), "label": json.dumps(x)}
                for who, given in labels.items()
                for i, x in enumerate(given)
            ]
        )
    )
    # pairs that agree: 3 of 3, 1 of 3, 1 of 1
    assert people.agreement == pytest.approx(5 / 7)
    assert people.frequencies == [0.625, 0.375]
    assert people.annotators == 3


def test_what_cannot_be_planned() -> None:
    alone = pl.DataFrame({"annotator": ["Ann", "Bob"], "item": ["1", "2"], "label": ['"a"', '"b"']})
    with pytest.raises(ValueError, match=r"people labelled; labels\.csv has 2 people, but no"):
        describe_people(alone, "labels.csv")
    with pytest.raises(ValueError, match=r"labels\.csv has one person \(Ann\)\."):
        describe_people(alone.head(1), "labels.csv")
    with pytest.raises(ValueError, match="has no valid label"):
        describe_people(alone.clear())
    same = pl.DataFrame({"annotator": ["Ann", "Bob"], "item": ["1"] * 2, "label": ['"a"'] * 2})
    with pytest.raises(ValueError, match="all labels of people in the file are equal"):
        describe_people(same)


def test_labels_that_the_metric_takes_for_one_are_one() -> None:
    """Half of Ann's labels are texts and the lists lie in another order: the people stay alike."""
    said = [[1, 2, 3][i % 3] for i in range(30)]
    plain = [(who, f"i{i}", json.dumps(x)) for who in "AB" for i, x in enumerate(said)]
    mixed = [("A", f"i{i}", json.dumps(str(x) if i % 2 else float(x))) for i, x in enumerate(said)]
    columns = ["annotator", "item", "label"]
    one, other = (
        describe_people(pl.DataFrame(rows, schema=columns, orient="row"))
        for rows in (plain, [*mixed, *plain[30:]])
    )
    assert (
        (one.agreement, one.frequencies) == (other.agreement, other.frequencies) == (1, [1 / 3] * 3)
    )
    with pytest.raises(ValueError, match="'A' labels item 'i0' more than once"):
        describe_people(pl.DataFrame([*plain, plain[0]], schema=columns, orient="row"))
