from collections.abc import Callable

from schemas.curation import Answers, PerturbedAnswers, Questions
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_answers_and_shams_are_counted_by_reason(warehouse: Warehouse, make: Make) -> None:
    answers = [f"d/{number}/a2" for number in range(5)]
    outcomes: list[dict[str, str | None]] = [
        {"failure": None, "sham_failure": None},
        {"failure": "no version", "sham_failure": "no version to match"},
        {"failure": "no version", "sham_failure": None},
        {"failure": None, "sham_failure": "too long"},
        {"failure": "empty", "sham_failure": None},
    ]
    perturbed = make(
        PerturbedAnswers,
        *({**outcome, "answer_id": a} for a, outcome in zip(answers, outcomes, strict=True)),
        # another seed is another attempt
        {"answer_id": answers[0], "seed": 1, "failure": "empty"},
    )
    targets = make(Answers, *({"answer_id": answer, "slot": 2} for answer in answers))
    warehouse.save([make(Questions), targets, perturbed], run="r1")
    found = warehouse.query(
        "select dataset, perturbation, recipe, seed, what, reason, items from mart.dropped "
        "order by seed, what, reason"
    )
    assert found.rows() == [
        ("d", "padding", 1, 0, "perturbed answer", "empty", 1),
        ("d", "padding", 1, 0, "perturbed answer", "no version", 2),
        # the sham of an answer that was dropped itself is not counted
        ("d", "padding", 1, 0, "sham", "too long", 1),
        ("d", "padding", 1, 1, "perturbed answer", "empty", 1),
    ]
