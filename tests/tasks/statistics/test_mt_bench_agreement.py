"""The published agreement of GPT-4 with people on MT-Bench, from their votes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest

from tasks.aggregate import count_votes
from tasks.annotate import annotate
from tasks.readers.votes import read_votes
from tasks.statistics.mt_bench_agreement import mt_bench_agreement

Make = Callable[..., Any]


def rows_of(judge: str, *people: str) -> list[dict[str, Any]]:
    """Make one letter per item: a anchor, t target, = tie; a space is no label."""
    words = {"a": "anchor", "t": "target", "=": "tie"}
    return [
        {"annotator": who, "item": f"i{at}", "label": words[letter]}
        for who, text in (("ada", judge), *((f"P{at}", text) for at, text in enumerate(people)))
        for at, letter in enumerate(text)
        if letter != " "
    ]


def of(rows: pl.DataFrame, judge: str) -> dict[str, tuple[Any, ...]]:
    return {
        row["statistic"]: (row["estimate"], row["hits"], row["n"])
        for row in rows.filter(judge=judge, subgroup="humans").to_dicts()
    }


def test_docstring_example(make_annotations: Make) -> None:
    rows = mt_bench_agreement(annotations=make_annotations(rows_of("tt", "tt", "= ", "a ")))
    assert of(rows, "ada") == {
        "s1_macro": (pytest.approx(2 / 3), None, 2),
        "s1_micro": (0.5, 2, 4),
        "s2_macro": (0.75, None, 2),
        "s2_micro": (pytest.approx(2 / 3), 2, 3),
    }
    # Of the people's pairs t=, ta, =a none is alike; without ties one is left.
    assert of(rows, "humans") == {
        "s1_macro": (0.0, None, 1),
        "s1_micro": (0.0, 0, 3),
        "s2_macro": (0.0, None, 1),
        "s2_micro": (0.0, 0, 1),
    }


def test_a_random_question_then_random_votes_on_it(make_annotations: Make) -> None:
    # Question q has items of three votes, one alike, and of one, alike: 2/4; question r 1/1. So
    # 3/4, where the mean of items within the question would give ((1/3 + 1) / 2 + 1) / 2 = 5/6.
    rows = [
        {**row, "cluster": "r" if row["item"] == "i2" else "q"}
        for row in rows_of("ttt", "ttt", "a  ", "=  ")
    ]
    found = mt_bench_agreement(annotations=make_annotations(rows))
    assert of(found, "ada")["s1_macro"] == (0.75, None, 2)
    assert of(found, "ada")["s1_micro"] == (0.6, 3, 5)
    # Without the tie 2/3 of q.
    assert of(found, "ada")["s2_macro"] == (pytest.approx(5 / 6), None, 2)


def test_shares_of_pairs_have_wilson_intervals_and_means_those_of_the_bootstrap(
    make_annotations: Make,
) -> None:
    rows = rows_of("tatatatatata", "ttaatatattaa", "tattataaattt")
    found = mt_bench_agreement(annotations=make_annotations(rows)).filter(judge="ada")
    reported = found.select(pl.col("statistic").str.tail(5), "method").unique()
    assert dict(reported.rows()) == {
        "micro": "cluster-adjusted Wilson",
        "macro": "cluster bootstrap, expanded BCa",
    }
    assert reported.height == 2


def test_a_tie_of_the_judge_leaves_nothing_decided(make_annotations: Make) -> None:
    rows = of(mt_bench_agreement(annotations=make_annotations(rows_of("==", "=a"))), "ada")
    assert rows["s1_micro"] == (0.5, 1, 2)
    assert rows["s2_micro"] == rows["s2_macro"] == (None, None, 0)


def test_without_people_there_is_nothing(make_annotations: Make) -> None:
    assert mt_bench_agreement(annotations=make_annotations(rows_of("at="))).is_empty()
    assert mt_bench_agreement(annotations=make_annotations([])).is_empty()


def votes_of(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the votes of GPT-4, in both orders, and of the experts, as files of voirdire."""
    for judge in ("gpt4_pair", "human"):
        text = (folder / f"{judge}.jsonl").read_text(encoding="utf-8")
        for vote in map(json.loads, text.splitlines()):
            human = judge == "human"
            if human and not vote["judge"].startswith("expert"):
                continue
            anchor, target = sorted((vote["model_a"], vote["model_b"]))
            for side, first in (("anchor", anchor), ("target", target))[: 1 if human else 2]:
                if vote["winner"] == "tie":
                    choice = "tie"
                elif vote["winner"] == "tie (inconsistent)":
                    choice = "first"
                else:
                    choice = "first" if vote[vote["winner"]] == first else "second"
                yield {
                    "dataset": f"turn{vote['turn']}",
                    "judge": vote["judge"],
                    "human": human,
                    "sample": f"{vote['question_id']}/{anchor}/{target}",
                    "repeat": 0,
                    "cluster": str(vote["question_id"]),
                    "shown_first": side,
                    "choice": choice,
                }


def by_question(folder: Path, turn: int, setup: str) -> float:
    """Return the mean over questions of the share of votes of experts that GPT-4 shares."""
    verdicts: dict[tuple[Any, ...], str] = {}
    alike: dict[int, list[bool]] = {}
    for judge in ("gpt4_pair", "human"):
        for vote in map(json.loads, (folder / f"{judge}.jsonl").read_text("utf-8").splitlines()):
            if vote["turn"] != turn or (judge == "human" and vote["judge"][:6] != "expert"):
                continue
            key = (vote["question_id"], *sorted((vote["model_a"], vote["model_b"])))
            won = "tie" if vote["winner"][:3] == "tie" else vote[vote["winner"]]
            if judge == "gpt4_pair":
                verdicts[key] = won
            elif key in verdicts and (setup == "S1" or "tie" not in (won, verdicts[key])):
                alike.setdefault(vote["question_id"], []).append(won == verdicts[key])
    return fmean(map(fmean, alike.values()))


def test_published_counts(reference_data: Path, tmp_path: Path) -> None:
    folder = reference_data / "mt_bench_votes"
    gold = json.loads((folder / "gold.json").read_text(encoding="utf-8"))
    path = tmp_path / "votes.jsonl"
    path.write_text("".join(json.dumps(vote) + "\n" for vote in votes_of(folder)), encoding="utf-8")
    found = mt_bench_agreement(annotations=annotate(count_votes(read_votes(path))))
    assert len(gold) == 4
    for name, cell in gold.items():
        _, dataset, setup = name.split("|")
        (row,) = found.filter(
            statistic=f"{setup.lower()}_micro", dataset=dataset, judge="gpt4_pair"
        ).to_dicts()
        assert (row["hits"], row["n"]) == (cell["agree"], cell["total"]), name
        assert row["estimate"] * 100 == pytest.approx(cell["pct"], abs=1e-9)
        assert row["low"] < row["estimate"] < row["high"]
        # The definition, a random question first, differs from what is published by little.
        macro = found.filter(
            statistic=f"{setup.lower()}_macro", dataset=dataset, judge="gpt4_pair"
        )["estimate"].item()
        assert macro == pytest.approx(row["estimate"], abs=0.02)
        assert macro == pytest.approx(by_question(folder, int(dataset[-1]), setup), abs=1e-12)
    # A mean of pairs of models within the question would be .8571.
    s2 = found.filter(statistic="s2_macro", dataset="turn1", judge="gpt4_pair")["estimate"].item()
    assert round(s2, 4) == 0.8552
