from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pytest

from schemas.curation import Answers, Perturbations, Questions
from schemas.frame import FrameError
from schemas.judging import Ballots, Judges, Votes
from schemas.results import Estimates, Findings
from schemas.runs import BatchedBallots, Runs
from warehouse.store import Saving, Warehouse, WarehouseError

Make = Callable[..., Saving]
AS_BEFORE = "Give the columns, and the --map, of the first audit. Else give"
RUN = {
    "run": "r1",
    "flow": "audit",
    "study": "quick",
    "user": "u",
    "process": "h/1",
    "parameters": "{}",
    "fingerprint": "f",
    "code_version": "1",
    "state": "running",
    "started_at": datetime(2024, 1, 1, tzinfo=UTC),
}


def test_the_file_is_made_on_first_use(tmp_path: Path) -> None:
    path = tmp_path / "v.duckdb"
    warehouse = Warehouse(path)
    assert not path.exists()
    assert warehouse.read(Questions).is_empty()
    assert path.is_file()


def test_the_place_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOIRDIRE_WAREHOUSE", str(tmp_path / "mine.duckdb"))
    assert Warehouse().path == tmp_path / "mine.duckdb"
    monkeypatch.setenv("VOIRDIRE_WAREHOUSE", "")
    monkeypatch.chdir(tmp_path)
    assert Warehouse().path == tmp_path / "voirdire.duckdb"


def test_what_is_saved_is_read(warehouse: Warehouse, make: Make) -> None:
    saving = make(Questions, {}, {"question_id": "d/2", "category": "sums"})
    assert warehouse.save([saving], run="r1") == 2
    assert warehouse.read(Questions).equals(saving.frame)
    stamped = warehouse.query("select distinct run, saved_at <= now() as past from questions")
    assert stamped.rows() == [("r1", True)]


def test_the_same_facts_again_are_left_alone(stocked: Warehouse, make: Make) -> None:
    before = stocked.query("select * from questions")
    assert stocked.save([make(Questions), make(Votes)], run="r2") == 0
    assert stocked.save([make(Questions, {}, {"question_id": "d/2"})], run="r2") == 1
    assert stocked.query("select * from questions where run = 'r1'").equals(before)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"question": "Else?"}, "question differs"),
        ({"reference": "4"}, "reference was empty before, and is given now"),
        ({"category": "sums"}, "category was empty before, and is given now"),
        ({"dataset": "e"}, "dataset differs"),
    ],
)
def test_a_fact_that_changes_is_refused(
    stocked: Warehouse, make: Make, change: dict[str, str], why: str
) -> None:
    with pytest.raises(WarehouseError) as raised:
        stocked.save([make(Questions, change)], run="r2")
    assert str(raised.value) == (
        f"questions (question_id) d/1 is there already with other content ({why}), and facts never "
        f"change. {'Give' if 'differs' in why else AS_BEFORE} the new version a new name: another "
        "question_id for each changed row of a file of your own, or another name for the file, "
        "after which the dataset is named; nothing was saved."
    )


def test_of_many_changed_facts_the_column_is_named(stocked: Warehouse, make: Make) -> None:
    rows = [{"question_id": f"d/{n}", "category": "sums"} for n in range(2, 7)]
    stocked.save([make(Questions, *rows)], run="r2")
    without = [{"question_id": f"d/{n}"} for n in range(2, 7)]
    with pytest.raises(WarehouseError, match="category was given before, and is empty now") as said:
        stocked.save([make(Questions, *without)], run="r3")
    assert " and 2 more are there already with other content (category was" in str(said.value)
    assert f"never change. {AS_BEFORE} the new version a new name" in str(said.value)


