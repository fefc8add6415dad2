"""Judges whose verdicts depend on the wording by a known amount, as a user audits them."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.publishing.served_files import reports_of
from warehouse.store import Warehouse

Voirdire = Callable[..., Any]
pytestmark = [pytest.mark.served, pytest.mark.slow]

# On the scale from 1 to 10 a logit of quality is worth .9 points (slope .1).
JUDGES_TOML = """
[provider]
simulated = true

[judges.strict]
model = "planted/strict"
[judges.strict.params.traits]
seed = 21
omega = 1.5
grade_noise = 0.02
wordings = { "to the point" = -1 }

[judges.steady]
model = "planted/steady"
[judges.steady.params.traits]
seed = 22
omega = 1.5
grade_noise = 0.1
"""
PROMPT_TOML = """
kind = "single"
source = "own"
system = "Grade the answer. End with a grade from 0 to 100 in double square brackets."
user = "{question} {answer}"

[scale]
low = 0
high = 100

[variants.brief]
system = "Is the answer good and to the point? End with a grade from 0 to 100 in [[ ]]."

[variants.formal]
system = "Assess the answer. Conclude with a grade from 0 to 100 in double square brackets."
"""


def test_a_planted_effect_of_the_wording_is_found_and_none_where_there_is_none(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    home = tmp_path / "voirdire"
    for name, text in (("providers/planted", JUDGES_TOML), ("prompts/percent", PROMPT_TOML)):
        file = home / f"{name}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    rows = [
        {"question_id": f"q{at}", "question": f"What is {at}?", "anchor": "No.", "target": f"{at}!"}
        for at in range(60)
    ]
    data = tmp_path / "mine.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = voirdire(
        "audit",
        *("--dataset", str(data), "--perturbation", "fake_reference", "--sham", "none"),
        *("--votes", "1", "--mode", "paper"),
        *("--judge", "planted/strict", "--judge", "planted/steady"),
        *("--prompt", "percent", "--prompt", "single_v1", "--reworded"),
        COLUMNS="300",
    )
    assert done.returncode == 0, done.stderr
    reported = " ".join(done.stdout.split())
    assert "Rewording planted/strict / percent" in reported
    assert "with the prompt in other words, a rating changes by" in reported
    found = warehouse.query(
        "select judge, split_part(prompt, '@', 1) as prompt, "
        "split_part(variant, '@', 1) as variant, rating_shift, rating_change,"
        " rating_shift_low, rating_shift_high, rating_unit, again_rating_change,"
        " rating_excess as excess, rating_excess_low as low, rating_excess_high as high"
        " from mart.rewording"
    ).to_dicts()
    rows_of = {(row["judge"], row["prompt"], row["variant"]): row for row in found}
    strict = "planted/strict"
    # A logit lowers each grade by a tenth of the scale, up to rounding and where it does not end.
    brief = rows_of[strict, "percent", "brief"]
    assert brief["rating_shift"] == pytest.approx(-10, abs=1)
    assert brief["rating_change"] == pytest.approx(10, abs=1)
    assert brief["rating_unit"] == "points"
    # Two grades with noise of two points each differ by 2 * 2 / sqrt(pi) in the mean.
    noise = 4 / math.sqrt(math.pi)
    assert rows_of[strict, "percent", "formal"]["rating_change"] == pytest.approx(noise, abs=1)
    whole = rows_of[strict, "percent", None]
    assert whole["rating_shift"] == pytest.approx(-5, abs=1)
    assert whole["again_rating_change"] == pytest.approx(noise, abs=1)
    assert whole["excess"] == pytest.approx((10 + noise) / 2 - noise, abs=1)
    assert whole["low"] > 0
    # The bundled prompt has variants too; "to the point" is in one of them.
    assert rows_of[strict, "single_v1", "brief"]["rating_shift"] == pytest.approx(-0.9, abs=0.2)
    # A judge that only varies: as far when it is asked the same again.
    for prompt in ("percent", "single_v1"):
        steady = rows_of["planted/steady", prompt, None]
        assert steady["rating_change"] > 0
        assert steady["low"] <= 0 <= steady["high"]
        assert steady["rating_shift_low"] <= 0 <= steady["rating_shift_high"]
    page = (reports_of(warehouse.path) / "quick.html").read_text(encoding="utf-8")
    assert "mean change of a rating if the prompt is reworded" in page
