"""What a calibration is made of: its terms, and the steps that it takes."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.results import calibration as module
from flows.results.calibration import CalibrationSteps, calibrate_labels
from flows.studies.calibration import Calibration, make_calibration
from schemas.results import Annotations
from warehouse.store import Warehouse

PEOPLE = {"Ann": "abcabcabcb" * 6, "Bob": "abcabcabaa" * 6, "Cid": "abcabcacca" * 6}
JUDGES = {"good": "abcabcabca" * 6, "poor": "cccabcabca" * 6}


@pytest.fixture
def place(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb")


def test_a_form_cannot_name_a_program(place: Warehouse, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("raise SystemExit('ran')\ndef same(a, b):\n    return a == b\n")
    calibration = Calibration(metric=f"{own}:same")
    with pytest.raises(ValueError, match="which only `voirdire calibrate --metric` can run"):
        calibration.require_own_metric_elsewhere()
    Calibration().require_own_metric_elsewhere()
    assert not place.path.is_file()


def test_a_metric_of_ones_own_is_told_apart_when_its_file_changes(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("def same(a, b):\n    return a == b\n")
    one = Calibration(metric=f"{own}:same").terms()
    own.write_text("def same(a, b):\n    return a != b\n")
    assert Calibration(metric=f"{own}:same").terms() != one


def test_steps_are_those_that_are_given(tmp_path: Path, place: Warehouse) -> None:
    files = {"humans": PEOPLE, "judges": JUDGES}
    for name, labels in files.items():
        reported = {who: dict(enumerate(said)) for who, said in labels.items()}
        (tmp_path / f"{name}.json").write_text(json.dumps(reported))
    calibration = make_calibration(
        metric="accuracy", **{name: str(tmp_path / f"{name}.json") for name in files}
    )
    plain = CalibrationSteps()
    called: list[str] = []

    def noted(name: str) -> Any:
        def step(*given: Any) -> Any:
            called.append(name)
            return getattr(plain, name)(*given)

        return step

    found = calibrate_labels(
        calibration, place, CalibrationSteps(*map(noted, CalibrationSteps._fields))
    )
    # The first two go side by side.
    assert sorted(called[:2]) == ["annotate", "try_judges"]
    assert called[2:] == ["agree", "compare"]
    assert found.tests.equals(calibrate_labels(calibration, place).tests)
    assert Annotations.of(found.annotations).height == 300
    assert module.in_words(calibration, found.tests).startswith("1 of 2 judges")
