"""The public reference log, whose gold was computed in fractions elsewhere."""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from flows.cli.main import main
from schemas.judging import VoteLog
from tasks.aggregate import count_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.readers.votes import read_votes
from tasks.statistics import STATISTICS

Gold = dict[str, Any]
Reach = Callable[..., tuple[Path, Gold]]
KIND = {
    "factual_error": "detract",
    "gender": "detract",
    "reference": "promote",
    "rich_content": "promote",
}
SHORT = {"anchor": "A1", "tie": "Tie", "target": "A2"}
VARIANTS = [(None, 8.0), ("min_elapsed_s_0", 0.0)]


# Six tests read the same two files.
read = cache(read_votes)


def write(path: Path, votes: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(vote) + "\n" for vote in votes), encoding="utf-8")
    return path


def choice_of(vote: dict[str, Any], fastest: float) -> str | None:
    if vote["raw_vote"] is None:
        return None
    if vote["not_familiar"]:
        return "abstain"
    if vote["elapsed_s"] is not None and vote["elapsed_s"] < fastest:
        return "invalid"
    # By display position: Answer1 is what was shown first.
    return {"answer1": "first", "answer2": "second", "tie": "tie"}.get(
        vote["raw_vote"].lower(), "invalid"
    )


def never_cast(
    votes: list[dict[str, Any]], slots: dict[str, dict[str, str]]
) -> Iterator[dict[str, Any]]:
    """Yield the planned ballots (six a pair) that the log does not have: no vote, but counted."""
    key = ("judge", "question_id", "perturbation", "vote_idx")
    cast = {tuple(vote[column] for column in key) for vote in votes}
    judges = sorted({vote["judge"] for vote in votes})
    for planned in product(judges, slots, [None, *KIND], range(6)):
        if planned not in cast:
            yield dict(zip(key, planned, strict=True), first_slot="answer1", raw_vote=None)


def converted(
    votes: list[dict[str, Any]], slots: dict[str, dict[str, str]], fastest: float
) -> Iterator[dict[str, Any]]:
    """Yield votes in the format of `voirdire measure`; a control vote serves each target."""
    for vote in [*votes, *never_cast(votes, slots)]:
        question, perturbation = vote["question_id"], vote["perturbation"]
        targets = {slots[question][perturbation]} if perturbation else slots[question].values()
        for target in sorted(set(targets)):
            yield {
                "judge": vote["judge"],
                "perturbation": perturbation,
                "kind": KIND.get(perturbation),
                "sample": f"{question}/{target}",
                "arm": "experimental" if perturbation else "control",
                "cluster": question,
                "shown_first": "target" if vote["first_slot"] == target else "anchor",
                "repeat": vote["vote_idx"],
                "choice": choice_of(vote, fastest),
            }


