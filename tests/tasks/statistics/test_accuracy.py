"""Right votes; the logs of LLMBar, whose results its authors published."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix
from statsmodels.stats.inter_rater import cohens_kappa

from tasks.aggregate import count_votes
from tasks.readers.votes import read_votes
from tasks.statistics.accuracy import SHARES, accuracy
from tasks.statistics.order_kappa import order_kappa

Make = Callable[..., Any]
Found = dict[str, tuple[float | None, int | None, int, int]]


def measured(make: Make, votes: list[dict[str, Any]], **defaults: Any) -> Found:
    rows = accuracy(tallies=count_votes(make(votes, **defaults))).to_dicts()
    return {r["statistic"]: (r["estimate"], r["hits"], r["n"], r["dropped"]) for r in rows}


def test_docstring_example(make_vote_log: Make) -> None:
    votes = [
        {"shown_first": side, "choice": choice}
        for side, choice in (("anchor", "second"), ("target", "invalid"))
    ]
    assert measured(make_vote_log, votes, label="target") == {
        "accuracy_12": (1.0, 1, 1, 0),
        "accuracy_21": (0.0, 0, 1, 0),
        "accuracy": (0.5, 1, 2, 0),
        "accuracy_valid": (1.0, 1, 1, 1),
        "accuracy_beyond_chance": (1.0, None, 1, 0),
        "both_right": (0.0, 0, 1, 0),
        "order_agreement": (None, 0, 0, 1),
        "order_agreement_llmbar": (0.0, 0, 1, 0),
    }


def test_a_tie_is_half_a_right_vote_beyond_chance(make_vote_log: Make) -> None:
    # Three right, one wrong, two ties: s = (3 + 1) / 6; the pair whose label is a tie is left out.
    votes = [
        {"sample": f"s{at}", "choice": choice, "label": label}
        for at, (choice, label) in enumerate(
            [("first", "anchor")] * 3
            + [("second", "anchor")]
            + [("tie", "anchor")] * 2
            + [("first", "tie")]
        )
    ]
    found = measured(make_vote_log, votes, shown_first="anchor")["accuracy_beyond_chance"]
    assert found == (pytest.approx(1 / 3), None, 6, 1)


VERDICTS = ["anchor", "tie", "target"]
CHOICES = {
    "anchor": dict(zip(VERDICTS, ("first", "tie", "second"), strict=True)),
    "target": dict(zip(VERDICTS, ("second", "tie", "first"), strict=True)),
}
VERDICT = st.sampled_from(VERDICTS)


@settings(max_examples=40)
@given(st.lists(st.tuples(VERDICT, VERDICT, VERDICT), min_size=1, max_size=20))
def test_against_scikit_learn(make_vote_log: Make, pairs: list[tuple[str, str, str]]) -> None:
    votes = [
        {
            "sample": f"s{at:02}",
            "shown_first": side,
            "choice": CHOICES[side][verdict],
            "label": label,
        }
        for at, (label, *both) in enumerate(pairs)
        for side, verdict in zip(("anchor", "target"), both, strict=True)
    ]
    found = measured(make_vote_log, votes)
    labels, one, other = zip(*pairs, strict=True)
    for name, verdicts in (("accuracy_12", one), ("accuracy_21", other)):
        assert found[name][0] == pytest.approx(accuracy_score(labels, verdicts))
        hits = confusion_matrix(labels, verdicts, labels=VERDICTS).trace()
        assert found[name][1:3] == (hits, len(pairs))
    assert found["accuracy"][0] == pytest.approx(accuracy_score(labels * 2, one + other))
    assert found["order_agreement"][0] == pytest.approx(accuracy_score(one, other))
    (kappa,) = order_kappa(tallies=count_votes(make_vote_log(votes)))["estimate"]
    # Of a single verdict scikit-learn's kappa is not a number.
    if len({*one, *other}) > 1:
        assert kappa == pytest.approx(cohen_kappa_score(one, other), abs=1e-12)


def test_repeats_are_matched(make_vote_log: Make) -> None:
    # repeat 0: tie, tie; 1: tie, anchor; 2: no verdict twice; 3: never cast in one order
    votes = [
        {"shown_first": side, "repeat": repeat, "choice": choice}
        for side, choices in (
            ("anchor", ("tie", "tie", "invalid", "tie")),
            ("target", ("tie", "second", "abstain", None)),
        )
        for repeat, choice in enumerate(choices)
    ]
    assert measured(make_vote_log, votes, label="tie") == {
        "accuracy_12": (0.75, 3, 4, 0),
        "accuracy_21": (pytest.approx(1 / 3), 1, 3, 0),
        "accuracy": (pytest.approx(4 / 7), 4, 7, 0),
        "accuracy_valid": (0.8, 4, 5, 2),
        "accuracy_beyond_chance": (None, None, 0, 1),
        "both_right": (pytest.approx(1 / 3), 1, 3, 0),
        "order_agreement": (0.5, 1, 2, 1),
        "order_agreement_llmbar": (pytest.approx(2 / 3), 2, 3, 0),
    }


def test_after_early_stops_the_first_votes_count(make_vote_log: Make) -> None:
    votes = [
        {"shown_first": side, "repeat": repeat, "choice": choice, "stopped": stopped}
        for side, first in (("anchor", "first"), ("target", "second"))
        for repeat, choice, stopped in ((0, first, None), (1, "tie", None), (2, None, "lossless"))
    ]
    found = measured(make_vote_log, votes, label="anchor")
    assert {found[name][0] for name in SHARES} == {1.0}
    assert (found["accuracy"][2], found["both_right"][2]) == (2, 1)


def test_pairs_without_a_label_are_left_out(make_vote_log: Make) -> None:
    assert measured(make_vote_log, [{}]) == {}
    both = [{"sample": "a", "label": "anchor"}, {"sample": "b"}]
    assert measured(make_vote_log, both)["accuracy"] == (1.0, 1, 1, 0)


Runs = tuple[Path, dict[str, Any], dict[str, list[dict[str, Any]]]]
SIDES = {"1": "anchor", "2": "target"}


@pytest.fixture(scope="session")
def llmbar(reference_data: Path) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    folder = reference_data / "llmbar"
    gold = json.loads((folder / "gold.json").read_text(encoding="utf-8"))
    runs: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(folder / "votes.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            runs.setdefault(f"{row['subset']}|{row['judge']}|{row['prompt']}", []).append(row)
    assert runs.keys() == gold.keys()
    return gold, runs


def converted(
    runs: dict[str, list[dict[str, Any]]], unparsed: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield votes as voirdire reads them; ``unparsed`` is what a reply without a winner says."""
    for rows in runs.values():
        for row in rows:
            for order, shown_first in (("1", "anchor"), ("2", "target")):
                winner = SIDES.get(row[f"winner_order{order}"] or "", unparsed)
                choice = "first" if winner == shown_first else "second"
                yield {
                    "dataset": row["subset"],
                    "judge": row["judge"],
                    "prompt": row["prompt"],
                    "sample": str(row["item"]),
                    "cluster": str(row["item"]),
                    "repeat": 0,
                    "shown_first": shown_first,
                    "label": SIDES[str(row["label"])],
                    "choice": "invalid" if winner is None else choice,
                }


