"""Time to recognise and measure a log of 1 000 000 rows in each tabular format; limit 20 s.

``python benchmarks/logs.py [ROWS] [FORMAT ...]``; each runs in a process of its own.
CPU time tells more than seconds where the machine does other work.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

ROWS = 1_000_000
LIMIT = 20
MODELS = [f"model-{at}" for at in range(20)]
Rows = Iterator[dict[str, Any]]
draw = random.Random(1)


def pair() -> tuple[str, str]:
    """Draw two models."""
    one, other = draw.sample(MODELS, 2)
    return one, other


def fastchat_votes(rows: int) -> Rows:
    """Yield rows in the format fastchat_votes."""
    for at in range(rows):
        one, other = pair()
        who = "gpt4_pair" if at % 2 else f"expert_{at % 7}"
        winner = draw.choice(("model_a", "model_b", "tie"))
        yield {
            "question_id": at // 8,
            "model_a": one,
            "model_b": other,
            "winner": winner,
            "judge": who,
            "turn": 1,
        }


def fastchat_pair(rows: int) -> Rows:
    """Yield rows in the format fastchat_pair."""
    for at in range(rows):
        one, other = pair()
        won = (draw.choice(("model_1", "model_2", "tie")) for _ in range(2))
        yield {
            "question_id": at,
            "model_1": one,
            "model_2": other,
            "g1_winner": next(won),
            "g2_winner": next(won),
            "judge": ["gpt-4", "pair-v2"],
            "turn": 1,
            "g1_judgment": "x" * 200,
            "g2_judgment": "x" * 200,
        }


def fastchat_single(rows: int) -> Rows:
    """Yield rows in the format fastchat_single."""
    for at in range(rows):
        yield {
            "question_id": at // 20,
            "model": MODELS[at % 20],
            "judge": ["gpt-4", "single-v1"],
            "user_prompt": "x" * 200,
            "judgment": "x" * 200,
            "score": draw.randint(1, 10),
            "turn": 1,
        }


def alpaca_eval(rows: int) -> Rows:
    """Yield rows in the format alpaca_eval."""
    for at in range(rows):
        yield {
            "instruction": f"question {at}",
            "output_1": "x" * 200,
            "output_2": "x" * 200,
            "generator_1": "base",
            "generator_2": MODELS[at % 20],
            "annotator": "weighted",
            "preference": 1 + draw.random(),
        }


def arena_hard(rows: int) -> Rows:
    """Yield rows in the format arena_hard."""
    for at in range(rows):
        games = [{"score": draw.choice(("A>B", "B>A", "A=B")), "judgment": "x" * 100}] * 2
        yield {"question_id": at // 20, "model": MODELS[at % 20], "judge": "gpt", "games": games}


def arena_battles(rows: int) -> Rows:
    """Yield rows in the format arena_battles."""
    for at in range(rows):
        one, other = pair()
        yield {
            "id": str(at),
            "model_a": one,
            "model_b": other,
            "winner": draw.choice(("model_a", "model_b", "tie", "both_bad")),
        }


def langfuse(rows: int) -> Rows:
    """Yield rows in the format langfuse."""
    for at in range(rows):
        person = at % 4 == 0
        yield {
            "id": str(at),
            "name": "helpful",
            "value": draw.randint(1, 5),
            "stringValue": None,
            "dataType": "NUMERIC",
            "source": "ANNOTATION" if person else "EVAL",
            "traceId": f"t{at // 2}",
            "authorUserId": f"u{at % 3}" if person else None,
        }


def langsmith(rows: int) -> Rows:
    """Yield rows in the format langsmith."""
    for at in range(rows):
        person = at % 4 == 0
        source = {"type": "app", "user_id": f"u{at % 3}"} if person else {"type": "model"}
        yield {
            "id": str(at),
            "run_id": f"r{at // 2}",
            "key": "correct",
            "score": at % 2,
            "value": None,
            "feedback_source": source,
        }


def rewardbench(rows: int) -> Rows:
    """Yield rows in the format rewardbench."""
    for at in range(rows):
        yield {
            "id": at,
            "subset": "chat",
            "scores_chosen": draw.random(),
            "scores_rejected": draw.random(),
        }


def llmbar(rows: int) -> Rows:
    """Yield rows in the format llmbar."""
    for at in range(rows):
        yield {
            "subset": "natural",
            "judge": "gpt",
            "prompt": "cot",
            "item": at,
            "label": 1,
            "winner_order1": draw.choice("12"),
            "winner_order2": draw.choice("12"),
        }


def mapped(rows: int) -> Rows:
    """Yield rows in the format mapped."""
    for at in range(rows):
        yield {"id": at, "verdict": draw.choice(("pass", "fail")), "checked": "pass"}


FORMATS: tuple[Callable[[int], Rows], ...] = (
    fastchat_votes,
    fastchat_pair,
    fastchat_single,
    alpaca_eval,
    arena_hard,
    arena_battles,
    langfuse,
    langsmith,
    rewardbench,
    llmbar,
    mapped,
)
MAPPED = ("--map", "item=id", "--map", "label=verdict", "--map", "human_label=checked")


def written(path: Path, rows: Rows) -> Path:
    """Write rows to a file of the suffix's kind."""
    if path.suffix == ".parquet":
        pl.DataFrame(list(rows)).write_parquet(path)
    elif path.suffix == ".csv":
        pl.DataFrame(list(rows)).write_csv(path)
    else:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def cpu_seconds() -> float:
    """Return the CPU time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(rows: int, names: list[str]) -> None:
    """Print the seconds of each format, and which are above the limit."""
    suffixes = {"arena_battles": ".parquet", "mapped": ".csv"}
    slow = []
    for make in FORMATS:
        name = make.__name__
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = written(Path(folder) / f"log{suffixes.get(name, '.jsonl')}", make(rows))
            words = [sys.executable, "-m", "flows.cli", "measure", str(path)]
            began, used = time.perf_counter(), cpu_seconds()
            done = subprocess.run(
                [*words, *(MAPPED if name == "mapped" else ())],
                capture_output=True,
                text=True,
                check=False,
            )
            seconds, cpu = time.perf_counter() - began, cpu_seconds() - used
        state = "" if done.returncode == 0 else f"  FAILED: {done.stderr[-300:]}"
        print(f"{name:16} {seconds:6.1f} s, CPU {cpu:6.1f} s{state}", flush=True)
        slow += [name] if seconds > LIMIT or done.returncode else []
    print(f"above {LIMIT} s or failed: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS, sys.argv[2:])
