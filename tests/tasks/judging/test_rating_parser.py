"""Ratings in replies: read where they were asked for, and nowhere else."""

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.judging.rating_parser import (
    Criterion,
    Grading,
    RatingPattern,
    RatingPointer,
    Scale,
)

TEN = Grading(kind="single", scale=Scale(low=1, high=10))
FINE = Grading(kind="single", scale=Scale(low=0, high=1, whole=False))
PASS = Grading(kind="binary")
RUBRIC = Grading(
    kind="rubric",
    criteria=(
        Criterion(name="Correct", low=1, high=5),
        Criterion(name="clear and short", low=0, high=10, whole=False),
    ),
)
LABELS = Grading(kind="labels", labels=("Wrong", "off topic", "rude"))
PATTERN = Grading(
    kind="single",
    scale=Scale(low=1, high=5),
    form=RatingPattern(
        pattern=r"Grade: (\w+)", example="So. Grade: {verdict}.", map={"good": 5, "bad": 1}
    ),
)
RUBRIC_PATTERN = RUBRIC.model_copy(
    update={
        "form": RatingPattern(
            pattern=r"(?m)^\* ([\w ]+) = ([\d.]+)$", example="* {criterion} = {verdict}"
        )
    }
)


@pytest.mark.parametrize(
    ("reply", "choice", "grade"),
    [
        ("Rating: [[7]]", "rated", 7),
        ("[[ 7 ]] because. Again [[7.0]]", "rated", 7),
        ("Rating: [[7/10]]", "rated", 7),
        ("Rating: [[7 / 10]]", "rated", 7),
        ("As asked, [[rating]]: [[10]]", "rated", 10),
        ("Rating: [[7/5]]", "invalid", None),  # of another scale
        ("Rating: [[7.5]]", "invalid", 7.5),  # grades are whole
        ("Rating: [[0]]", "invalid", 0),
        ("Rating: [[-3]]", "invalid", -3),
        ("Rating: [[11]]", "invalid", 11),
        ("Rating: [[7,5]]", "invalid", None),
        ("Rating: [[NaN]]", "invalid", None),
        ("Rating: [[inf]]", "invalid", None),
        ("Rating: [[7e0]]", "invalid", None),
        ("[[7]] or rather [[8]]", "ambiguous", None),
        ("[[7]] or [[8", "rated", 7),
        ("[[7]] or [[NaN]]", "ambiguous", None),
        ("I give it a 7 out of 10.", "invalid", None),
        ("7", "invalid", None),
        ("[7]", "invalid", None),
        ("", "invalid", None),
        ("I'm sorry, but I cannot evaluate that.", "abstain", None),
    ],
)
def test_a_grade_is_read_from_its_tag(reply: str, choice: str, grade: float | None) -> None:
    assert TEN.read(reply) == (choice, {} if grade is None else {"": grade})