def tallied(path: Path, votes: Iterator[dict[str, Any]]) -> Any:
    path.write_text("".join(json.dumps(vote) + "\n" for vote in votes), encoding="utf-8")
    return count_votes(read_votes(path))


def by_run(rows: Any) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in rows.to_dicts():
        run = f"{row['dataset']}|{row['judge']}|{row['prompt']}"
        found.setdefault(run, {})[row["statistic"]] = row
    return found


def test_llmbar_is_matched(llmbar: Any, tmp_path: Path) -> None:
    gold, runs = llmbar
    found = by_run(accuracy(tallies=tallied(tmp_path / "votes.jsonl", converted(runs))))
    names = {
        "acc_order1": "accuracy_12",
        "acc_order2": "accuracy_21",
        "acc_mean": "accuracy",
        "acc_both": "both_right",
        "agreement_between_orders": "order_agreement_llmbar",
    }
    published = {
        "correct_False": "accuracy_12",
        "correct_True": "accuracy_21",
        "correct_both": "both_right",
        "equal": "order_agreement_llmbar",
    }
    differ = 0
    for run, expected in gold.items():
        rows = found[run]
        for key, name in names.items():
            assert rows[name]["estimate"] == pytest.approx(expected["computed"][key], abs=1e-9)
        for key, name in published.items():
            text = expected["published_statistics_json"][key]
            assert text.startswith(f"{rows[name]['hits']} / {rows[name]['n']} = "), (run, key)
        ours, theirs = rows["order_agreement"], rows["order_agreement_llmbar"]
        either = sum(None in (r["winner_order1"], r["winner_order2"]) for r in runs[run])
        both = sum({r["winner_order1"], r["winner_order2"]} == {None} for r in runs[run])
        assert (ours["n"], ours["dropped"]) == (theirs["n"] - either, either)
        assert ours["hits"] == theirs["hits"] - both
        differ += both > 0
    assert (len(found), differ > 0) == (89, True)