def test_a_changed_perturbation_may_keep_its_name(warehouse: Warehouse) -> None:
    def saving(source: str, recipe: int = 1) -> Saving:
        row = {"perturbation": "mine", "kind": "promote", "bias": "mine"}
        rows = pl.DataFrame([{**row, "recipe": recipe, "source": source}])
        return Saving(Perturbations, Perturbations.of(rows))

    warehouse.save([saving("here")], run="r1")
    assert warehouse.save([saving("elsewhere", recipe=2)], run="r2") == 1
    with pytest.raises(WarehouseError) as raised:
        warehouse.save([saving("elsewhere")], run="r2")
    assert "Give the new version a new name, or keep the name of a perturbation" in str(
        raised.value
    )
    assert "and raise `recipe` in its decorator (docs/how-to/extend.md)" in str(raised.value)


def test_a_judge_without_votes_may_be_corrected(stocked: Warehouse, make: Make) -> None:
    new, asked = {"judge": "desk/new"}, {"judge": "desk/new", "ballot_id": "b2"}
    stocked.save([make(Judges, new), make(Ballots, asked)], run="r2")
    corrected = make(Judges, {**new, "params": '{"temperature": 0}'})
    assert stocked.save([corrected, make(Ballots, {**asked, "ballot_id": "b3"})], run="r3") == 2
    ballots = stocked.query("select judge, ballot_id from ballots order by all").rows()
    assert ballots == [("desk/new", "b3"), ("offline/honest", "b1")]
    assert stocked.read(Judges).filter(judge="desk/new").equals(corrected.frame)


@pytest.mark.parametrize("reason", ["a vote", "a batch", "a run"])
def test_a_judge_that_something_rests_on_keeps_its_definition(
    stocked: Warehouse, make: Make, reason: str
) -> None:
    new, asked = {"judge": "desk/new"}, {"judge": "desk/new", "ballot_id": "b2"}
    stocked.save([make(Judges, new), make(Ballots, asked)], run="r2")
    if reason == "a vote":
        stocked.save([make(Votes, {"ballot_id": "b2"})], run="r2")
    elif reason == "a batch":
        batched = pl.DataFrame({"batch": ["x"], "ballot_id": ["b2"]})
        stocked.save([Saving(BatchedBallots, BatchedBallots.of(batched))], run="r2")
    else:
        stocked.start_run({**RUN, "run": "r2", "parameters": '{"judges":["desk/new"]}'})
    corrected = make(Judges, {**new, "params": '{"temperature": 0}'})
    with pytest.raises(WarehouseError, match=r"rename its table \[judges.NAME\]"):
        stocked.save([corrected], run="r3")
    assert stocked.read(Ballots).height == 2
    with pytest.raises(WarehouseError, match=r"with temperature .* \(now 0\)"):
        stocked.require_unchanged([corrected])


def test_of_nested_parameters_only_what_differs_is_named(stocked: Warehouse, make: Make) -> None:
    new = {"judge": "desk/new", "params": '{"traits": {"iota": 0.12, "effects": {"a": 1}}}'}
    asked = {"judge": "desk/new", "ballot_id": "b2"}
    stocked.save(
        [make(Judges, new), make(Ballots, asked), make(Votes, {"ballot_id": "b2"})], run="r2"
    )
    params = '{"traits": {"iota": 0.2, "effects": {"a": 1, "b": 2}}}'
    with pytest.raises(WarehouseError) as refused:
        stocked.save([make(Judges, {**new, "params": params})], run="r3")
    said = "with traits.effects.b none (now 2); traits.iota 0.12 (now 0.2). A judge never"
    assert said in str(refused.value)


def test_a_refusal_undoes_the_whole_transaction(stocked: Warehouse, make: Make) -> None:
    before = {t: stocked.query(f"select * from {t}") for t in ("questions", "judges", "estimates")}
    savings = [
        make(Judges, {"judge": "offline/new"}),
        make(Estimates),
        make(Questions, {"question_id": "d/2"}, {"question": "Changed?"}),
    ]
    with pytest.raises(WarehouseError, match="facts never change"):
        stocked.save(savings, run="r2", study="quick")
    for table, rows in before.items():
        assert stocked.query(f"select * from {table}").equals(rows)
    assert stocked.save(savings[:2], run="r2", study="quick") == 2