@pytest.mark.parametrize(
    ("grading", "reply", "choice", "values"),
    [
        (FINE, "[[0.25]]", "rated", {"": 0.25}),
        (FINE, "[[1.01]]", "invalid", {"": 1.01}),
        (PASS, "So [[PASS]]", "rated", {"": True}),
        (PASS, "[[pass]] or [[fail]]", "ambiguous", {}),
        (PASS, "It does not pass.", "invalid", {}),
        (LABELS, "[[rude, wrong]]", "rated", {"": ("Wrong", "rude")}),
        (LABELS, "[[wrong,rude]] that is [[ Rude , Wrong ]]", "rated", {"": ("Wrong", "rude")}),
        (LABELS, "[[none]]", "rated", {"": ()}),
        (LABELS, "[[labels]]", "invalid", {}),
        (LABELS, "[[wrong, blunt]]", "invalid", {}),
        (LABELS, "[[wrong]] [[none]]", "ambiguous", {}),
        (RUBRIC, "[[correct: 4]] [[Clear and short: 9.5]]", "rated", [4, 9.5]),
        (RUBRIC, "[[Correct: 4]]", "invalid", [4]),
        (RUBRIC, "[[Correct: 6]] [[clear and short: 0]]", "invalid", [6, 0]),
        (RUBRIC, "[[Correct: 1]] [[Correct: 2]] [[clear and short: 0]]", "ambiguous", [None, 0]),
        (RUBRIC_PATTERN, "Well.\n* Correct = 4\n* clear and short = 9.5", "rated", [4, 9.5]),
        (RUBRIC_PATTERN, "* Wit = 4", "invalid", []),
        (PATTERN, "Grade: GOOD", "rated", {"": 5}),
        (PATTERN, "Grade: 5", "invalid", {}),
        (PATTERN, "Grade: good. Or Grade: fair", "ambiguous", {}),
    ],
)
def test_each_kind_has_its_form(
    grading: Grading, reply: str, choice: str, values: dict[str, object] | list[float | None]
) -> None:
    if isinstance(values, list):
        named = zip(("Correct", "clear and short"), values, strict=False)
        values = {name: value for name, value in named if value is not None}
    assert grading.read(reply) == (choice, values)


@pytest.mark.parametrize(
    ("kind", "found", "choice"),
    [
        ("single", {"rating": 7, "reason": "r"}, "rated"),
        ("single", {"rating": 7}, "invalid"),
        ("single", {"rating": "7", "reason": "r"}, "invalid"),
        ("single", {"rating": True, "reason": "r"}, "invalid"),
        ("single", {"rating": math.nan, "reason": "r"}, "invalid"),
        ("single", {"rating": 1e300, "reason": "r"}, "invalid"),
        ("single", {"rating": 7, "reason": "r", "more": 1}, "invalid"),
        ("single", [7], "invalid"),
        ("single", None, "invalid"),
        ("binary", {"verdict": "Pass", "reason": "r"}, "rated"),
        ("binary", {"verdict": True, "reason": "r"}, "invalid"),
        ("labels", {"labels": [], "reason": "r"}, "rated"),
        ("labels", {"labels": "rude", "reason": "r"}, "invalid"),
        ("labels", {"labels": ["rude", 1], "reason": "r"}, "invalid"),
    ],
)
def test_an_object_must_be_as_asked_for(kind: str, found: object, choice: str) -> None:
    forms = {"single": TEN, "binary": PASS, "labels": LABELS}
    grading = forms[kind].model_copy(update={"form": "json"})
    assert grading.read(json.dumps(found)).choice == choice
    assert grading.read(f"```json\n{json.dumps(found)}\n```").choice == choice


@pytest.mark.parametrize(
    ("grading", "found", "values"),
    [
        (TEN, {"scores": {"all": "7/10"}}, {"": 7}),
        (TEN, {"scores": {"all": 7}}, {"": 7}),
        (TEN, {"scores": {"all": "seven"}}, {}),
        (TEN, {"scores": {}}, {}),
        (PASS, {"scores": {"all": False}}, {"": False}),
        (PASS, {"scores": {"all": "fail"}}, {"": False}),
        (LABELS, {"scores": {"all": ["rude"]}}, {"": ("rude",)}),
        (LABELS, {"scores": {"all": "rude, wrong"}}, {"": ("Wrong", "rude")}),
        (
            RUBRIC,
            {"scores": {"all": {"correct": 2, "clear and short": 0.5, "wit": 1}}},
            {"Correct": 2, "clear and short": 0.5},
        ),
    ],
)
def test_a_pointer_finds_the_rating(
    grading: Grading, found: object, values: dict[str, object]
) -> None:
    pointed = grading.model_copy(update={"form": RatingPointer(pointer="/scores/all")})
    assert pointed.read(json.dumps(found)) == ("rated" if values else "invalid", values)


