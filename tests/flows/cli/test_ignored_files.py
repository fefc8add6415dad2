"""Files of the user's own folder that cannot be used: said once, where they matter."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Voirdire = Callable[..., Any]
BAD = {"first": 'kind = "pair"', "second": 'kind = "pair'}


@pytest.fixture
def prompts(tmp_path: Path) -> list[Path]:
    """Write two prompts that cannot be used, and a log."""
    folder = tmp_path / "voirdire" / "prompts"
    folder.mkdir(parents=True)
    files = [folder / f"{name}.toml" for name in BAD]
    for file, text in zip(files, BAD.values(), strict=True):
        file.write_text(text, encoding="utf-8")
    vote = {"question_id": 1, "model_a": "x", "model_b": "y", "winner": "model_a", "judge": "gpt"}
    (tmp_path / "votes.jsonl").write_text(json.dumps(vote), encoding="utf-8")
    return files


def test_the_list_says_why_and_names_each_file_once(
    voirdire: Voirdire, prompts: list[Path]
) -> None:
    # Each mistake of a file has a line of its own.
    said = " ".join(voirdire("list", "prompts").stderr.split())
    for file, why in zip(prompts, ("- the file needs", "it is not valid"), strict=True):
        assert said.count(file.name) == 1
        assert f"{file} cannot be used: {why}" in said


def test_other_commands_say_one_line(voirdire: Voirdire, prompts: list[Path]) -> None:
    done = voirdire("measure", "votes.jsonl")
    assert done.returncode == 0
    ignored = [line for line in done.stderr.splitlines() if "ignored" in line]
    named = "prompts/first.toml, prompts/second.toml"
    assert ignored == [
        f"voirdire: ignored files that cannot be used: {named}. `voirdire list` says why"
    ]
    prompts[1].unlink()
    said = " ".join(voirdire("measure", "votes.jsonl").stderr.split())
    assert said.count("ignored") == 1
    assert f"{prompts[0]} cannot be used: - the file needs" in said


def test_files_of_all_kinds_are_named_in_one_line(voirdire: Voirdire, prompts: list[Path]) -> None:
    folder = prompts[0].parent.with_name("providers")
    folder.mkdir()
    (folder / "desk.toml").write_text('[provider]\nattempts = "many"', encoding="utf-8")
    named = "prompts/first.toml, prompts/second.toml, providers/desk.toml"
    for words in (("measure", "votes.jsonl"), ("plan", "quick")):
        (line,) = [said for said in voirdire(*words).stderr.splitlines() if "ignored" in said]
        assert line.startswith(f"voirdire: ignored files that cannot be used: {named}.")


@pytest.mark.parametrize("words", [("list", "first"), ("plan", "--prompt", "first")])
def test_a_prompt_that_is_asked_for_says_why(
    voirdire: Voirdire, prompts: list[Path], words: tuple[str, ...]
) -> None:
    done = voirdire(*words)
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert f"the judge prompt 'first' of {prompts[0]} cannot be used: - the file needs" in said
    assert done.stderr.count("first.toml") == 1
