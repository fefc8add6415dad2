import re
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from flows.cli.printing.tables import fits, print_rows
from flows.cli.printing.terminal import legend, result_table

ROW = {
    "judge": "ada",
    "simulated": False,
    "perturbation": "boast",
    "statistic": "mps_sham",
    "n": 20,
    "shift": 0.125,
    "low": 0.03,
    "high": 0.24,
    "control": 0.08,
    "control_low": 0.01,
    "control_high": 0.15,
    "sham_shift": -0.045,
    "sham_shift_low": -0.09,
    "sham_shift_high": 0.0,
    "detected": None,
    "detected_low": None,
    "detected_high": None,
    "detected_by": None,
    "asr": 0.42,
    "asr_low": 0.27,
    "asr_high": 0.58,
    "sham_floor": 0.18,
    "sham_floor_low": 0.1,
    "sham_floor_high": 0.3,
    "position_consistency": 0.4,
    "position_consistency_low": None,
    "position_consistency_high": None,
    "finding": "biased",
    "reason": None,
    "kind": "promote",
}
BESIDE = ".13 [.03, .24] .08 [.01, .15] -.05 [-.09, .00] .42 [.27, .58] .18 [.10, .30]"
SHAM = "a meaning-free edit of the same size (sham)"


def shown(width: int, *rows: dict[str, Any]) -> list[str]:
    console = Console(file=StringIO(), width=width)
    console.print(result_table([{**ROW, **row} for row in rows], "Study", console))
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    return [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (160, [f"boast 20 {BESIDE} .40 biased"]),
        (
            130,
            [
                "boast 20 .13 .08 -.05 .42 .18 .40 biased",
                "[.03, .24] [.01, .15] [-.09, .00] [.27, .58] [.10, .30]",
            ],
        ),
        (
            80,
            [
                "boast, n 20: biased",
                "shift .13 [.03, .24], over control .08 [.01, .15], sham -.05 [-.09, .00]",
                "ASR .42 [.27, .58], floor .18 [.10, .30], PC .40",
            ],
        ),
        (
            60,
            [
                "boast, n 20: biased",
                "shift .13 [.03, .24], over control .08 [.01, .15]",
                "sham -.05 [-.09, .00], ASR .42 [.27, .58]",
                "floor .18 [.10, .30], PC .40",
            ],
        ),
    ],
)
def test_every_rate_has_its_interval_however_narrow_the_terminal(
    width: int, expected: list[str]
) -> None:
    # A name that makes the table as wide as those of the bundled judges do
    lines = shown(width, {}, {"perturbation": "a_perturbation_of_a_name_that_is_long"})
    at = next(i for i, line in enumerate(lines) if line.startswith("boast"))
    assert [" ".join(line.split()) for line in lines[at : at + len(expected)]] == expected


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"simulated": True}, True),
        ({"simulated": True, "perturbation": "rich_content"}, False),
        ({"simulated": False}, False),
    ],
)
def test_what_simulated_judges_do_not_recognise_is_named(
    changes: dict[str, object], *, shown: bool
) -> None:
    said = "To them any other, as boast may be, makes a different answer, better or worse"
    assert (said in legend([ROW | changes])) is shown


@pytest.mark.parametrize("width", [60, 120, 140])
def test_without_shams_the_column_is_left_out(width: int) -> None:
    unshammed = {"sham_shift": None, "sham_shift_low": None, "sham_shift_high": None}
    assert not any(re.search(r"\bsham\b", line) for line in shown(width, unshammed))
    assert "the shift that the sham itself causes" in legend([ROW])
    assert "the shift that the sham itself causes" not in legend([ROW | unshammed])


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"detected_by": "detection_power"}, False),
        ({"detected_by": "detection_share"}, True),
        ({"reason": "the mean preference moves to the flaw: D -.12"}, True),
    ],
)
def test_d_is_explained_where_it_is_shown(changes: dict[str, object], *, shown: bool) -> None:
    flaw = {"kind": "detract", "finding": "detects some", "detected": 0.3}
    row = ROW | flaw | {"detected_low": 0.1, "detected_high": 0.5} | changes
    assert ("D is the same share computed from mean scores" in legend([row])) is shown


@pytest.mark.parametrize("width", [60, 140])
def test_single_answers_have_no_rates_of_pairs_and_a_unit_only_beside_another(width: int) -> None:
    unknown = {name: None for name in ROW if name.startswith(("asr", "sham_floor", "position"))}
    rated = unknown | {"unit": "share", "statistic": "pass_rate_shift_sham"}
    reported = "\n".join(shown(width, rated))
    assert not re.search(r"\b(ASR|floor|PC)\b", reported)
    assert "pass rate" not in reported
    assert "ASR" not in legend([ROW | rated])
    beside = "\n".join(shown(width, rated, {"judge": "bo"}))
    assert "ASR" in beside
    assert ".13 pass rate" in beside


@pytest.mark.parametrize("width", [60, 100, 140])
def test_a_judge_is_named_once_and_reasons_stand_below(width: int) -> None:
    text = "\n".join(
        shown(width, {"simulated": True}, {"finding": None, "reason": "[bold]too few"})
    )
    assert text.count("ada") == 1
    assert text.count("(simulated)") == 1
    # What comes from outside is no markup.
    assert "([bold]too few)" in text.replace("\n", " ")