def test_a_pointer_with_a_map() -> None:
    form = RatingPointer(pointer="/ok", map={"true": "pass", "no": "fail"})
    mapped = Grading(kind="binary", form=form)
    mapped.check_reading()
    assert mapped.read('{"ok": true}').values == {"": True}
    assert mapped.read('{"ok": " NO "}').values == {"": False}
    assert mapped.read('{"ok": false}') == ("invalid", {})
    scored = Grading(kind="binary", form=RatingPointer(pointer="/ok", map={"4": "pass"}))
    assert scored.read('{"ok": 4.0}').values == {"": True}
    # A map may tell them apart.
    exact = RatingPointer(pointer="/ok", map={"4": "pass", "4.0": "fail"})
    reported = Grading(kind="binary", form=exact)
    assert [reported.read(f'{{"ok": {n}}}').values[""] for n in ("4", "4.0")] == [True, False]


MAP = {"R": "rude", "W": "Wrong", "3": "off topic", "clean": "none"}


@pytest.mark.parametrize(
    ("found", "labels"),
    [
        (["R", "W"], ("Wrong", "rude")),
        (["r"], ("rude",)),
        ([3, "R"], ("off topic", "rude")),
        ([], ()),
        (["clean"], ()),
        ("R", ("rude",)),
        ("R, W", ("Wrong", "rude")),
        ("none", ()),
        (3, ("off topic",)),
        (["R", "X"], None),
        (["R", ["W"]], None),
        (["rude"], None),
        ({"R": True}, None),
        (None, None),
    ],
)
def test_each_label_of_a_list_is_read_by_the_map(
    found: object, labels: tuple[str, ...] | None
) -> None:
    mapped = LABELS.model_copy(update={"form": RatingPointer(pointer="/faults", map=MAP)})
    mapped.check_reading()
    values = {} if labels is None else {"": labels}
    choice = "invalid" if labels is None else "rated"
    assert mapped.read(json.dumps({"faults": found})) == (choice, values)


def test_labels_are_written_in_the_words_of_the_map() -> None:
    mapped = LABELS.model_copy(update={"form": RatingPointer(pointer="/faults", map=MAP)})
    assert mapped.write({"": ("Wrong", "rude")}, "") == '{"faults": ["W", "R"]}'
    assert mapped.write({"": ()}, "") == '{"faults": []}'
    form = RatingPattern(pattern="Faults: (.*)", example="Faults: {verdict}", map=MAP)
    mapped = LABELS.model_copy(update={"form": form})
    mapped.check_reading()
    assert mapped.write({"": ("Wrong", "rude")}, "") == "Faults: W, R"
    assert mapped.write({"": ()}, "") == "Faults: clean"
    assert mapped.read("Faults: r,w") == ("rated", {"": ("Wrong", "rude")})
    assert mapped.read("Faults: clean") == ("rated", {"": ()})
    assert mapped.read("Faults: R, X") == ("invalid", {})


FORMS = [
    "tag",
    "json",
    RatingPointer(pointer="/a~1b/0"),
    RatingPattern(
        pattern=r"(?m)^(.*) -> (.*)$",
        example="{criterion} -> {verdict}",
    ),
]


@st.composite
def rated(draw: st.DrawFn) -> tuple[Grading, dict[str, object]]:
    """Return a form of rating and values that it can state."""
    kind = draw(st.sampled_from(["single", "binary", "rubric", "labels"]))
    grading = {"single": TEN, "binary": PASS, "rubric": RUBRIC, "labels": LABELS}[kind]
    form = draw(st.sampled_from(FORMS))
    if isinstance(form, RatingPattern) and kind != "rubric":
        form = RatingPattern(pattern=r"-> (.*)$", example="So -> {verdict}")
    values: dict[str, object] = {}
    for name, scale in grading.scales.items():
        if scale is not None:
            low, high = int(scale.low), int(scale.high)
            values[name] = float(draw(st.integers(low, high)))
        elif kind == "binary":
            values[name] = draw(st.booleans())
        else:
            chosen = draw(st.sets(st.sampled_from(LABELS.labels)))
            values[name] = tuple(label for label in LABELS.labels if label in chosen)
    return grading.model_copy(update={"form": form}), values


