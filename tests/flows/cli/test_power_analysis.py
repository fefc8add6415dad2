from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from rich.console import Console

from flows.cli.power_analysis import (
    DetectableEffect,
    JudgeSpread,
    advice,
    detectable_effects,
    detectable_tables,
    earlier_spreads,
    effect_advice,
    effect_table,
    freedom_of,
    questions_of,
    validity_line,
)
from flows.studies import Study
from schemas.results import Estimates, Findings
from tasks.kit.defaults import Thresholds
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]
STUDY = Study(judges=["offline/honest", "offline/random"], votes_per_pair=2)


def lines_of(*tables: object, width: int = 90) -> list[str]:
    console = Console(width=width, record=True, file=StringIO())
    for table in tables:
        console.print(table)
    return console.export_text().splitlines()


def test_what_is_seen_by_hand() -> None:
    (one, other) = rows = detectable_effects(
        STUDY, 120, {"offline/random": JudgeSpread(0.5, "reported")}
    )
    # By hand: 2.8016 * .3901 / sqrt(120), and (2.8016 * .3901 / .05)^2.
    assert (one.smallest, one.needed) == (pytest.approx(0.09976, abs=1e-5), 478)
    assert (other.smallest, other.needed) == (pytest.approx(0.12788, abs=1e-5), 785)
    # 240 calls an arm: 40 samples of six votes, 2.8016 * .2350 / sqrt(40)
    shown = [line.split() for line in lines_of(*detectable_tables(rows, 120, 2))]
    assert ["offline/honest", ".39", "typical", "judge", ".100", "478", ".104"] in shown


def test_grades_and_passes_are_planned_in_their_own_units() -> None:
    limit = Thresholds(minimum_rating_shift=0.5, minimum_pass_rate_shift=0.1)
    own = {"judges": ["offline/honest"], "prompts": ["single_v1", "binary_v1"], "thresholds": limit}
    grade, passed = rows = detectable_effects(STUDY.model_copy(update=own), 100, {})
    # Grades: variance 2 (1 - .75) / 2 votes, so 2.8016 * .5 / sqrt(100), and (2.8016 * .5 / .5)^2.
    assert (grade.unit, grade.smallest) == ("sd", pytest.approx(0.14008, abs=1e-5))
    assert grade.needed == 8
    # Passes: .22 / 2, so 2.8016 * .3317 / sqrt(100), and (2.8016 * .3317 / .1)^2 = 86.3.
    assert (passed.unit, passed.smallest) == ("share", pytest.approx(0.09292, abs=1e-5))
    assert passed.needed == 87
    shown = "\n".join(lines_of(*detectable_tables(rows, 100, 2)))
    assert "shift (sd) with 100 samples (80 % power)" in shown
    assert "shift (pass rate) with 100 samples (80 % power)" in shown
    # More votes of the same question help as much as more questions, so there is no column.
    assert "6 votes" not in shown
    said = " ".join(advice(rows, 100, STUDY.model_copy(update=own), 100))
    assert said.startswith(
        "The design can detect the smallest relevant shift (.5 or .1) with 80 % power."
    )
    assert "Repeated grades of one answer are taken to correlate by .75." in said


def measured(path: Path, makes: tuple[Make, ...], rows: list[dict[str, Any]], **more: Any) -> Path:
    """Save estimates and the findings about them."""
    make_estimates, make_findings = makes
    design = {"judge": "offline/honest", "prompt": STUDY.prompts[0], "votes_per_pair": 2, **more}
    usual = {"statistic": "mps_sham", "perturbation": "fake_reference", **design}
    estimates = make_estimates([usual | row for row in rows])
    store = Warehouse(path / "v.duckdb")
    found = Saving(Findings, make_findings(estimates)), Saving(Estimates, estimates)
    store.save(found, run="r", study="s")
    return store.path


@pytest.fixture
def makes(make_estimates: Make) -> tuple[Make, ...]:
    def findings(estimates: pl.DataFrame) -> pl.DataFrame:
        units = {"mps_sham": "score", "rating_shift_sd": "sd"}
        unit = pl.col("statistic").cast(pl.String).replace(units)
        flaw = pl.col("perturbation") == "factual_error"
        kind = pl.when(flaw).then(pl.lit("detract")).otherwise(pl.lit("promote"))
        return Findings.draft(estimates.with_columns(unit=unit, kind=kind, minimum=0.05))

    return make_estimates, findings