def test_llmbars_kappa_between_orders(llmbar: Any, tmp_path: Path) -> None:
    # They take a reply without a winner for one that prefers the second output.
    gold, runs = llmbar
    theirs = tallied(tmp_path / "theirs.jsonl", converted(runs, unparsed="target"))
    ours = tallied(tmp_path / "ours.jsonl", converted(runs))
    found, parsed = by_run(order_kappa(tallies=theirs)), by_run(order_kappa(tallies=ours))
    for run, expected in gold.items():
        published = expected["published_statistics_json"]["kappa_agreement"]
        assert found[run]["order_kappa"]["estimate"] == pytest.approx(published, abs=1e-9), run
        if not expected["computed"]["n_invalid"]:
            assert parsed[run]["order_kappa"]["estimate"] == pytest.approx(published, abs=1e-9)


def test_llmbars_kappa_of_accuracy_is_no_kappa(llmbar: Any) -> None:
    # Winners coded 1, 0 against labels coded 1, 2: votes for the second output never agree.
    gold, runs = llmbar
    for run, expected in gold.items():
        for order, key in (("1", "kappa_False"), ("2", "kappa_True")):
            table = np.zeros((3, 3))
            for row in runs[run]:
                table[int(row[f"winner_order{order}"] == "1"), row["label"]] += 1
            published = expected["published_statistics_json"][key]
            kappa = cohens_kappa(table, return_results=False)
            assert kappa == pytest.approx(published, abs=1e-9), run


def test_a_judge_that_never_answers_is_not_wrong(make_vote_log: Make) -> None:
    votes = [
        {"sample": f"s{at}", "shown_first": side, "choice": "invalid"}
        for at in range(12)
        for side in ("anchor", "target")
    ]
    assert measured(make_vote_log, votes, label="target") == {
        **dict.fromkeys(("accuracy_12", "accuracy_21"), (None, 0, 0, 12)),
        **dict.fromkeys(("accuracy", "accuracy_valid"), (None, 0, 0, 24)),
        "accuracy_beyond_chance": (None, None, 0, 12),
        **dict.fromkeys(
            ("both_right", "order_agreement", "order_agreement_llmbar"), (None, 0, 0, 12)
        ),
    }
    # Where one vote has a verdict, all others are wrong.
    votes[0] |= {"choice": "second"}
    assert measured(make_vote_log, votes, label="target")["accuracy"] == (1 / 24, 1, 24, 0)