def test_the_first_vote_stays_if_asked_for(stocked: Warehouse, make: Make) -> None:
    late = make(Votes, {"choice": "second", "raw": "[[B]]"})
    with pytest.raises(WarehouseError, match=r"votes \(ballot_id\) b1 is there already"):
        stocked.save([late], run="r2")
    assert stocked.save([late._replace(first_wins=True)], run="r2") == 0
    assert stocked.read(Votes)["choice"].to_list() == ["first"]


def test_a_reference_must_be_there_before(warehouse: Warehouse, make: Make) -> None:
    with pytest.raises(WarehouseError) as raised:
        warehouse.save([make(Answers)], run="r1")
    assert str(raised.value) == (
        "answers.question_id 'd/1' is not in questions. Save the questions first; "
        "nothing was saved."
    )
    assert warehouse.read(Answers).is_empty()
    assert warehouse.save([make(Questions), make(Answers)], run="r1") == 2


@pytest.mark.parametrize("column", ["pair_id", "judge", "prompt"])
def test_a_ballot_refers_to_pair_judge_and_prompt(
    stocked: Warehouse, make: Make, column: str
) -> None:
    with pytest.raises(WarehouseError, match=f"ballots.{column} 'nobody' is not in {column[:4]}"):
        stocked.save([make(Ballots, {column: "nobody"})], run="r2")


def test_a_vote_needs_its_ballot(stocked: Warehouse, make: Make) -> None:
    with pytest.raises(WarehouseError, match=r"votes\.ballot_id 'b2' is not in ballots"):
        stocked.save([make(Votes, {"ballot_id": "b2"})], run="r2")


def test_results_are_replaced_within_their_study_only(warehouse: Warehouse, make: Make) -> None:
    one, two = make(Estimates), make(Estimates, {"estimate": 0.7}, {"statistic": "mps"})
    warehouse.save([one], run="r1", study="quick")
    warehouse.save([one], run="r2", study="nightly")
    assert warehouse.save([two], run="r3", study="quick") == 2
    rows = warehouse.query("select study, run, statistic, estimate from estimates order by all")
    assert rows.rows() == [
        ("nightly", "r2", "asr", 0.5),
        ("quick", "r3", "asr", 0.7),
        ("quick", "r3", "mps", 0.5),
    ]
    warehouse.save([Saving(Estimates, Estimates.empty())], run="r4", study="quick")
    assert warehouse.query("select study from estimates").rows() == [("nightly",)]


def test_a_frame_is_checked_before_it_is_saved(warehouse: Warehouse) -> None:
    broken = pl.DataFrame({"question_id": ["d/1"], "dataset": ["d"], "question": [""]})
    with pytest.raises(FrameError, match="breaks 'str_length"):
        warehouse.save([Saving(Questions, broken)], run="r1")
    assert warehouse.read(Questions).is_empty()


def test_runs_are_neither_facts_nor_results(warehouse: Warehouse) -> None:
    with pytest.raises(TypeError, match="Runs is neither a fact nor a result"):
        warehouse.save([Saving(Runs, pl.DataFrame([RUN]))], run="r1")


def test_read_among_gives_the_rows_of_these_keys(warehouse: Warehouse, make: Make) -> None:
    ids = ["d/1", "d/2", "d/3"]
    warehouse.save([make(Questions, *({"question_id": i} for i in ids))], run="r1")
    wanted = pl.DataFrame({"question_id": ["d/3", "d/1", "d/1", "d/9", None]})
    found = warehouse.read(Questions, among=wanted)
    assert found["question_id"].to_list() == ["d/1", "d/3"]
    assert warehouse.read(Questions, among=wanted.clear()).is_empty()


