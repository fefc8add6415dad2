from typing import Any

import polars as pl

from schemas.results import Findings
from tasks.reporting.comparison_rows import adjustment_rows

ROW: dict[str, Any] = {
    "dataset": "d",
    "judge": "ada",
    "prompt": "p",
    "wave": "",
    "mode": "balanced",
    "perturbation": "boast",
    "kind": "promote",
    "statistic": "mps",
    "estimate": 0.2,
    "low": 0.1,
    "high": 0.3,
    "minimum": 0.05,
    "p_value": 0.001,
    "p_adjusted": 0.002,
    "p_holm": 0.003,
    "p_by": 0.004,
    "e_value": 21.5,
    "e_rejected": True,
    "shrunk": 0.15,
    "shrunk_error": 0.02,
    "finding": "biased",
    "shift_spread": 0.3,
    "shift_spread_low": 0.0,
    "shift_spread_high": 0.42,
}


def rows(*changes: dict[str, Any]) -> list[list[tuple[str, str]]]:
    frame = Findings.of(pl.DataFrame([ROW | change for change in changes]))
    return [
        [(text.text, text.note.replace("\N{NO-BREAK SPACE}", " ")) for text in row.texts]
        for row in adjustment_rows(frame)
    ]


def test_every_adjustment_and_the_shrunk_estimate() -> None:
    assert rows({}) == [
        # .15 -+ 1.96 * .02
        [
            ("boast", ""),
            (".20", "[.10, .30]"),
            (".001", ""),
            (".002", ""),
            (".003", ""),
            (".004", ""),
            ("21.50", ""),
            ("yes", ""),
            (".15", "[.11, .19]"),
            (".30", "[.00, .42]"),
        ]
    ]


def test_what_is_missing_is_said() -> None:
    nothing = dict.fromkeys(
        (
            "p_value",
            "p_adjusted",
            "p_holm",
            "p_by",
            "e_value",
            "e_rejected",
            "shrunk",
            "shrunk_error",
            "shift_spread",
            "shift_spread_low",
            "shift_spread_high",
        ),
    )
    ((_, _, *others),) = rows(nothing | {"finding": None, "reason": "too few"})
    assert [text for text, _ in others] == ["none"] * 8
    assert rows({"e_value": 1e300})[0][6] == ("1e+300", "")
