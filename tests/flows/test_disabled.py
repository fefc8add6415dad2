"""A provider file of the user that cannot be used disables that provider, and nothing else."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD = '[provider]\napi_base = "http://127.0.0.1:9/v1"\n[judges.one]\nmodel = "hosted_vllm/one"\n'
BAD = {
    "torn.toml": (b"[provider\nx", "torn.toml cannot be used: it is not valid TOML"),
    "binary.toml": (b"\xff\xfe\x00", "binary.toml cannot be used: it is not valid TOML"),
    "spy.toml": (b'[provider]\nkey_variable = "PATH"\n', "not the name of an API key"),
    "local_file.toml": (b'[provider]\napi_base = "file:///etc"\n', "http:// or https://"),
    "openai.toml": (GOOD.encode(), "there is a bundled provider of this name"),
    "control.toml": (
        b"[provider]\n\x1b[2J = 1\n",
        "control.toml cannot be used: it is not valid TOML",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_one_bad_file_disables_one_provider(
    name: str, tmp_path: Path, voirdire_in: Callable[..., Any]
) -> None:
    content, reported = BAD[name]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "good.toml").write_text(GOOD)
    environment = {**os.environ, "VOIRDIRE_PROVIDERS": str(tmp_path), "COLUMNS": "120"}
    done = voirdire_in(tmp_path, environment)("list", "judges")
    assert done.returncode == 0, done.stderr
    assert "good/one" in done.stdout
    assert "openai/gpt-5.5" in done.stdout
    assert reported in done.stderr
    assert done.stderr.startswith("voirdire: ignored a provider file: the provider ")
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("folder", ["statistics", "metrics", "perturbations", "datasets"])
def test_a_file_that_exits_disables_itself_alone(
    folder: str, tmp_path: Path, voirdire_in: Callable[..., Any]
) -> None:
    file = tmp_path / "voirdire" / folder / "ends.py"
    file.parent.mkdir(parents=True)
    file.write_text("import sys\nsys.exit(3)\n")
    run = voirdire_in(tmp_path, {**os.environ, "COLUMNS": "400"})
    for catalogue in ("metrics", "datasets", folder):
        done = run("list", catalogue)
        assert done.returncode == 0, done.stderr
        assert done.stdout
    assert f"'ends' of {file} cannot be used: SystemExit in line 2: " in done.stderr
    assert 'calls sys.exit. Put that code under `if __name__ == "__main__":`.' in done.stderr
