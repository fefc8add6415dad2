"""A study with several judge prompts, as a user runs it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.publishing.served_files import reports_of
from warehouse.store import Warehouse

Voirdire = Callable[..., Any]
pytestmark = [pytest.mark.served, pytest.mark.slow]

TWO = ("--prompt", "pair_v1", "--prompt", "pair_json_v2")
SMALL = ("--limit", "20", "--perturbation", "fake_reference", "--judge", "offline/dazzled")


def test_judges_are_asked_under_each_prompt(voirdire: Voirdire, warehouse: Warehouse) -> None:
    one = voirdire("audit", *SMALL, *TWO[:2])
    assert one.returncode == 0, one.stderr
    # control, experimental and sham of 20 questions, two votes
    assert "120 ballots: 0 from the warehouse, 120 cast, 0 without a reply" in one.stdout
    two = voirdire("audit", *SMALL, *TWO, "--replicates")
    assert two.returncode == 0, two.stderr
    # the same with another prompt, and replicates of 20 questions with both
    assert "320 ballots: 120 from the warehouse, 200 cast, 0 without a reply" in two.stdout
    # It names the judge with each prompt, and compares the prompts.
    assert "offline/dazzled / pair_v1" in two.stdout
    assert "Prompts compared" in two.stdout
    # In 80 columns a line per pair, whose names are not broken.
    assert "offline/dazzled, fake_reference, pair_json_v2 - pair_v1: " in two.stdout
    primary = "select clusters from mart.contrasts where statistic = 'mps_sham_contrast'"
    [(used,)] = warehouse.query(primary).rows()
    assert 18 <= used <= 20
    assert f", p (Holm) 1.000, questions {used}\n" in two.stdout
    pairs = "select distinct prompt, other, other_prompt from mart.contrasts"
    assert warehouse.query(pairs).rows() == [("pair_json_v2", "offline/dazzled", "pair_v1")]
    ranks = "select prompt, rank from mart.ranking order by rank"
    assert sorted(warehouse.query(ranks)["rank"].to_list()) in ([1, 2], [1.5, 1.5])
    prompts = "select prompt, count(*) from vote_log group by prompt order by prompt"
    assert warehouse.query(prompts).rows() == [("pair_json_v2", 160), ("pair_v1", 160)]
    again = voirdire("audit", *SMALL, *TWO, "--replicates")
    assert "Nothing has changed" in " ".join(again.stdout.split())
    cells = "select prompt from mart.bias where perturbation = 'fake_reference' order by prompt"
    assert warehouse.query(cells)["prompt"].to_list() == ["pair_json_v2", "pair_v1"]
    shown = voirdire("show", "quick", "--prompt", "pair_v1", "--all", "--format", "json")
    assert {row["prompt"] for row in json.loads(shown.stdout)} == {"pair_v1"}
    assert "offline/dazzled (simulated), prompt pair_" in voirdire("show", "quick").stdout
    missing = voirdire("show", "quick", "--prompt", "pair_v9").stderr
    assert "no prompt 'pair_v9' in study 'quick'" in missing
    done = voirdire("remeasure", "quick")
    assert done.returncode == 0, done.stderr
    # What audit says of the prompts, remeasure says too.
    compared = two.stdout.split("Prompts compared")[1].split("warehouse:")[0]
    assert compared.split("\n\n")[0] in done.stdout
    assert warehouse.query(cells)["prompt"].to_list() == ["pair_json_v2", "pair_v1"]
    page = (reports_of(warehouse.path) / "quick.html").read_text(encoding="utf-8")
    assert "pair_json_v2" in page
    assert "pair_v1" in page


def test_prompts_that_show_one_answer_are_compared_by_their_shifts(
    voirdire: Voirdire, warehouse: Warehouse
) -> None:
    wordings = ("--prompt", "single_v1", "--prompt", "single_reference_v1", "--prompt", "binary_v1")
    wordings += ("--prompt", "labels_v1")
    done = voirdire("audit", *SMALL, *wordings)
    assert done.returncode == 0, done.stderr
    assert " pass rate" in done.stdout
    assert " share of labels" in done.stdout
    compared = done.stdout.split("Prompts compared")[1]
    assert "offline/dazzled, fake_reference, single_reference_v1 - single_v1: " in compared
    query = "select statistic, prompt, other_prompt, contrast, judge_value, other_value, n from "
    [pair] = warehouse.query(f"{query} mart.contrasts").to_dicts()
    # Grades and pass or fail have no unit in common; passes and labels are different quantities.
    assert pair["statistic"] == "rating_sham_contrast"
    assert (pair["prompt"], pair["other_prompt"], pair["n"]) == (*sorted(wordings[1:4:2]), 20)
    assert pair["contrast"] == pytest.approx(pair["judge_value"] - pair["other_value"])
    page = (reports_of(warehouse.path) / "quick.html").read_text(encoding="utf-8")
    assert "Which judges differ" in page
    assert "shift of the pass rate; shift of the share of labels chosen" in page
    numbers = warehouse.query("""
        select c.p_holm, c.finding, n.p_adjusted, n.p_holm as own, n.finding as found
        from mart.contrasts as c
        join mart.numbers as n using (study, statistic, judge, prompt, perturbation)
        where n.subgroup = c.other || ' / ' || c.other_prompt
    """).rows()
    p_holm, finding = numbers[0][:2]
    assert None not in {p_holm, finding}
    assert numbers == [(p_holm, finding, p_holm, p_holm, finding)]
    ranks = dict(warehouse.query("select prompt, rank from mart.ranking").rows())
    # The two prompts with grades are ranked together; pass or fail has nothing to rank against.
    assert sorted(ranks[name] for name in wordings[1:4:2]) in ([1, 2], [1.5, 1.5])
    assert ranks["binary_v1"] is ranks["labels_v1"] is None
    measured = dict(warehouse.query("select prompt, quantity from mart.ranking").rows())
    assert measured["single_v1"] == measured["single_reference_v1"] == "grades from 1 to 10"
    assert measured["binary_v1"] == "pass or fail"
    assert measured["labels_v1"].startswith("labels ")
    again = voirdire("remeasure", "quick")
    titles = re.findall(r"fake_reference \(promote\), (grades|pass|labels)", again.stdout)
    assert titles == ["grades", "labels", "pass"]
    planned = voirdire("plan", *SMALL, *wordings)
    assert planned.returncode == 0, planned.stderr
    assert "Further questions that would decide the open gates of study quick" in planned.stdout
    for prompt in wordings[1::2]:
        decided = f"- offline/dazzled / {prompt}: every gate that was measured is decided"
        assert decided in planned.stdout
    assert "Smallest detectable shift (sd) with 20 samples" in planned.stdout
    assert "Smallest detectable shift (pass rate) with 20 samples" in planned.stdout
    assert "Smallest detectable shift (share of labels) with 20 samples" in planned.stdout


def test_control_is_asked_about_in_other_words(voirdire: Voirdire, warehouse: Warehouse) -> None:
    refused = voirdire("audit", *SMALL, "--prompt", "pair_v1", "--reworded")
    assert refused.returncode == 2
    assert "reworded needs variants of a prompt; without any: pair_v1. Add" in refused.stderr
    done = voirdire("audit", *SMALL[:4], "--judge", "offline/careless", "--reworded", COLUMNS="200")
    assert "not asked in other words" not in done.stderr
    assert done.returncode == 0, done.stderr
    # control, experimental, sham, replicate and two variants of 20 questions, two votes
    assert "240 ballots: 0 from the warehouse, 240 cast" in done.stdout
    assert "Rewording offline/careless: with the prompt in other words, ." in done.stdout
    arms = "select arm, perturbation, count(*) from vote_log where arm = 'reworded' group by all"
    asked = sorted(warehouse.query(arms).rows())
    assert asked == [("reworded", "brief", 40), ("reworded", "formal", 40)]
    rows = warehouse.query("select * from mart.rewording order by variant nulls first").to_dicts()
    assert [row["variant"] for row in rows] == [None, "brief", "formal"]
    whole, *each = rows
    assert whole["changed"] == pytest.approx(
        sum(row["changed"] * row["n"] for row in each) / sum(row["n"] for row in each)
    )
    assert whole["excess"] is not None
    page = (reports_of(warehouse.path) / "quick.html").read_text(encoding="utf-8")
    assert "verdicts on control pairs that change if the prompt is reworded" in page
    # The words that were sent are in the warehouse.
    words = warehouse.query("select prompt from prompts order by prompt")["prompt"].to_list()
    assert words == ["pair_v2", "pair_v2~brief", "pair_v2~formal"]


def test_a_prompt_without_variants_is_named(voirdire: Voirdire, warehouse: Warehouse) -> None:
    prompts = ("--prompt", "pair_v1", "--prompt", "pair_v2")
    done = voirdire("audit", *SMALL, *prompts, "--judge", "offline/careless", "--reworded")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("--reworded: pair_v1 not asked in other words (no variants).") == 1
    arms = "select distinct prompt from vote_log where arm = 'reworded'"
    assert warehouse.query(arms).rows() == [("pair_v2",)]


def test_both_grades_of_a_pair_are_kept(
    voirdire: Voirdire, warehouse: Warehouse, environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "home" / "prompts"
    folder.mkdir(parents=True)
    environment["VOIRDIRE_HOME"] = str(tmp_path / "home")
    prompt = {"kind": "pair", "verdict": "ratings", "source": "mine"}
    lines = [f'{name} = "{value}"' for name, value in prompt.items()]
    lines += ["scale = { low = 1, high = 10 }", 'user = "{question}: {answer_a} or {answer_b}?"']
    (folder / "both.toml").write_text("\n".join(lines), encoding="utf-8")
    done = voirdire("audit", *SMALL, "--prompt", "both")
    assert done.returncode == 0, done.stderr
    votes = warehouse.query(
        "select choice, (rating ->> 'first')::double as one, (rating ->> 'second')::double as two, "
        "raw from votes where choice in ('first', 'second', 'tie')"
    )
    assert votes.height > 100
    for choice, one, two, raw in votes.rows():
        assert f"[[{one:g},{two:g}]]" in raw
        assert choice == ("tie" if one == two else "first" if one > two else "second")
    # Two grades are one verdict, so there are no ratings of single answers.
    assert warehouse.query("select * from ratings").is_empty()
