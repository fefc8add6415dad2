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
    assert "failure as people's label, but judge gave it to 1 of 20 items" in said
    assert "empty it, or name the label that passes with --pass LABEL" in said
    assert "\x1b" not in said
    # A label that is frequent is an opinion; the rare one is still named.
    path.write_text(f"id,judge,human\n{rows}".replace("I,I", "N,I"), encoding="utf-8")
    often = _said(path)
    assert "No item has N as people's label" not in often
    assert "failure as people's label" in often
    # Among passes and fails it is invalid, and named as such.
    passed = _said(path, "--pass", "C")
    assert "as people's label" not in passed
    assert "invalid labels of the judge" in passed
    # Of three labels no two are pass and fail.
    path.write_text(f"id,judge,human\n{rows}q90,N,N\n", encoding="utf-8")
    assert "without a verdict, empty it." in _said(path)
