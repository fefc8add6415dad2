"""Different words for pass and fail are the same verdict in every part of one output."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli.main import main

SPELLED = ("Good", "good ", " GOOD", "bad")


@pytest.mark.parametrize(
    ("judged", "given", "column"),
    [
        (["pass", "fail"], [1, 0], "human_value"),
        (["pass", "fail"], [1, 0], "human_label"),
        (SPELLED, ["good", "good", "good", "bad"], "human_label"),
    ],
)
def test_the_chance_of_agreeing_follows_the_verdicts(
    tmp_path: Path, judged: list[str], given: list[object], column: str
) -> None:
    """By hand: the person repeats every verdict of the judge, but turns it in 10 of 40 items."""
    turned = {value: given[0] if value == given[-1] else given[-1] for value in given}
    rows = [
        {"id": n, "by": "g", "label": judged[n % len(judged)], "person": said}
        for n, same in enumerate([*given] * (40 // len(given)))
        for said in [turned[same] if n >= 30 else same]
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    columns = f"item=id,judge=by,label=label,{column}=person"
    how = ["measure", str(path), "--map", columns]
    done = CliRunner().invoke(main, how)
    assert done.exit_code == 0, done.output
    assert "agreement .75" in " ".join(done.stdout.split())
    one = CliRunner().invoke(main, [*how, "--format", "json"])
    found = {
        (row["judge"], row["statistic"]): row["estimate"]
        for row in json.loads(one.stdout)
        if row["statistic"].startswith("s1")
    }
    assert found["g", "s1_micro"] == pytest.approx(0.75)
