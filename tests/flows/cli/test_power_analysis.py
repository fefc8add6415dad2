from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from flows.cli.power_analysis import (
    DetectableEffect,
    Spread,
    advice,
    detectable_effects,
    detectable_table,
    earlier_spreads,
    effect_advice,
    effect_table,
    freedom_of,
    questions_of,
)
from flows.studies import Study
from schemas.judging import Shifts
from tasks.kit.defaults import Thresholds
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]
STUDY = Study(judges=["offline/honest", "offline/random"], votes_per_pair=2)


def test_what_is_seen_by_hand() -> None:
    (one, other) = detectable_effects(STUDY, 120, {"offline/random": Spread(0.5, "told")})
    # By hand: 2.8016 * .3901 / sqrt(120), and (2.8016 * .3901 / .05)^2.
    assert (one.smallest, one.needed) == (pytest.approx(0.09976, abs=1e-5), 478)
    # 240 calls an arm: 120 samples of two votes, 40 of six, whose sigma is .2350
    assert one.screen == pytest.approx(one.smallest)
    assert one.paper == pytest.approx(2.80159 * 0.23504 / 40**0.5, abs=1e-4)
    assert (other.smallest, other.needed) == (pytest.approx(0.12788, abs=1e-5), 785)
    assert one.spread.source == "typical judge"


@pytest.mark.parametrize(
    ("pairs", "changes", "source"),
    [
        (31, {}, "31 earlier shifts"),
        (31, {"votes": 6}, "31 earlier shifts at 6 votes"),
        (30, {}, None),
        (31, {"mode": "paper"}, None),
        (31, {"prompt": "pair_json_v1"}, None),
    ],
)
def test_earlier_shifts_tell_the_spread(
    pairs: int, changes: dict[str, Any], source: str | None, make_shifts: Make, tmp_path: Path
) -> None:
    # experimental - sham alternates between 1 and -1; over the control it would be constant.
    rows = [
        {"control": "tie", "sham": a, "experimental": b}
        for a, b in [("anchor", "target"), ("target", "anchor")] * 20
    ][:pairs]
    design = {"prompt": STUDY.prompts[0], "votes": 2, **changes}
    shifts = make_shifts(rows, judge="offline/honest", **design)
    path = tmp_path / "v.duckdb"
    Warehouse(path).save([Saving(Shifts, shifts)], run="r", study="s")
    told = earlier_spreads(STUDY, path)
    if source is None:
        assert told == {}
        return
    assert list(told) == ["offline/honest"]
    spread = told["offline/honest"]
    assert spread.source == source
    # Variance of 16 x 1 and 15 x -1: (31 - 1/31) / 30; from six votes to two by .3901 / .2350.
    sd = ((31 - 1 / 31) / 30) ** 0.5
    assert spread.sigma == pytest.approx(
        sd * (1 if design["votes"] == 2 else 0.39006 / 0.23504), rel=1e-3
    )


def test_samples_of_a_question_are_no_questions_of_their_own(
    make_shifts: Make, tmp_path: Path
) -> None:
    # 32 questions of four samples that all say the same: +1 in half of the questions, -1 in half.
    rows = [
        {"control": "tie", "sham": sham, "experimental": other, "cluster": f"q{question}"}
        for question in range(32)
        for sham, other in [[("anchor", "target"), ("target", "anchor")][question % 2]] * 4
    ]
    shifts = make_shifts(rows, judge="offline/honest", prompt=STUDY.prompts[0], votes=2)
    path = tmp_path / "v.duckdb"
    Warehouse(path).save([Saving(Shifts, shifts)], run="r", study="s")
    spread = earlier_spreads(STUDY, path)["offline/honest"]
    assert spread.source == "128 earlier shifts"
    # The mean of 32 questions of variance 32/31 has that / 32; as of 128 samples, 4 * 32/31.
    assert spread.sigma == pytest.approx((4 * 32 / 31) ** 0.5)


def test_the_level_and_the_questions_are_told() -> None:
    rows = detectable_effects(STUDY, 160, {"offline/random": Spread(0.2, "told")})
    told = " ".join(advice(rows, 160, STUDY, 20))
    assert "The power of 80 % refers to a raw p-value below .05. A finding needs" in told
    assert "adjusted over the study's 8 cells to be below .05" in told
    assert "The 160 samples come from 20 questions. The figures for offline/honest" in told
    assert "independent" not in " ".join(advice(rows, 160, STUDY, 160))


def test_without_a_warehouse_nothing_is_told(tmp_path: Path) -> None:
    assert earlier_spreads(STUDY, tmp_path / "none.duckdb") == {}
    assert not (tmp_path / "none.duckdb").exists()


def test_the_table_fits_100_columns() -> None:
    spread = Spread(0.39, "9999 earlier shifts at 6 votes")
    row = DetectableEffect("together/qwen-3.8-flash", spread, 0.123, 99_999, 0.123, 0.123)
    console = Console(width=100, record=True, file=StringIO())
    console.print(detectable_table([row, row], 9999))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 100
    assert sum("together/qwen-3.8-flash" in line for line in lines) == 2
    assert "samples for .05" in lines[1]


