import re
import shutil
import struct
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
import vl_convert

from schemas.results import Estimates
from tasks.charts import CHARTS, charts_of
from tasks.drawing.render import VEGA_LITE, drawing_aside, inline_svg, picture, stacked_svg
from tasks.drawing.spec import BLUE, by_tone, mark, panel, with_variables
from tasks.reporting.page import RUNTIME

HOSTILE = [
    "<script>alert(1)</script>",
    "<!--<script>",
    r"$\frac{",
    "datum.x; 7*7",
    "judge \U0001f600\U0001f468\u200d\U0001f680",
    "{{7*7}}",
    "x" * 200,
    "裁判",
    "a\x00b\x1b[31m",
    "\u202eevil",
    '"><img src=x onerror=alert(1)>',
    "&amp;",
    "](); ' + 'x",
]


def drawn(text: str) -> dict[str, Any]:
    """Return a panel of one row, of a judge and perturbation of this name."""
    row = {"dataset": "d", "judge": text, "prompt": "p", "wave": "", "mode": "balanced"}
    row |= {"perturbation": text, "kind": "promote", "subgroup": "", "simulated": False}
    row |= {"statistic": "asr", "estimate": 0.4, "low": 0.3, "high": 0.5, "level": 0.95}
    row |= {"n": 60, "clusters": 60, "dropped": 0, "votes_per_pair": 2, "method": "Wilson"}
    (found,) = CHARTS["asr_floor"](estimates=Estimates.of(pl.DataFrame([row])))
    return found


def texts(svg: str) -> list[str]:
    return [e.text or "" for e in ET.fromstring(svg).iter() if e.tag.endswith("text")]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_reaches_the_picture_as_text(text: str) -> None:
    svg = inline_svg(drawn(text))
    shown = text.replace("\x00", "\ufffd").replace("\x1b", "\ufffd").replace("\u202e", "\ufffd")
    start = shown[:6]
    assert any(each.startswith(start) for each in texts(svg))
    assert "49" not in texts(svg)
    assert "<script" not in svg
    assert "<img" not in svg


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_is_never_a_part_of_an_expression_or_a_field(text: str) -> None:
    compiled = vl_convert.vegalite_to_vega(drawn(text), vl_version=VEGA_LITE)
    whole = compiled | {"data": [], "title": "", "description": "", "usermeta": 0}
    assert not any(name in str(whole) for name in (text, repr(text)[1:-1]))


def test_hovering_shows_the_whole_name() -> None:
    (row,) = drawn("x" * 200)["data"]["values"]
    assert row["tip"].startswith("x" * 200 + "\nASR .40 [.30,\N{NO-BREAK SPACE}.50]")
    assert row["tip"].endswith("n 60 samples, 60 questions")


def test_equal_drawings_are_equal_bytes() -> None:
    assert inline_svg(drawn("a")) == inline_svg(drawn("a"))


@pytest.mark.slow
def test_another_process_draws_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    panels = [drawn(text) for text in HOSTILE]
    here = [inline_svg(panel) for panel in panels]
    with drawing_aside() as draw, monkeypatch.context() as patch:
        draw(panels)
        patch.setattr(vl_convert, "vegalite_to_svg", None)
        assert [inline_svg(panel) for panel in panels] == here


def test_what_another_process_cannot_draw_is_drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", shutil.which("false"))
        with drawing_aside() as draw:
            draw([drawn("a")])
            assert "<svg" in inline_svg(drawn("a"))


def test_a_picture_of_a_page_refers_to_nothing_and_has_no_ids() -> None:
    svg = inline_svg(drawn("a"))
    assert not re.search(r"""\bid=|(?:src|href)=|url\(""", svg)
    assert 'role="img" aria-label="Attack success rate and its floor by judge, a"' in svg


def test_colours_of_a_page_are_its_own_and_those_of_a_picture_are_fixed() -> None:
    spec = panel("t", about="a", layers=[mark("point", [{"x": 1}], x="x", color={"value": BLUE})])
    assert 'fill="var(--blue)"' in inline_svg(spec)
    svg = picture(spec)["svg"].decode()
    assert 'fill="#0072b2"' in svg
    assert "var(" not in svg
    assert with_variables(by_tone())["scale"]["range"] == [
        "var(--blue)",
        "var(--red)",
        "var(--soft)",
    ]
    # a judge that is named like a colour keeps its name
    assert with_variables({"who": "#0072b2"}) == {"who": "#0072b2"}


def test_the_runtime_of_the_page_draws_the_same_version() -> None:
    licences = RUNTIME.with_name("vega.LICENSES.txt").read_text(encoding="utf-8")
    assert f"vega-lite {VEGA_LITE}." in licences
    assert f"vega {vl_convert.get_vega_version()} " in licences


def test_the_runtime_can_stand_in_a_script_element() -> None:
    runtime = RUNTIME.read_text(encoding="utf-8")
    assert not re.search(r"<!--|</?script", runtime, re.IGNORECASE)
    assert runtime.isascii()


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
    study = ("estimates", "findings", "drifts", "gates", "rankings", "jury_findings")
    study += ("panel_members",)
    calibration = ("alt_tests", "advantages")
    assert [c.order for c in charts_of(*study)] == [1, 2, 3, 4, 5, 6]
    assert [c.name for c in charts_of(*calibration, "agreement")] == [
        "winning_rates",
        "advantages",
        "advantage_plane",
        "kappa_matrix",
    ]


def test_pictures_stand_alone() -> None:
    found = picture(drawn("a"))
    svg, png = found["svg"].decode(), found["png"]
    root = ET.fromstring(svg)
    assert {"a", "ASR", ".40"} <= {*texts(svg)}
    # by the head of a PNG: three pixels for one
    width, height = struct.unpack(">II", png[16:24])
    assert png.startswith(b"\x89PNG")
    assert (width, height) == (3 * float(root.get("width", 0)), 3 * float(root.get("height", 0)))
    assert 'fill="white"' in svg


@pytest.mark.slow
def test_nothing_heavy_is_loaded_before_something_is_drawn() -> None:
    code = (
        "import sys, tasks.report; from tasks.charts import CHARTS; list(CHARTS.values());"
        "sys.exit(any(m in sys.modules for m in ('vl_convert', 'jinja2', 'prefect')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_panels_are_stacked_without_sharing_ids() -> None:
    spec: Any = {
        "description": "one dot",
        "width": 100,
        "height": 50,
        "data": {"values": [{"x": 1}]},
        "mark": {"type": "point", "clip": True},
        "encoding": {"x": {"field": "x", "type": "quantitative"}},
    }
    root = ET.fromstring(stacked_svg([spec, spec]))
    ground, first, second = root
    assert (first.get("x"), first.get("y")) == ("16", "16")
    assert second.get("y") == str(int(root.attrib["height"]) // 2)
    # Letters that are wider than measured reach beyond their panel, over the white ground.
    assert first.get("overflow") == "visible"
    # A page that shows the picture may be dark.
    whole = {"width": root.get("width"), "height": root.get("height"), "fill": "white"}
    assert ground.attrib == whole
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert ids
    assert len(ids) == len(set(ids))
