"""A log that Inspect AI itself writes, in its own environment (`make .venv/.inspect`)."""

import subprocess
from pathlib import Path

import pytest
from waiting import PATIENCE_SECONDS

from tasks.logs.log_reader import read_log

PYTHON = Path(__file__).parents[4] / ".venv" / "inspect" / "bin" / "python"
RUN = """
import sys
import tiktoken

class Words:
    def encode(self, text, **more):
        return text.split()

# The real encoding would be downloaded.
tiktoken.get_encoding = tiktoken.encoding_for_model = lambda name: Words()
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import ProvenanceData, edit_score, write_eval_log
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import includes, model_graded_qa
from inspect_ai.scorer._metric import ScoreEdit

def says(name, texts):
    outputs = [ModelOutput.from_content(name, text) for text in texts]
    return get_model(name, custom_outputs=outputs)

grader = says("mockllm/grader", ["GRADE: C", "GRADE: C", "GRADE: C", "GRADE: C"])
samples = [Sample(id=name, input="1 + 1?", target="2") for name in ("a", "b")]
task = Task(dataset=samples, scorer=[model_graded_qa(model=grader), includes()], epochs=2, name="t")
log = eval(task, model=says("mockllm/model", ["2"] * 4), log_dir=sys.argv[1], display="none")[0]
person = ProvenanceData(author="ann", reason="checked")
edit_score(log, "a", "model_graded_qa", ScoreEdit(value="I", provenance=person), epoch=1)
write_eval_log(log, log.location)
write_eval_log(log, sys.argv[1] + "/log.json")
"""


@pytest.mark.slow
def test_a_log_of_inspect_itself(tmp_path: Path) -> None:
    if not PYTHON.is_file():
        pytest.skip("Inspect AI is not installed: make .venv/.inspect (a minute, 357 MB)")
    done = subprocess.run(
        [PYTHON, "-c", RUN, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-1000:]
    (packed,) = tmp_path.glob("*.eval")
    for path in (packed, tmp_path / "log.json"):
        log = read_log(path)
        assert log is not None
        names = ("item", "repeat", "judge", "human", "label")
        graded = log.ratings.filter(criterion="model_graded_qa").select(names)
        assert graded.rows() == [
            ("a", 0, "ann", True, "I"),
            ("a", 0, "model_graded_qa by mockllm/grader", False, "C"),
            ("a", 1, "model_graded_qa by mockllm/grader", False, "C"),
            ("b", 0, "model_graded_qa by mockllm/grader", False, "C"),
            ("b", 1, "model_graded_qa by mockllm/grader", False, "C"),
        ]
        assert set(log.ratings.filter(criterion="includes")["judge"]) == {"includes"}
