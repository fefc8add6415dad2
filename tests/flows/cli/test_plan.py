"""Estimates by hand; a price of its own, so that no table's prices matter."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from flows.cli import plan
from flows.cli.main import main
from flows.cli.plan import Cost, _cost, _estimate, _show_costs, show_plan
from flows.cli.printing.live import Printer
from flows.running.ballots import make_pairs
from flows.studies import Study, make_study
from schemas.curation import Answers, Questions
from schemas.judging import Ballots, Judges, Pairs, Prompts, Votes
from tasks import judge as judging
from tasks.curate import import_dataset
from tasks.engine.queue import worst_case
from tasks.judge import Design, draw_ballots, judge_table, prompt_table
from tasks.providers import Judge, Provider
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]
TEXT = "Water boils at a lower temperature where the pressure of the air is lower."
NAME = "desk/one"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Put a judge at 1 and 10 US dollars per million tokens into the catalogue."""

    def put(*, simulated: bool = False, **params: Any) -> str:
        one = Judge.model_validate(
            {
                "judge": NAME,
                "provider": "desk",
                "model": "openai/one",
                "params": params,
                "usd_per_million": {"prompt": 1, "completion": 10},
            }
        )
        monkeypatch.setattr(plan, "JUDGES", {NAME: one})
        monkeypatch.setattr(plan, "provider_of", lambda _: Provider(simulated=simulated))
        return NAME

    return put


def cost_of_100(name: str, cast: int = 0, reply_tokens: float | None = None) -> Cost:
    """Return the cost of 100 calls of 400 characters, 500 bytes."""
    sizes: dict[str, Any] = {
        "characters": 40_000,
        "octets": 50_000,
        "longest": 600,
        "votes_counted": 0,
    }
    row = {"judge": name, "prompt": "pair_v2", "cast": cast, "calls": 100, **sizes}
    return _cost(row, ["pair_v2"], reply_tokens)


# 100 calls of 400 characters are 10 000 tokens: 0.01 USD; a reply of 80 costs 0.0008 USD.
# At most each of 50 000 bytes is a token: 0.05 USD.
@pytest.mark.parametrize(
    ("params", "reply_tokens", "usd", "most"),
    [
        ({"max_tokens": 1024}, 8_000, 0.01 + 0.08, 0.05 + 1.024),
        ({"max_tokens": 50}, 5_000, 0.01 + 0.05, 0.05 + 0.05),
        ({"max_completion_tokens": 4000}, 60_000, 0.01 + 0.6, 0.05 + 4.0),
        ({"max_tokens": 1000, "reasoning_effort": "low"}, 60_000, 0.01 + 0.6, 0.05 + 1.0),
        ({"max_tokens": 500, "reasoning_effort": "high"}, 50_000, 0.01 + 0.5, 0.05 + 0.5),
        ({"max_tokens": 1000, "reasoning_effort": "none"}, 8_000, 0.01 + 0.08, 0.05 + 1.0),
        ({"max_tokens": 1000, "reasoning_effort": "minimal"}, 8_000, 0.01 + 0.08, 0.05 + 1.0),
        ({}, 8_000, 0.01 + 0.08, None),
    ],
)
def test_a_reply_nobody_knows_is_guessed_and_bounded(
    judge: Make, params: dict[str, Any], reply_tokens: int, usd: float, most: float | None
) -> None:
    cost = cost_of_100(judge(**params), cast=3)
    assert (cost.cast, cost.calls, cost.tokens) == (3, 100, 10_000)
    assert (cost.reply_tokens, cost.from_history) == (reply_tokens, False)
    assert cost.usd == pytest.approx(usd)
    assert cost.most_usd == (None if most is None else pytest.approx(most))
    assert cost.expected_usd == cost.most_usd