@pytest.mark.parametrize(
    ("df", "changes", "source"),
    [
        (30, {}, "31 earlier shifts"),
        (30, {"votes_per_pair": 6}, "31 earlier shifts at 6 votes"),
        (29, {}, None),
        (30, {"mode": "paper"}, None),
        (30, {"prompt": "pair_json_v1"}, None),
        (30, {"prompt": "single_v1"}, None),
    ],
)
def test_earlier_shifts_tell_the_spread(
    df: int, changes: dict[str, Any], source: str | None, makes: Any, tmp_path: Path
) -> None:
    error = {"estimate": 0.0, "standard_error": 0.2, "n": 31, "clusters": df + 1, "df": df}
    reported = earlier_spreads(STUDY, measured(tmp_path, makes, [error], **changes))
    if source is None:
        assert reported == {}
        return
    assert list(reported) == ["offline/honest"]
    spread = reported["offline/honest"]
    assert spread.source == source
    # .2 sqrt(31); from six votes to two by .3901 / .2350.
    scale = 0.39006 / 0.23504 if "votes_per_pair" in changes else 1
    assert spread.sigma == pytest.approx(0.2 * 31**0.5 * scale, rel=1e-3)


def test_easy_pairs_are_named_as_the_logits_decide(makes: Any, tmp_path: Path) -> None:
    row = {"estimate": 0.0, "standard_error": 0.01, "n": 60, "clusters": 60, "df": 59}
    path = measured(tmp_path, makes, [row])
    with duckdb.connect(str(path)) as connection:
        connection.execute("update findings set by_logits = true")
    spreads = earlier_spreads(STUDY, path)
    assert spreads["offline/honest"].source == "60 easy pairs"
    rows = detectable_effects(STUDY, 5, spreads)
    caveat = (
        "easy pairs (offline/honest): the shift hardly moves, so the effect in logits decides, "
        "which may take far more samples."
    )
    assert caveat in " ".join(advice(rows, 5, STUDY, 5))
    assert caveat in " ".join(advice(rows, 60, STUDY, 60))
    assert "easy pairs" not in " ".join(advice(detectable_effects(STUDY, 60, {}), 60, STUDY))


def test_a_source_is_explained_where_it_is_shown() -> None:
    def said(source: str) -> str:
        rows = detectable_effects(STUDY, 60, {"offline/random": JudgeSpread(0.2, source)})
        return " ".join(advice(rows, 60, STUDY, 60))

    earlier = "source: the spread is that of the judge's shifts on so many samples of earlier audit"
    others = "other perturbations: no earlier audit has those of this study."
    votes = "at N votes: these audits had N votes per pair; the spread is converted."
    for source, shown in (
        ("reported", set()),
        ("120 earlier shifts", {earlier}),
        ("120 shifts, other perturbations", {earlier, others}),
        ("120 earlier shifts at 2 votes", {earlier, votes}),
    ):
        text = said(source)
        assert {each for each in (earlier, others, votes) if each in text} == shown


def test_cells_count_by_their_degrees_of_freedom(makes: Any, tmp_path: Path) -> None:
    # 32 questions of four samples that all say the same have the error of 32 samples.
    cells = [(0.1, 128, 31), (0.2, 50, 49)]
    rows = [
        {"perturbation": f"p{n}", "estimate": 0.0, "standard_error": e, "n": n, "df": df}
        for e, n, df in cells
    ]
    spread = earlier_spreads(STUDY, measured(tmp_path, makes, rows))["offline/honest"]
    assert spread.source == "178 shifts, other perturbations"
    assert spread.sigma == pytest.approx(((31 * 1.28 + 49 * 2.0) / 80) ** 0.5)


def test_shifts_under_the_perturbations_of_the_study_come_first(makes: Any, tmp_path: Path) -> None:
    row = {"estimate": 0.0, "n": 60, "df": 59}
    rows = [
        row | {"perturbation": "fake_reference", "standard_error": 0.1},
        row | {"perturbation": "bandwagon", "standard_error": 0.3},
    ]
    path = measured(tmp_path, makes, rows)
    for names, sigma, source in (
        (["fake_reference"], 0.1, "60 earlier shifts"),
        (["rich_content"], ((0.1**2 + 0.3**2) / 2) ** 0.5, "120 shifts, other perturbations"),
    ):
        study = STUDY.model_copy(update={"perturbations": names})
        spread = earlier_spreads(study, path)["offline/honest"]
        assert spread == (pytest.approx(sigma * 60**0.5), source, False)