@given(rated(), st.text(alphabet=st.characters(exclude_characters="[]")))
def test_what_is_written_is_read(case: tuple[Grading, dict[str, object]], reason: str) -> None:
    grading, values = case
    assert grading.read(grading.write(values, reason)) == ("rated", values)  # type: ignore[arg-type]


@given(st.text(), st.sampled_from([TEN, FINE, PASS, RUBRIC, LABELS]))
def test_any_reply_is_read_and_a_grade_is_on_the_scale(reply: str, grading: Grading) -> None:
    for form in ("tag", "json"):
        found = grading.model_copy(update={"form": form}).read(reply)
        if found.choice == "rated":
            assert found.values.keys() == grading.scales.keys()
            for name, scale in grading.scales.items():
                value = found.values[name]
                assert scale is None or (isinstance(value, float) and scale.holds(value))


@given(st.text(alphabet="[]0123456789/.,- abc:"))
def test_a_number_outside_of_tags_is_never_a_grade(reply: str) -> None:
    if "[[" not in reply:
        assert TEN.read(reply).choice in {"invalid", "abstain"}


@given(st.lists(st.integers(1, 10), min_size=2, max_size=5))
def test_grades_that_differ_are_ambiguous(grades: list[int]) -> None:
    reply = " then ".join(f"[[{grade}]]" for grade in grades)
    expected = "rated" if len({*grades}) == 1 else "ambiguous"
    assert TEN.read(reply).choice == expected


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"low": 5, "high": 5}, "low (5) must be below high (5)"),
        ({"low": 0.5, "high": 5}, "must be whole numbers, or set whole = false"),
        ({"low": 1, "high": 5, "passes_at": 1}, "passes_at (1) must be above low (1)"),
        ({"low": 1, "high": 5, "passes_at": 6}, "at most high (5)"),
    ],
)
def test_a_scale_must_be_one(given_: dict[str, float], said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Scale(**given_)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (
            RatingPointer(pointer="/a", map={"good": 11}),
            "'good' = 11.0 is not a grade on the scale",
        ),
        (RatingPointer(pointer="/a", map={"good": "pass"}), "is not a grade on the scale"),
        (RatingPointer(pointer="/a", map={"a": 1, "A ": 2}), "differ only in case"),
        (RatingPattern(pattern="(", example="{verdict}"), "is not a regular expression"),
        (
            RatingPattern(pattern="x([0-9]+)", example="y{verdict}"),
            "does not read 1 in the example",
        ),
    ],
)
def test_a_reading_that_cannot_work_is_refused(
    form: RatingPattern | RatingPointer, said: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        TEN.model_copy(update={"form": form}).check_reading()


@pytest.mark.parametrize(("verdict", "missing"), [("pass", "fail"), ("fail", "pass")])
def test_a_map_of_pass_and_fail_has_a_text_for_both(verdict: str, missing: str) -> None:
    with pytest.raises(ValueError, match=f"map: no text means '{missing}'. Add one"):
        Grading(kind="binary", form=RatingPointer(pointer="/a", map={"x": verdict})).check_reading()


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (RatingPointer(pointer="/a", map={"R": "bad"}), "'bad' is not one of the labels, or none"),
        (RatingPointer(pointer="/a", map={"R": "rude"}), "no text means 'Wrong'"),
        (
            RatingPattern(pattern="Fault: ([RW3])", example="Fault: {verdict}", map=MAP),
            "does not read clean in the example",
        ),
        (
            RatingPattern(pattern="Fault: (clean|[RW3])", example="Fault: {verdict}", map=MAP),
            "does not read W, 3, R in the example, and a reply may choose several labels",
        ),
    ],
)
def test_a_reading_of_labels_must_find_each_label_and_all_together(
    form: RatingPattern | RatingPointer, said: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        LABELS.model_copy(update={"form": form}).check_reading()