def test_the_system_of_a_judge_is_counted_and_each_byte_at_most(
    judge: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(judges=["offline/honest"], limit=4)
    pairs = make_pairs(study).shown
    name = judge(max_tokens=8)
    judges = plan.JUDGES
    ballots = _ballots(study, pairs, study.prompts[0]).with_columns(judge=pl.lit(name))
    short, long = (
        _costs_of(ballots, pairs, monkeypatch, judges[name].model_copy(update={"system": system}))
        for system in ("\u5b57", "\u5b57" * 20_001)
    )
    # three bytes each
    assert long.tokens - short.tokens == 5_000 * short.calls
    assert short.usd is not None
    assert long.usd == pytest.approx(short.usd + 0.005 * short.calls)
    assert short.most_usd is not None
    assert long.most_usd == pytest.approx(short.most_usd + 0.06 * short.calls)


def _costs_of(ballots: Any, pairs: Any, monkeypatch: pytest.MonkeyPatch, one: Judge) -> Cost:
    monkeypatch.setattr(plan, "JUDGES", {NAME: one})
    (cost,) = plan._costs(ballots, Votes.empty(), pairs, {})
    return cost


def test_the_most_is_what_a_budget_sets_aside(judge: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study(judges=["offline/honest"], limit=4)
    pairs = make_pairs(study).shown
    name = judge(max_tokens=8)
    one = plan.JUDGES[name].model_copy(update={"system": "Weigh \u5b57."})
    ballots = _ballots(study, pairs, study.prompts[0]).with_columns(judge=pl.lit(name))
    cost = _costs_of(ballots, pairs, monkeypatch, one)
    monkeypatch.setattr(judging, "JUDGES", plan.JUDGES)
    monkeypatch.setattr(judging, "PROVIDERS", {"desk": SimpleNamespace(provider=Provider())})
    asked = [messages for _, messages, _ in judging.askings(ballots, pairs)]
    aside = sum(worst_case(Provider(), one, messages) for messages in asked)
    assert cost.most_usd is not None
    assert aside == pytest.approx(cost.most_usd, rel=1e-9)


def test_earlier_replies_tell_better(judge: Make) -> None:
    cost = cost_of_100(judge(max_tokens=4000), cast=20, reply_tokens=250.5)
    # 100 * 250.5 * 10 / 1e6
    assert (cost.reply_tokens, cost.from_history) == (25_050, True)
    assert cost.expected_usd == cost.usd == pytest.approx(0.01 + 0.2505)
    assert cost.most_usd == pytest.approx(4.05)


def test_a_formula_costs_nothing(judge: Make) -> None:
    cost = cost_of_100(judge(simulated=True))
    assert (cost.usd, cost.most_usd) == (0.0, 0.0)


@pytest.mark.parametrize(("votes", "reply_tokens"), [(19, False), (20, True)])
def test_twenty_votes_of_the_judge_and_prompt_tell(
    votes: int,
    reply_tokens: bool,
    tmp_path: Path,
    make_votes: Make,
) -> None:
    study = Study(judges=["offline/honest", "offline/random"], limit=4)
    path = tmp_path / "v.duckdb"
    pairs = make_pairs(study).shown
    store = Warehouse(path)
    names = ["pair_v2", "pair_json_v2"]
    frames = (
        (Questions, import_dataset(study.dataset, study.folder, study.limit)[0]),
        (Judges, judge_table(study.judges)),
        (Prompts, prompt_table(names)),
        (Pairs, pairs),
    )
    store.save([Saving(*each) for each in frames], run="r")
    for prompt, tokens in (("pair_v2", 100), ("pair_json_v2", 900)):
        ballots = _ballots(study, pairs, prompt).head(votes if prompt == "pair_v2" else 20)
        rows = [
            {"ballot_id": b, "completion_tokens": tokens + n % 2 * 20, "prompt_tokens": 1000}
            for n, b in enumerate(ballots["ballot_id"])
        ]
        cast = Saving(Ballots, ballots), Saving(Votes, make_votes(rows))
        store.save(cast, run="r")
    honest, random = _estimate(study, pairs, path)
    assert (honest.from_history, random.from_history) == (reply_tokens, False)
    # half of the replies take 100 tokens, half 120
    assert honest.reply_tokens == honest.calls * (110 if reply_tokens else 80)
    assert honest.cast == votes
    # The texts of all pairs are alike long, so a call takes 1000 tokens, some four times as many as
    # of four characters each.
    per_call = honest.tokens / honest.calls
    assert per_call == pytest.approx(1000, rel=0.2) if reply_tokens else per_call < 600


def _ballots(study: Study, pairs: Any, prompt: str) -> Any:
    design = Design(study.votes_per_pair, study.mode, study.wave, study.seed)
    drawn = draw_ballots(pairs, judge_table(["offline/honest"]), prompt, design)
    return Ballots.of(drawn.unique("ballot_id", maintain_order=True))


def test_the_table_fits_80_columns() -> None:
    big = Cost("together/qwen-3.8-flash", 99_999, 99_999, 9_999_999, 9_999_999, 999.5, 9999.5)
    console = Printer(width=80, record=True, file=StringIO())
    _show_costs(console, [big, big._replace(most_usd=None)], make_study("quick", {}))
    table, _ = console.export_text().split("cast: votes in the warehouse.")
    lines = table.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("together/qwen-3.8-flash" in line for line in lines) == 2
    assert lines[-1].split()[-2:] == ["1999.00", "unknown"]
    assert "at most" in lines[1]


@pytest.mark.parametrize(("reply_tokens", "asks"), [(None, True), (10.0, False), (2000.0, True)])
def test_the_most_is_asked_about_unless_votes_tell(
    reply_tokens: float | None,
    asks: bool,
    judge: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # 100 calls: at most 4.05 USD, with replies of 10 tokens 0.02, of 2000 2.01
    cost = cost_of_100(judge(max_tokens=4000), reply_tokens=reply_tokens)
    monkeypatch.setattr(plan, "_estimate", lambda *_: [cost])
    monkeypatch.setattr(plan, "_prepare", lambda *_: (None, None))
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    study = Study.model_construct(**{**Study().model_dump(), "judges": [NAME]})
    if not asks:
        plan.confirm_spending(study, None)
        return
    said = (
        "estimated at 0.61 USD, at most 4.05 USD"
        if reply_tokens is None
        else "estimated at 2.01 USD from earlier votes"
    )
    with pytest.raises(ValueError, match=said):
        plan.confirm_spending(study, None)


def test_no_calls_cost_nothing(judge: Make) -> None:
    sizes: dict[str, Any] = {"characters": 0, "octets": 0, "longest": None}
    row = {
        "judge": judge(),
        "prompt": "pair_v2",
        "cast": 9,
        "calls": 0,
        "votes_counted": 0,
        **sizes,
    }
    cost = _cost(row, ["pair_v2"], None)
    assert (cost.usd, cost.most_usd) == (0.0, 0.0)


def test_replicates_cost_as_much_as_control() -> None:
    study = Study(judges=["offline/honest"], perturbations=["factual_error"], limit=5)
    (three,), (four,) = (
        _estimate(each, make_pairs(each).shown, None)
        for each in (study, study.model_copy(update={"replicates": True}))
    )
    # Five samples; two votes in each of three arms, or four.
    assert (three.cast + three.calls, four.calls - three.calls) == (30, 10)


def test_a_perturbation_without_samples_is_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        json.dumps(
            {"question_id": str(n), "question": "Why?", "anchor": f"As {n}.", "target": TEXT}
        )
        for n in range(12)
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(rows))
    judges = ["offline/honest", "offline/random"]
    show_plan(Study(name="own", dataset=str(path), judges=judges), tmp_path / "none.duckdb")
    said = " ".join(capsys.readouterr().out.split())
    assert "Left out because they have no samples: factual_error (no version: the dataset" in said
    assert "gender_bias (no version" in said
    assert "Smallest detectable shift with 12 samples" in said
    # Two judges by the two perturbations that have samples.
    assert "adjusted over the study's 4 cells" in said
    assert "The study has no samples" not in said
    # TEXT is one sentence.
    padded = Study(
        name="own", dataset=str(path), judges=judges, perturbations=["padding", "rich_content"]
    )
    show_plan(padded, tmp_path / "none.duckdb")
    said = " ".join(capsys.readouterr().out.split())
    assert "padding (the template needs an answer of two or more sentences" in said


@pytest.mark.parametrize("columns", ["question,answer", "question,anchor,target"])
def test_a_perturbation_that_only_data_can_bring(tmp_path: Path, columns: str) -> None:
    file = tmp_path / "tickets.csv"
    file.write_text(
        f"{columns}\nWhy?,So it is.,{'Thus.' * ('anchor' in columns)}\n".replace(".,\n", ".\n"),
        encoding="utf-8",
    )
    prompt = "pair_v2" if "anchor" in columns else "binary_v1"
    words = ("--dataset", str(file), "--prompt", prompt, "--warehouse", str(tmp_path / "w.duckdb"))
    asked = ("--perturbation", "factual_error", "--perturbation", "gender_bias")

    def said(*perturbations: str) -> str:
        done = CliRunner().invoke(main, ["plan", *words, *perturbations])
        assert done.exit_code == 2
        return " ".join(done.output.split())

    assert (
        "tickets.csv has no filled column factual_error; only the data can bring this "
        "perturbation. Add the column, or choose fake_reference, padding, rich_content with "
        "--perturbation."
    ) in said(*asked[:2])
    assert "factual_error or gender_bias; only the data can bring these" in said(*asked)
    assert "no pair is left to ask about: 1 answer of padding (" in said(
        "--perturbation", "padding"
    )


def test_a_plan_refuses_what_the_audit_would_refuse(tmp_path: Path) -> None:
    file, place = tmp_path / "own.csv", tmp_path / "w.duckdb"
    head = "question_id,question,anchor,target\n"
    file.write_text(f"{head}q1,Why is it so?,{TEXT},{TEXT[:-1]} here.\n", encoding="utf-8")
    made = make_pairs(Study(dataset=str(file), perturbations=["fake_reference"]))
    savings = [
        Saving(Questions, made.dataset.questions),
        Saving(Answers, made.dataset.answers),
    ]
    Warehouse(place).save(savings, run="r1")
    words = ["plan", "--dataset", str(file), "--perturbation", "fake_reference"]
    words += ["--warehouse", str(place)]
    assert CliRunner().invoke(main, words).exit_code == 0
    file.write_text(f"{head}q1,Why is it so?,{TEXT},{TEXT[:-1]} there.\n", encoding="utf-8")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "answers (answer_id) own/q1/a2 is there already with other content" in said


def test_a_blank_line_separates_the_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = Study(name="own", judges=["offline/honest"], limit=99)
    show_plan(study, tmp_path / "none.duckdb", effect=0.1)
    parts = capsys.readouterr().out.removesuffix("\n").split("\n\n")
    assert [part.split("\n")[0].strip()[:36] for part in parts] == [
        "--limit 99: the dataset has 60 quest",
        "Calls and cost",
        "Samples per perturbation",
        "Smallest detectable shift with 60 sa",
        "Samples needed to detect a shift of ",
        "The design cannot detect the smalles",
    ]
