import gzip
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from flows._measure import estimates_of
from flows.cli import main
from schemas.judging import ARMS, CHOICES, SIDES, VoteLog
from schemas.results import FINDINGS, Estimates
from tasks.aggregate import match_groups, tally_votes
from tasks.conclude import conclude
from tasks.read_votes import COLUMNS, read_votes
from tasks.statistics import STATISTICS

Make = Callable[..., Any]
Gold = dict[str, Any]
Reach = Callable[..., tuple[Path, Gold]]
KIND = {
    "factual_error": "detract", "gender": "detract", "reference": "promote",
    "rich_content": "promote",
}  # fmt: skip
SHORT = {"anchor": "A1", "tie": "Tie", "target": "A2"}
VARIANTS = [(None, 8.0), ("min_elapsed_s_0", 0.0)]
SHARES = {
    "asr", "sham_floor", "position_consistency", "primacy", "recency", "random_baseline",
    "random_baseline_coin", "valid_rate", "invalid_rate", "abstain_rate", "ambiguous_rate",
    "missing_rate", "cached_rate",
}  # fmt: skip


def run(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["measure", str(path), *options])


def write(path: Path, votes: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(vote) + "\n" for vote in votes), encoding="utf-8")
    return path


# --- The public reference log, whose gold was computed in fractions elsewhere ---------------------


def choice_of(vote: dict[str, Any], fastest: float) -> str:
    if vote["not_familiar"]:
        return "abstain"
    if vote["elapsed_s"] is not None and vote["elapsed_s"] < fastest:
        return "invalid"
    # By display position: Answer1 is what was shown first.
    return {"answer1": "first", "answer2": "second", "tie": "tie"}.get(
        vote["raw_vote"].lower(), "invalid"
    )


def converted(
    votes: list[dict[str, Any]], slots: dict[str, dict[str, str]], fastest: float
) -> Iterator[dict[str, Any]]:
    """Yield votes in the format of `voirdire measure`; a control vote serves each target."""
    for vote in votes:
        question, perturbation = vote["question_id"], vote["perturbation"]
        targets = {slots[question][perturbation]} if perturbation else slots[question].values()
        for target in sorted(set(targets)):
            yield {
                "judge": vote["judge"], "perturbation": perturbation,
                "kind": KIND.get(perturbation), "sample": f"{question}/{target}",
                "arm": "experimental" if perturbation else "control", "cluster": question,
                "shown_first": "target" if vote["first_slot"] == target else "anchor",
                "repeat": vote["vote_idx"], "choice": choice_of(vote, fastest),
            }  # fmt: skip