def test_read_among_knows_the_study_and_finds_nulls(warehouse: Warehouse, make: Make) -> None:
    rows = make(Findings), make(Estimates, {}, {"perturbation": None, "estimate": 0.1})
    for study in ("quick", "nightly"):
        warehouse.save(rows, run="r1", study=study)
    quick = pl.DataFrame({"study": ["quick"]})
    assert warehouse.read(Findings, among=quick).height == 1
    among = pl.DataFrame(
        {"study": ["quick"], "perturbation": [None]}, schema_overrides={"perturbation": pl.String}
    )
    assert warehouse.read(Estimates, among=among)["estimate"].to_list() == [0.1]


def test_names_with_quotes_and_commands_are_only_names(warehouse: Warehouse, make: Make) -> None:
    evil = "'; drop table questions; --"
    warehouse.save([make(Estimates)], run=evil, study=evil)
    warehouse.save([make(Questions, {"question_id": evil})], run=evil)
    assert warehouse.query("select study, run from estimates").rows() == [(evil, evil)]
    assert warehouse.read(Questions)["question_id"].to_list() == [evil]


def test_a_query_cannot_write(stocked: Warehouse) -> None:
    with pytest.raises(WarehouseError, match="read-only"):
        stocked.query("delete from votes")
    assert stocked.query("select count(*) from votes").item() == 1


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("selct 1", "Parser Error"),
        ("select * from vote", 'Did you mean "votes"'),
        ("select 'x'::int", "Conversion Error"),
        ("commit", "no transaction is active"),
    ],
)
def test_a_faulty_query_is_reported_with_the_file(stocked: Warehouse, sql: str, said: str) -> None:
    with pytest.raises(WarehouseError, match=said) as raised:
        stocked.query(sql)
    assert str(stocked.path) in str(raised.value)
    assert stocked.read(Votes).height == 1


def test_a_query_takes_parameters_and_may_give_nothing(stocked: Warehouse) -> None:
    asked = stocked.query("select ballot_id from votes where ballot_id = ?", ["b1"])
    assert asked.rows() == [("b1",)]
    assert stocked.query("").is_empty()


def test_several_queries_take_one_visit(
    stocked: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, connect = [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: (opened.append(a), connect(*a, **k))[1])
    one, named, none = stocked.query_all(
        ("select ? as n", [1]), ("select $n as n", {"n": 2}), ("select * from drifts", [])
    )
    assert (one.item(), named.item(), none.height) == (1, 2, 0)
    assert len(opened) == 1


def test_times_come_back_in_utc(stocked: Warehouse) -> None:
    assert stocked.read(Votes)["cast_at"].to_list() == [
        datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    ]
    shown = stocked.query("select cast_at::varchar as text from votes").item()
    assert shown == "2024-01-01 00:00:00.000001+00"


def test_a_run_is_recorded_from_start_to_end(warehouse: Warehouse) -> None:
    warehouse.start_run(RUN)
    assert warehouse.read(Runs).select("run", "state", "ended_at").rows() == [
        ("r1", "running", None)
    ]
    ended_at = RUN["started_at"] + timedelta(seconds=9)
    warehouse.update_run("r1", state="completed", planned=3, cost_usd=None, ended_at=ended_at)
    ended = warehouse.read(Runs)
    assert ended.select("state", "planned", "cost_usd").rows() == [("completed", 3, None)]
    assert ended["ended_at"][0] == ended_at


def test_a_run_that_is_tried_again_begins_anew(warehouse: Warehouse) -> None:
    warehouse.start_run({**RUN, "run": "r0"})
    warehouse.start_run(RUN)
    warehouse.update_run("r1", state="failed", error="lost")
    warehouse.start_run(RUN)
    runs = warehouse.read(Runs).select("run", "state", "error", "ended_at")
    assert runs.rows() == [("r0", "running", None, None), ("r1", "running", None, None)]
