"""Labels that a calibration tells a user to check."""

from pathlib import Path

from click.testing import CliRunner

from flows.cli.main import main


def _said(path: Path, *words: str) -> str:
    done = CliRunner().invoke(main, ["calibrate", str(path), "--no-save", *words])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_a_rare_label_that_no_person_gave_is_named(tmp_path: Path) -> None:
    labels = [("C", "C")] * 12 + [("I", "I")] * 7 + [("I", "<i>parse\x1b[2J failure")]
    path = tmp_path / "graded.csv"
    rows = "".join(f"q{at},{judge},{human}\n" for at, (human, judge) in enumerate(labels))
    path.write_text(f"id,judge,human\n{rows}", encoding="utf-8")
    said = _said(path)
    assert (
        "failure is a label that judge gave to 1 of 20 items and that is people's label of none"
        in said
    )
    assert "empty it, or name the label that passes with --pass LABEL" in said
    assert "\x1b" not in said
    # A label that is frequent is an opinion, and one that people give too is no failure.
    path.write_text(f"id,judge,human\n{rows}".replace("I,I", "N,I"), encoding="utf-8")
    assert "N is a label that" not in _said(path)
    assert "label of none" in said
    # Among passes and fails it is invalid, and named as such.
    passed = _said(path, "--pass", "C")
    assert "label of none" not in passed
    assert "invalid labels of the judge" in passed
    # Of three labels no two are pass and fail.
    path.write_text(f"id,judge,human\n{rows}q90,N,N\n", encoding="utf-8")
    three = _said(path)
    assert "without a verdict, empty it." in three