@pytest.fixture(scope="session")
def reference(reference_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Reach:
    folder = reference_data / "asr_votes_synthetic"
    gold = json.loads((folder / "gold.json").read_text(encoding="utf-8"))
    with gzip.open(folder / "votes.jsonl.gz", "rt", encoding="utf-8") as lines:
        votes = [json.loads(line) for line in lines]
    assert {vote["judge"] for vote in votes if vote["elapsed_s"] is not None} == {"human"}

    def reach(variant: str | None, fastest: float) -> tuple[Path, Gold]:
        path = tmp_path_factory.mktemp("reference") / "votes.jsonl"
        results = gold["sensitivity"][variant] if variant else gold["results"]
        return write(path, list(converted(votes, gold["slots"], fastest))), results

    return reach


@pytest.mark.parametrize(("variant", "fastest"), VARIANTS)
def test_reference_attack_success(reference: Reach, variant: str | None, fastest: float) -> None:
    path, gold = reference(variant, fastest)
    result = run(path, "--mode", "paper", "--format", "json", "--only", "asr")
    assert result.exit_code == 0, result.output
    found = {(row["judge"], row["perturbation"]): row for row in json.loads(result.stdout)}
    wanted = {
        (judge, name): cell
        for judge, values in gold.items()
        for name, cell in values["perturbations"].items()
    }
    assert found.keys() == wanted.keys()
    assert len(found) == 20
    for cell, row in found.items():
        expected = wanted[cell]
        v = expected["formula"]
        assert v == {"promote": "V1", "detract": "V2"}[row["kind"]]
        hits = expected["V1_given_1" if v == "V1" else "V2_given_2"]
        assert (row["n"], row["hits"]) == (expected[v], hits), cell
        assert (row["dropped"], row["votes_per_pair"]) == (expected["n_excluded"], 6), cell
        assert row["estimate"] == expected["ASR"], cell
        assert row["low"] <= row["estimate"] <= row["high"], cell


@pytest.mark.parametrize(("variant", "fastest"), VARIANTS)
def test_reference_transitions(reference: Reach, variant: str | None, fastest: float) -> None:
    path, gold = reference(variant, fastest)
    shifts = match_groups(tally_votes(read_votes(path), "paper"))
    for (judge, name), rows in shifts.partition_by(
        "judge", "perturbation", as_dict=True, include_key=False
    ).items():
        pairs = rows.select("control", "experimental").drop_nulls().rows()
        found = Counter(f"{SHORT[before]}->{SHORT[after]}" for before, after in pairs)
        expected = gold[judge]["perturbations"][name]
        assert found == expected["transitions"], (judge, name)
        assert (len(pairs), rows.height - len(pairs)) == (expected["n"], expected["n_excluded"])


@pytest.mark.parametrize(("variant", "fastest"), VARIANTS)
def test_reference_positions(reference: Reach, variant: str | None, fastest: float) -> None:
    path, gold = reference(variant, fastest)
    log = read_votes(path)
    # Control votes of a question with two targets stand twice; the first target's are enough.
    control = pl.col("arm") == "control"
    once = log.filter(~control | (pl.col("sample") == pl.col("sample").min().over("cluster")))
    rates = {row["judge"]: row for row in estimates_of(VoteLog.of(once), "paper").filter(
        pl.col("perturbation").is_null(), statistic="valid_rate").to_dicts()}  # fmt: skip
    for judge, expected in gold.items():
        position = expected["position"]
        assert rates[judge]["hits"] == position["n_valid"]
        assert rates[judge]["n"] - rates[judge]["hits"] == sum(expected["dropped"].values())
        counts = Counter(once.filter(pl.col("judge") == judge)["choice"])
        for choice in ("first", "second", "tie"):
            assert counts[choice] / position["n_valid"] == pytest.approx(position[choice])


# --- The command --------------------------------------------------------------------------------


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """Twenty questions, each won by the target once it boasts, whatever is shown first."""
    rows = []
    for arm, choices in (("control", ("first", "second")), ("experimental", ("second", "first"))):
        planted = arm != "control"
        for question in range(20):
            for side, choice in zip(SIDES, choices, strict=True):
                values = (
                    "ada", "boast" if planted else None, "promote" if planted else None, arm,
                    f"q{question}/a2", f"q{question}", side, 0, choice,
                )  # fmt: skip
                rows.append(dict(zip(COLUMNS, values, strict=True)))
    return write(tmp_path / "own.jsonl", rows)


def test_table_tells_the_finding(votes: Path) -> None:
    result = run(votes)
    assert result.exit_code == 0, result.output
    assert "own.jsonl, mode balanced" in result.output
    line = next(line for line in result.output.splitlines() if "ada" in line)
    # Shift and ASR are 1; no floor without a sham; both orders agree.
    assert line.split()[:3] == ["ada", "boast", "+1.00"]
    assert "biased" in line


def test_json_and_csv_hold_the_same_estimates(votes: Path) -> None:
    as_json = pl.DataFrame(json.loads(run(votes, "--format", "json").stdout), Estimates.dtypes())
    text = run(votes, "--format", "csv").stdout
    as_csv = pl.read_csv(io.StringIO(text), schema=Estimates.dtypes())
    expected = estimates_of(read_votes(votes), "balanced")
    assert as_json.equals(expected)
    assert as_csv.drop("wave").equals(expected.drop("wave"))  # an empty text is null in CSV
    shift = expected.filter(pl.col("statistic") == "mps").to_dicts()[0]
    assert (shift["estimate"], shift["clusters"], shift["p_value"]) == (1.0, 20, 2.0**-19)


def test_only_some_statistics(votes: Path) -> None:
    result = run(votes, "--only", "asr", "--only", "mps", "--format", "json")
    assert [row["statistic"] for row in json.loads(result.stdout)] == ["asr", "mps"]
    table = run(votes, "--only", "primacy")
    assert table.exit_code == 0
    assert "primacy" in table.output
    strange = run(votes, "--only", "asrr")
    assert strange.exit_code == 2
    assert "no statistic 'asrr' here. Known: " in strange.output


@pytest.mark.parametrize("mode", ["paper", "balanced"])
def test_mode_is_kept(votes: Path, mode: str) -> None:
    rows = json.loads(run(votes, "--mode", mode, "--only", "asr", "--format", "json").stdout)
    assert [(row["mode"], row["estimate"]) for row in rows] == [(mode, 1.0)]


def test_bad_files_end_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"judge": 1}\n', encoding="utf-8")
    for wrong in (path, tmp_path, tmp_path / "nowhere.csv"):
        result = run(wrong)
        assert result.exit_code == 2
        assert result.output.startswith("voirdire: ")
        assert result.output.count("\n") == 1
        assert wrong.name in result.output


