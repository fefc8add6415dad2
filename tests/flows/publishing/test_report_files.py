"""A study's report and that of its calibration, as files side by side."""

from pathlib import Path

import pytest

from flows.publishing.report_files import PLACE, write_report_file

PAGE = f"<p>Dataset quick {PLACE}</p>"


@pytest.mark.parametrize("names", [("desk", "desk-people"), ("desk-people", "desk")])
def test_the_reports_of_a_study_and_its_calibration_lead_to_each_other(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    for name in names:
        write_report_file(tmp_path / f"{name}.html", PAGE)
    study, people = ((tmp_path / f"{name}.html").read_text() for name in sorted(names))
    assert '· <a href="desk-people.html">Agreement with people: <bdi>desk-people</bdi></a>' in study
    assert '<a href="desk.html">Biases of these judges: <bdi>desk</bdi></a>' in people


def test_a_report_alone_leads_to_no_other_and_names_are_escaped(tmp_path: Path) -> None:
    write_report_file(tmp_path / "alone.html", PAGE)
    assert "<a" not in (tmp_path / "alone.html").read_text()
    for name in ("<b>&", "<b>&-people"):
        write_report_file(tmp_path / f"{name}.html", PAGE)
    text = (tmp_path / "<b>&.html").read_text()
    assert 'href="%3Cb%3E%26-people.html">Agreement with people: <bdi>&lt;b&gt;&amp;-people' in text