def test_shifts_that_are_all_equal_have_the_spread_that_their_interval_leaves(
    makes: Any, tmp_path: Path
) -> None:
    row = {"estimate": 0.0, "n": 60, "clusters": 60, "df": 59, "low": -0.06017, "high": 0.06017}
    spread = earlier_spreads(STUDY, measured(tmp_path, makes, [row]))["offline/honest"]
    # 1.96^2 / (60 + 1.96^2) = .06017 either way is 1.96 sigma / sqrt(60)
    assert spread == (pytest.approx(0.2378, abs=1e-4), "60 earlier shifts", False)


def test_samples_count_once_however_many_studies_and_waves_share_them(
    makes: Any, tmp_path: Path
) -> None:
    row = {"estimate": 0.0, "standard_error": 0.2, "n": 12, "clusters": 12, "df": 11}
    rows = [row | {"wave": wave} for wave in ("monday", "tuesday", "wednesday")]
    assert earlier_spreads(STUDY, measured(tmp_path, makes, rows)) == {}
    larger = row | {"wave": "thursday", "standard_error": 0.1, "n": 60, "df": 59}
    spread = earlier_spreads(STUDY, measured(tmp_path, makes, [*rows, larger]))["offline/honest"]
    assert spread == (pytest.approx(0.1 * 60**0.5), "60 earlier shifts", False)


def test_shifts_by_flaws_tell_the_spread_of_a_study_that_has_nothing_else(
    makes: Any, tmp_path: Path
) -> None:
    rows = [
        {"perturbation": name, "estimate": 0.0, "standard_error": error, "n": 60, "df": 59}
        for name, error in (("fake_reference", 0.1), ("factual_error", 0.3))
    ]
    path = measured(tmp_path, makes, rows)
    flaws = STUDY.model_copy(update={"perturbations": ["factual_error"]})
    for study, error in ((STUDY, 0.1), (flaws, 0.3)):
        spread = earlier_spreads(study, path)["offline/honest"]
        assert spread == (pytest.approx(error * 60**0.5), "60 earlier shifts", False)


def test_a_judge_of_single_answers_has_the_spread_of_its_rating_shifts(
    makes: Any, tmp_path: Path
) -> None:
    own = STUDY.model_copy(update={"prompts": ["single_v1"]})
    row = {"statistic": "rating_shift_sd", "mode": "any", "prompt": "single_v1", "n": 60, "df": 59}
    path = measured(tmp_path, makes, [row | {"estimate": 0.1, "standard_error": 0.1}])
    # .1 sqrt(60); one vote instead of two: twice the variance.
    assert earlier_spreads(own, path)["offline/honest"].sigma == pytest.approx(0.6**0.5)
    single = earlier_spreads(own.model_copy(update={"votes_per_pair": 1}), path)
    assert single["offline/honest"] == (
        pytest.approx(1.2**0.5),
        "60 earlier shifts at 2 votes",
        False,
    )


def test_the_level_and_the_questions_are_reported() -> None:
    rows = detectable_effects(STUDY, 160, {"offline/random": JudgeSpread(0.2, "reported")})
    reported = " ".join(advice(rows, 160, STUDY, 20))
    assert "this many samples per perturbation detect (raw p below .05)" in reported
    assert "adjusted over the study's 8 cells to be below .05" in reported
    assert "The 160 samples come from 20 questions. The figures for offline/honest" in reported
    assert "independent" not in " ".join(advice(rows, 160, STUDY, 160))


def test_without_a_warehouse_nothing_is_reported(tmp_path: Path) -> None:
    assert earlier_spreads(STUDY, tmp_path / "none.duckdb") == {}
    assert not (tmp_path / "none.duckdb").exists()


def test_the_table_fits_90_columns() -> None:
    spread = JudgeSpread(0.39, "9999 earlier shifts")
    row = DetectableEffect("together/qwen-3.8-flash", "score", spread, 0.05, 0.123, 99_999)
    lines = lines_of(*detectable_tables([row, row], 9999, 2))
    assert max(map(len, lines)) <= 90
    assert sum("together/qwen-3.8-flash" in line for line in lines) == 2
    assert "samples for .05" in lines[1]


