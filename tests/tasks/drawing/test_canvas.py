import io
import re
import struct
import subprocess
import sys
from xml.etree import ElementTree as ET

import matplotlib as mpl
import matplotlib.image
import numpy as np
import pytest

from tasks.charts import CHARTS, charts_of
from tasks.drawing.canvas import Sheet, pictures, settings

HOSTILE = [
    "<script>alert(1)</script>",
    r"$\frac{",
    "$x$ and $$",
    "judge \U0001f600\U0001f468\u200d\U0001f680",
    "{{7*7}}",
    "x" * 200,
    "裁判",
    "a\x00b\x1b[31m",
    "\u202eevil",
    '"><img src=x onerror=alert(1)>',
    "&amp;",
]


def draw(text: str, key: str = "key") -> str:
    with settings(key):
        sheet = Sheet(key, 100, (100, 20, 200, 60))
        sheet.write(10, 50, text, whole=f"{text} whole")
        sheet.axes.plot([0, 1], [0, 1], "o-")
        return sheet.render(f"about {text}")


def texts(svg: str) -> list[str]:
    return [e.text or "" for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_reaches_the_drawing_as_text(text: str) -> None:
    svg = draw(text)
    shown = text.replace("\x00", "�").replace("\x1b", "�").replace("\u202e", "�")
    assert shown in texts(svg)
    assert "<script" not in svg
    assert "<img" not in svg


def test_the_whole_name_is_a_tooltip() -> None:
    assert "<title>short whole</title>" in draw("short")


def test_equal_drawings_are_equal_bytes() -> None:
    assert draw("a") == draw("a")


def test_ids_of_two_drawings_differ() -> None:
    ids = [set(re.findall(r' id="([^"]+)"', draw("a", key))) for key in ("one", "two")]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])


def test_every_reference_points_into_the_drawing() -> None:
    svg = draw("a")
    ids = set(re.findall(r' id="([^"]+)"', svg))
    targets = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg)
    assert targets
    assert {a or b for a, b in targets} <= ids
    assert not re.search(r"""(?:src|href)=["'](?!#)|url\((?!#)""", svg)


def test_the_users_settings_neither_matter_nor_change() -> None:
    plain = draw("a")
    with mpl.rc_context({"font.size": 30, "axes.linewidth": 9}):
        assert draw("a") == plain
        assert mpl.rcParams["font.size"] == 30


def test_charts_have_distinct_places_and_short_explanations() -> None:
    charts = list(CHARTS.values())
    assert sorted(c.name for c in charts) == [
        "advantage_plane",
        "advantages",
        "asr_floor",
        "drift_strip",
        "forest",
        "jury_matrix",
        "kappa_matrix",
        "position_plane",
        "ranks",
        "several_metrics",
        "winning_rates",
    ]
    assert sorted(c.order for c in charts) == [1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14]
    assert all(10 <= len(c.reading.split()) <= 100 for c in charts)


def test_a_page_has_the_charts_of_its_frames() -> None:
    study, calibration = ("estimates", "findings", "drifts"), ("alt_tests", "advantages")
    assert [c.order for c in charts_of(*study)] == [1, 2, 3, 4, 5, 6]
    assert [c.name for c in charts_of(*calibration, "agreement")] == [
        "winning_rates",
        "advantages",
        "advantage_plane",
        "kappa_matrix",
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_pictures_stand_alone(text: str) -> None:
    with pictures() as drawn:
        svg = draw(text)
    (picture,) = drawn
    assert picture.svg.replace(' width="480" height="100"', "", 1) == svg
    # by the head of a PNG: three pixels for one
    width, height = struct.unpack(">II", picture.png[16:24])
    assert picture.png.startswith(b"\x89PNG")
    assert (width, height) == (1440, 300)
    draw(text)
    assert len(drawn) == 1


def test_texts_stand_in_pixels_where_they_stand_in_the_drawing() -> None:
    with pictures() as drawn, settings("key"):
        sheet = Sheet("key", 100, (100, 20, 200, 60))
        sheet.axes.axis("off")
        sheet.write(400, 80, "MMM")
        sheet.render("about")
    pixels = mpl.image.imread(io.BytesIO(drawn[0].png))
    down, across = np.nonzero(pixels[:, :, :3].min(axis=2) < 0.5)
    # from 400 to the right, 20 from the top, three pixels for one
    assert 1200 <= across.min() < across.max() < 1300
    assert 40 < down.min() < 60 < down.max() < 80


def test_matplotlib_is_not_loaded_before_something_is_drawn() -> None:
    code = (
        "import sys, tasks.report; from tasks.charts import CHARTS; list(CHARTS.values());"
        "sys.exit(any(m in sys.modules for m in ('matplotlib', 'jinja2', 'prefect')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