def test_names_from_outside_are_no_markup(tmp_path: Path, votes: Path) -> None:
    text = votes.read_text(encoding="utf-8").replace('"ada"', '"[red]<b>x</b>[/red]"')
    path = tmp_path / "markup.jsonl"
    path.write_text(text, encoding="utf-8")
    for options in ((), ("--only", "asr")):
        result = run(path, *options)
        assert result.exit_code == 0
        assert "[red]" in "".join(result.output.split())


# --- Whatever the frame -------------------------------------------------------------------------

BALLOT = st.fixed_dictionaries(
    {
        "judge": st.sampled_from(["ada", "bea"]),
        "arm": st.sampled_from(ARMS),
        "sample": st.sampled_from(["q1/a1", "q1/a2", "q2/a2", "q3/a2"]),
        "shown_first": st.sampled_from(SIDES),
        "repeat": st.integers(0, 2),
    }
)
STUDY = st.tuples(
    st.lists(BALLOT, max_size=60, unique_by=lambda ballot: tuple(ballot.values())),
    st.sampled_from([["tie"], ["invalid", None], ["first"], ["first", "second"], [*CHOICES, None]]),
    st.sampled_from([None, "q"]),
    st.sampled_from(["promote", "detract"]),
    st.randoms(use_true_random=False),
)


def check(row: dict[str, Any]) -> None:
    """Assert what holds of every estimate."""
    numbers = [value for value in row.values() if isinstance(value, float)]
    assert all(math.isfinite(number) for number in numbers), row
    estimate, low, high = row["estimate"], row["low"], row["high"]
    if estimate is None:
        assert (low, high, row["p_value"], row["n"]) == (None, None, None, 0), row
        assert row["reason"], row
        return
    assert (0 if row["statistic"] in SHARES else -1) <= estimate <= 1, row
    assert (low is None) == (high is None) == (row["level"] is None), row
    if low is not None:
        assert low <= estimate <= high, row
        assert row["clusters"] > 1, row
    elif row["statistic"] not in {"random_baseline", "random_baseline_coin"}:
        assert row["reason"] == "a single cluster: no interval", row


@settings(max_examples=12)
@given(STUDY)
def test_no_frame_breaks_the_statistics(make_vote_log: Make, study: Any) -> None:
    ballots, choices, cluster, kind, random = study
    rows = []
    for ballot in ballots:
        planted = ballot["arm"] != "control"
        rows.append(
            {
                **ballot,
                "choice": random.choice(choices),
                "cluster": cluster or ballot["sample"][:2],
                "kind": kind if planted else None,
            }
        )
    log = make_vote_log(rows)
    for mode in ("paper", "balanced"):
        estimates = estimates_of(log, mode)
        assert set(estimates["statistic"]) <= {g for s in STATISTICS.values() for g in s.gives}
        for row in estimates.to_dicts():
            check(row)
        for row in conclude(estimates).to_dicts():
            assert row["finding"] in FINDINGS
            assert row["finding"] == "too few questions"  # three clusters at most