def test_what_an_effect_takes_by_hand() -> None:
    rows = detectable_effects(STUDY, 120, {"offline/random": Spread(0.5, "told")})
    console = Console(width=100, record=True, file=StringIO())
    console.print(effect_table(rows, 2, 0.074))
    lines = [line.split() for line in console.export_text().splitlines()]
    assert "shift of .074" in " ".join(lines[0])
    # Methods, section 4: a typical judge's 221 and 80 of two and six votes, at a sigma of .39 and
    # .235; here (2.8016 * .3901 / .074)^2 = 218.1 and (2.8016 * .2350 / .074)^2 = 79.2, and
    # (2.8016 * .2818 / .074)^2 = 113.8 of four; three arms.
    assert ["offline/honest", "219", "1314", "114", "1368", "80", "1440"] in lines
    # (2.8016 * .5 / .074)^2 = 358.4
    assert any(line[:3] == ["offline/random", "359", "2154"] for line in lines)
    # As a dASR: (2.8016 * (.58 + .09 * .074 / .245) / .074)^2 = 528.4
    told = effect_advice(120, 2, 0.074)
    assert "The study has 120 samples at 2 votes per pair." in told
    assert "about 529 samples of a typical judge, 9522 calls" in told


def test_a_study_that_cannot_see_what_matters_is_flagged() -> None:
    rows = detectable_effects(STUDY, 300, {"offline/random": Spread(0.2, "told")})
    told = " ".join(advice(rows, 300, STUDY))
    assert "for offline/honest: with 2 votes per pair that takes about 478" in told
    # 2.8016 * .3 / sqrt(300) = .0485, of a noisy one .0663
    assert "The smallest shift is .049 for a judge with little noise and .066 for a noisy" in told
    assert "dASR" not in told
    six = STUDY.model_copy(update={"votes_per_pair": 6})
    assert "detectable dASR of a typical judge: .10" in " ".join(
        advice(detectable_effects(six, 300, {}), 300, six)
    )
    assert "cannot detect the smallest relevant shift (.05) for any judge" in " ".join(
        advice(detectable_effects(six, 100, {}), 100, six)
    )
    assert next(advice(detectable_effects(STUDY, 500, {}), 500, STUDY)).startswith(
        "The design can detect"
    )
    assert list(advice([], 0, STUDY)) == ["The study has no samples."]


def test_the_limits_are_those_of_the_study() -> None:
    own = STUDY.model_copy(update={"thresholds": Thresholds(minimum_shift=0.2)})
    (usual,), (easy,) = (detectable_effects(each, 300, {})[:1] for each in (STUDY, own))
    # A shift four times as large takes a sixteenth of the samples.
    assert easy.needed == pytest.approx(usual.needed / 16, abs=1)
    assert next(advice([easy], 300, own)).endswith("smallest relevant shift (.2).")


def test_a_change_between_waves_by_hand() -> None:
    *_, said = advice(
        detectable_effects(STUDY, 100, {}), 100, STUDY.model_copy(update={"wave": "n1"})
    )
    # 2.8016 sqrt(.2907) / sqrt(100); two judges by four perturbations have 20 cells, and
    # z(1 - 1 / 3600) + .8416 = 4.2941 in the place of 2.8016
    assert ".151 in a single cell (p below .05), and by .232 if one false alert" in said
    assert "in 90 nights is allowed over all 20 cells of this study" in said


def test_names_are_not_broken() -> None:
    long = "acme/a-judge-of-a-long-name"
    console = Console(file=StringIO(), width=80)
    console.print(
        detectable_table(
            detectable_effects(STUDY.model_copy(update={"judges": [long]}), 60, {}), 60
        )
    )
    assert isinstance(console.file, StringIO)
    assert long in console.file.getvalue()


def test_below_ten_questions_nothing_can_be_seen() -> None:
    # 785 samples by hand, as above
    rows = detectable_effects(STUDY, 9, {"offline/random": Spread(0.5, "told")})
    (told,) = advice(rows, 9, STUDY, 9)
    assert told.startswith(
        "No shift can be detected, however large: a finding needs 10 independent"
    )
    assert "only 9. To detect the smallest relevant shift (.05) takes about 785 samples" in told
    assert "however large" not in " ".join(advice(rows, 10, STUDY, 10))


def test_few_questions_that_carry_most_samples_see_nothing() -> None:
    # 300 samples of one question and 30 of their own: methods.md, section 16, has df 1.2.
    sizes = [300, *[1] * 30]
    asked = [
        {"perturbation": "boast", "arm": "experimental", "cluster": f"q{q}", "sample": f"q{q}/{at}"}
        for q, many in enumerate(sizes)
        for at in range(many)
    ]
    df = freedom_of(pl.DataFrame(asked))
    assert df == pytest.approx(1.2, abs=0.05)
    rows = detectable_effects(STUDY, 330, {"offline/random": Spread(0.5, "told")})
    (told,) = advice(rows, 330, STUDY, 31, df)
    assert (
        "too few questions for so unequal numbers of samples (1.2 degrees of freedom, and" in told
    )
    assert freedom_of(pl.DataFrame([row for row in asked if row["cluster"] == "q0"])) is None
    assert "however large" not in " ".join(advice(rows, 330, STUDY, 31, 30.0))


def test_questions_are_those_of_the_sham_where_there_is_one() -> None:
    arms = [("boast", "experimental", 12), ("boast", "sham", 9), ("calm", "experimental", 10)]
    rows = [
        {"perturbation": name, "arm": arm, "cluster": f"q{at % many}"}
        for name, arm, many in arms
        for at in range(20)
    ]
    control = {"perturbation": None, "arm": "control", "cluster": "q0"}
    assert questions_of(pl.DataFrame([*rows, control])) == 9
    assert questions_of(pl.DataFrame([row for row in rows if row["arm"] != "sham"])) == 10