@pytest.fixture(scope="session")
def reference(reference_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Reach:
    folder = reference_data / "asr_votes_synthetic"
    gold = json.loads((folder / "gold.json").read_text(encoding="utf-8"))
    with gzip.open(folder / "votes.jsonl.gz", "rt", encoding="utf-8") as lines:
        votes = [json.loads(line) for line in lines]
    assert {vote["judge"] for vote in votes if vote["elapsed_s"] is not None} == {"human"}

    @cache
    def reach(variant: str | None, fastest: float) -> tuple[Path, Gold]:
        path = tmp_path_factory.mktemp("reference") / "votes.jsonl"
        results = gold["sensitivity"][variant] if variant else gold["results"]
        return write(path, list(converted(votes, gold["slots"], fastest))), results

    return reach


@pytest.mark.parametrize(("variant", "fastest"), VARIANTS)
def test_reference_attack_success(reference: Reach, variant: str | None, fastest: float) -> None:
    path, gold = reference(variant, fastest)
    result = CliRunner().invoke(
        main, ["measure", str(path), "--mode", "paper", "--format", "json", "--only", "asr"]
    )
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
        hits = expected["V2_given_1" if v == "V1" else "V2_given_2"]  # as the gold names them
        assert (row["n"], row["hits"]) == (expected[v], hits), cell
        assert (row["dropped"], row["votes_per_pair"]) == (expected["n_excluded"], 6), cell
        assert row["estimate"] == expected["ASR"], cell
        assert row["low"] <= row["estimate"] <= row["high"], cell


@pytest.mark.parametrize(("variant", "fastest"), VARIANTS)
def test_reference_transitions(reference: Reach, variant: str | None, fastest: float) -> None:
    path, gold = reference(variant, fastest)
    shifts = match_groups(tally_votes(count_votes(read(path)), "paper"))
    for (judge, name), rows in shifts.partition_by(
        "judge", "perturbation", as_dict=True, include_key=False
    ).items():
        pairs = rows.select("control", "experimental").drop_nulls().rows()
        found = Counter(f"{SHORT[before]}->{SHORT[after]}" for before, after in pairs)
        expected = gold[judge]["perturbations"][name]
        assert found == expected["transitions"], (judge, name)
        assert (len(pairs), rows.height - len(pairs)) == (expected["n"], expected["n_excluded"])


@pytest.mark.parametrize(("variant", "fastest"), VARIANTS)
def test_reference_flips(reference: Reach, variant: str | None, fastest: float) -> None:
    path, gold = reference(variant, fastest)
    tallies = count_votes(read(path))
    given = {"tallies": tallies, "shifts": match_groups(tally_votes(tallies, "paper"))}
    rows = pl.concat(STATISTICS[name](**given) for name in ("net_flips", "attrition"))
    order = ["A1", "Tie", "A2"]
    assert rows["statistic"].n_unique() == 8
    for row in rows.to_dicts():
        cell = gold[row["judge"]]["perturbations"][row["perturbation"]]
        ways = [[order.index(side) for side in way.split("->")] for way in cell["transitions"]]
        moves = list(zip(ways, cell["transitions"].values(), strict=True))
        up = sum(count for (before, after), count in moves if after > before)
        down = sum(count for (before, after), count in moves if after < before)
        hits = {"flips_up": up, "flips_down": down, "robustness_rate": cell["n"] - up - down}
        name = row["statistic"]
        if name in hits:
            assert (row["hits"], row["n"]) == (hits[name], cell["n"])
            assert row["dropped"] == cell["n_excluded"]
        elif name == "flip_direction":
            assert row["n"] == up + down
            assert row["estimate"] == pytest.approx((up - down) / (up + down), abs=1e-12)
        elif name == "asr_bounds":
            assert row["estimate"] == pytest.approx(cell["ASR"], abs=1e-12)
            assert row["low"] <= cell["ASR"] <= row["high"]
            # Those of V, and samples whose invalid votes could make them so.
            assert cell[cell["formula"]] <= row["n"] <= cell["n"] + cell["n_excluded"]


@pytest.mark.parametrize(("variant", "fastest"), VARIANTS)
def test_reference_positions(reference: Reach, variant: str | None, fastest: float) -> None:
    path, gold = reference(variant, fastest)
    log = read(path)
    # Control votes of a question with two targets stand twice; the first target's are enough.
    control = pl.col("arm") == "control"
    once = log.filter(~control | (pl.col("sample") == pl.col("sample").min().over("cluster")))
    rates = {
        row["judge"]: row
        for row in STATISTICS["validity"](tallies=count_votes(VoteLog.of(once)))
        .filter(pl.col("perturbation").is_null(), statistic="valid_rate")
        .to_dicts()
    }
    for judge, expected in gold.items():
        position = expected["position"]
        assert rates[judge]["hits"] == position["n_valid"]
        lost = rates[judge]["n"] - rates[judge]["hits"]
        never = once.filter(pl.col("judge") == judge)["choice"].null_count()
        assert lost == never + sum(expected["dropped"].values())
        counts = Counter(once.filter(pl.col("judge") == judge)["choice"])
        for choice in ("first", "second", "tie"):
            assert counts[choice] / position["n_valid"] == pytest.approx(position[choice])


@pytest.mark.parametrize(("variant", "fastest"), VARIANTS)
def test_reference_shares_of_slots(reference: Reach, variant: str | None, fastest: float) -> None:
    path, gold = reference(variant, fastest)
    log = read(path)
    control = pl.col("arm") == "control"
    once = log.filter(~control | (pl.col("sample") == pl.col("sample").min().over("cluster")))
    tallies = count_votes(VoteLog.of(once))
    # Gold pools control and all perturbations, the product has a row for each: add the counts.
    slots, ties = (
        STATISTICS[name](tallies=tallies)
        .filter(statistic=name)
        .group_by("judge")
        .agg(pl.col("hits", "n").sum())
        for name in ("first_pick_share", "tie_rate")
    )
    ties_of = {row["judge"]: row for row in ties.to_dicts()}
    assert slots.height == len(gold)
    for row in slots.to_dicts():
        position, tied = gold[row["judge"]]["position"], ties_of[row["judge"]]
        valid = tied["n"]
        assert valid == position["n_valid"]
        found = {
            "first": row["hits"] / valid,
            "tie": tied["hits"] / valid,
            "second": (row["n"] - row["hits"]) / valid,
            "diff": (2 * row["hits"] - row["n"]) / valid,
        }
        assert found == pytest.approx({k: position[k] for k in found}, abs=1e-9), row["judge"]


@pytest.mark.parametrize(("variant", "fastest"), VARIANTS)
def test_reference_ranks(reference: Reach, variant: str | None, fastest: float) -> None:
    # Ranks of ASR at two decimals, equals sharing the best; the product ranks shifts, with
    # intervals, so these are made of its ASR here.
    path, gold = reference(variant, fastest)
    shifts = match_groups(tally_votes(count_votes(read(path)), "paper"))
    rank = pl.col("estimate").round(2).rank("min").over("perturbation")
    found = STATISTICS["asr"](shifts=shifts).with_columns(rank=rank)
    for judge, expected in gold.items():
        mine = dict(found.filter(pl.col("judge") == judge).select("perturbation", "rank").rows())
        ranks = [mine[name] for name in KIND]
        assert ranks == expected["ranks_on_2dp_ASR"], judge
        assert sum(ranks) / len(ranks) == pytest.approx(expected["avg_rank"], abs=1e-9)