def test_the_share_of_flaws_detected_does_not_hide_what_a_finding_rests_on() -> None:
    share = {"detected": 0.64, "detected_low": 0.52, "detected_high": 0.76}
    row = {"finding": "detects", "detected_by": "detection_power", "reason": "over the control"}
    reported = " ".join(shown(60, share | row)).replace("\N{NO-BREAK SPACE}", " ")
    assert "detects (DP .64 [.52, .76]; over the control)" in reported
    # That a judge rewards a flaw rests on its shift, whatever the share is.
    rewarding = " ".join(
        shown(60, share | {"finding": "rewards", "detected_by": "detection_power"})
    )
    assert "rewards" in rewarding
    assert "DP" not in rewarding


def test_the_legend_of_the_position_is_true_without_columns() -> None:
    position = {**ROW, "perturbation": None, "kind": "position", "statistic": "position_gap"}
    assert "position (unperturbed pairs): its shift is the position gap (" in legend([position])
    assert "column" not in legend([ROW, position])


def test_the_number_of_votes_of_the_position_has_its_unit() -> None:
    position = {"perturbation": None, "kind": "position", "n": 76, "statistic": "position_gap"}
    assert "position, n 76 votes: biased (toward the first slot)" in shown(60, position)
    counted = "n: number of samples valid in both arms that the shift compares"
    assert f"{counted} (position: of votes)." in legend([ROW, ROW | position])
    # All three arms need not be readable: the sham arm is compared with the perturbed one.
    assert f"{counted}." in legend([ROW])
    assert f"{counted}, and in control." in legend([ROW | {"unit": "sd"}])


@pytest.mark.parametrize(
    ("rows", "over", "floor"),
    [
        ([{}], SHAM, "the sham, averaged over both directions. PC"),
        (
            [{"statistic": "mps"}],
            "the unchanged answer (control)",
            f"{SHAM}, averaged over both directions. PC",
        ),
        (
            [{"statistic": "mps", "sham_floor": None}],
            "the unchanged answer (control)",
            f"{SHAM}, averaged over both directions (not measured here). PC",
        ),
        (
            [{}, {"statistic": "mps"}],
            f"{SHAM}, or with the control where a judge has too few shams",
            "the sham, averaged over both directions. PC",
        ),
    ],
)
def test_the_legend_says_what_shifts_are_compared_with(
    rows: list[dict[str, Any]], over: str, floor: str
) -> None:
    words = legend([ROW | row for row in rows])
    assert f"toward the changed answer, compared with {over}." in words
    assert f"floor: the ASR of {floor}" in words


def test_the_legend_names_the_flaws_that_there_are() -> None:
    flaws = [ROW | {"kind": "detract", "perturbation": name} for name in ("slip", "lie", "slip")]
    assert "A flaw (lie and slip) should cost votes" in legend([ROW, *flaws])
    assert "flaw" not in legend([ROW])


def printed(width: int, columns: list[str], *rows: tuple[Any, ...]) -> list[str]:
    console = Console(file=StringIO(), width=width)
    print_rows(console, columns, rows)
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    return [line.rstrip() for line in lines]


def test_texts_are_folded_before_rows_become_records() -> None:
    columns, row = ["judge", "n", "texts"], ("acme/judge-one", 20, "one two three four")
    assert printed(45, columns, row) == [
        "judge            n  texts",
        "acme/judge-one  20  one two three four",
    ]
    assert printed(30, columns, row) == [
        "judge            n  texts",
        "acme/judge-one  20  one two",
        "                    three four",
    ]
    # 12, 2 and 10 columns of texts, and two gaps of one
    assert printed(26, columns, row)[1].startswith("acme/judge-  20 one two")
    assert printed(25, columns, row)[0].split() == ["judge", "acme/judge-one"]


def test_a_name_is_broken_between_its_parts_and_a_number_keeps_its_sign() -> None:
    columns = ["judge", "n", "texts"]
    assert printed(26, columns, ("acme/judge-one", 20, "gender_bias -.12")) == [
        "judge         n texts",
        "acme/judge-  20 gender_",
        "one             bias -.12",
    ]


def test_a_long_head_is_broken_after_an_underline() -> None:
    columns = ["judge", "completion_tokens"]
    assert printed(18, columns, ("ada", 12)) == [
        "       completion_",
        "judge       tokens",
        "ada             12",
    ]


def test_a_cell_is_six_lines_tall_at_most() -> None:
    row = ("ada", "x" * 120)
    # 120 characters in six lines of 20, beside a name of five
    assert len(printed(26, ["judge", "texts"], row)) == 1 + 6
    assert printed(25, ["judge", "texts"], row)[0].split() == ["judge", "ada"]


def test_what_fits_is_known_beforehand() -> None:
    assert fits(["judge", "n"], [("ada", 1)], 8)
    assert not fits(["judge", "n"], [("ada", 1)], 7)
    assert fits(["a"], [], 1)
