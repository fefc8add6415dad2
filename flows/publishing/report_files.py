"""Report files of a study and of its calibration, which link to each other."""

from html import escape
from pathlib import Path
from urllib.parse import quote

from flows.studies.study import SUFFIX
from warehouse.atomic_files import write_private

PLACE = "<!-- another report -->"
"""Where a report has the link to the other one."""


def write_report_file(path: Path, page: str) -> None:
    """Write a report; if the other one is beside it, link each to the other."""
    is_calibration = path.stem.endswith(SUFFIX)
    other = path.with_name(other_report(path.name))
    if other.is_file():
        page = page.replace(PLACE, _link(other, is_calibration=not is_calibration), 1)
        theirs = other.read_text("utf-8")
        if PLACE in theirs:
            linked = theirs.replace(PLACE, _link(path, is_calibration=is_calibration), 1)
            write_private(other, linked.encode())
    write_private(path, page.encode())


def other_report(name: str) -> str:
    """Return the name of the file that a report links to."""
    path = Path(name)
    study = path.stem.removesuffix(SUFFIX)
    return path.with_stem(f"{study}{SUFFIX}" if study == path.stem else study).name


def _link(to: Path, *, is_calibration: bool) -> str:
    what = "Agreement with people" if is_calibration else "Biases of these judges"
    return f'· <a href="{quote(to.name)}">{what}: <bdi>{escape(to.stem)}</bdi></a>'