def test_what_an_effect_takes_by_hand() -> None:
    rows = detectable_effects(STUDY, 120, {"offline/random": JudgeSpread(0.5, "reported")})
    # Spaces also separate thousands.
    lines = [line.split() for line in lines_of(effect_table(rows, 2, 0.074))]
    assert "shift of .074" in " ".join(lines[0])
    # Methods, section 4: a typical judge's 221 and 80 of two and six votes, at a sigma of .39 and
    # .235; here (2.8016 * .3901 / .074)^2 = 218.1 and (2.8016 * .2350 / .074)^2 = 79.2, and
    # (2.8016 * .2818 / .074)^2 = 113.8 of four; three arms.
    assert ["offline/honest", "219", "1", "314", "114", "1", "368", "80", "1", "440"] in lines
    # (2.8016 * .5 / .074)^2 = 358.4
    assert any(line[:4] == ["offline/random", "359", "2", "154"] for line in lines)
    # As a dASR: (2.8016 * (.58 + .09 * .074 / .245) / .074)^2 = 528.4
    reported = effect_advice(rows, 120, 2, 0.074)
    assert "The study has 120 samples at 2 votes per pair." in reported
    assert "about 529 samples of a typical judge, 9\u202f522 calls" in reported


def test_a_study_that_cannot_see_what_matters_is_flagged() -> None:
    rows = detectable_effects(STUDY, 300, {"offline/random": JudgeSpread(0.2, "reported")})
    reported = " ".join(advice(rows, 300, STUDY))
    assert "for offline/honest: with 2 votes per pair that takes about 478 samples." in reported
    # 2.8016 * .3 / sqrt(300) = .0485, of a noisy one .0663
    assert (
        "The smallest shift is .049 for a judge with little noise and .066 for a noisy" in reported
    )
    assert "dASR" not in reported
    six = STUDY.model_copy(update={"votes_per_pair": 6})
    assert "detectable dASR of a typical judge: .10" in " ".join(
        advice(detectable_effects(six, 300, {}), 300, six)
    )
    assert (
        "cannot detect the smallest relevant shift (.05) with 80 % power for any judge"
        in " ".join(advice(detectable_effects(six, 100, {}), 100, six))
    )
    noisier = detectable_effects(STUDY, 100, {"offline/random": JudgeSpread(0.5, "reported")})
    assert next(advice(noisier, 100, STUDY)).endswith(
        "takes from about 478 samples (offline/honest) to 785 (offline/random)."
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
    assert next(advice([easy], 300, own)).endswith("shift (.2) with 80 % power.")


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
    rows = detectable_effects(STUDY.model_copy(update={"judges": [long]}), 60, {})
    assert long in "\n".join(lines_of(*detectable_tables(rows, 60, 2)))


def test_below_ten_questions_nothing_can_be_seen() -> None:
    # 785 samples by hand, as above
    rows = detectable_effects(STUDY, 9, {"offline/random": JudgeSpread(0.5, "reported")})[1:]
    (reported,) = advice(rows, 9, STUDY, 9)
    assert reported.startswith(
        "No shift can be detected, however large: a finding needs 10 independent"
    )
    assert (
        "fewest has 9. To detect the smallest relevant shift (.05) takes about 785 samples"
        in reported
    )
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
    rows = detectable_effects(STUDY, 330, {"offline/random": JudgeSpread(0.5, "reported")})
    (reported,) = advice(rows, 330, STUDY, 31, df)
    assert (
        "too few questions for so unequal numbers of samples (1.2 degrees of freedom, and"
        in reported
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


@pytest.mark.parametrize(
    ("sizes", "limit", "said"),
    [
        # Wilson's upper limit of none of n is 3.8415 / (n + 3.8415): .278 of 10, .10 from 34.6 on.
        (
            [9] * 10,
            0.1,
            "counts 10 questions, reaches to .278; the limit is .10. To pass takes 35 questions.",
        ),
        ([2] * 34, 0.1, "reaches to .102; the limit is .10. To pass takes 35 questions."),
        ([2] * 35, 0.1, ""),
        ([2] * 10, 0.3, ""),
        ([2] * 10, 0.05, "To pass takes 73 questions."),
        # One question with 30 pairs, 39 with one: (30 + 39)^2 / (900 + 39) = 5.07 questions count.
        ([30, *[1] * 39], 0.1, "reaches to .431; the limit is .10. To pass takes 277 questions."),
        ([], 0.1, ""),
    ],
)
def test_too_few_questions_for_the_gate_validity_are_reported(
    sizes: list[int], limit: float, said: str
) -> None:
    clusters = [f"q{place}" for place, many in enumerate(sizes) for _ in range(many)]
    pairs: Any = pl.DataFrame({"cluster": clusters}, schema={"cluster": pl.String})
    line = validity_line(pairs, limit)
    assert line.endswith(said)
    assert bool(line) == bool(said)
