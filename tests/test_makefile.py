"""What the Makefile installs and looks up."""

import re
import subprocess
from pathlib import Path

import pytest
from waiting import PATIENCE_SECONDS

REPO = Path(__file__).parents[1]
LOCKS = sorted(file.name for file in REPO.glob("requirements*.txt"))
CLEAN, FOUND = "No known vulnerabilities found", "Found 1 known vulnerability in 1 package"
NO_ANSWER = "ERROR:pip_audit: Connection refused"
STUB = """#!/bin/sh
case "$2" in
    {found}) echo "{FOUND}"; exit 1 ;;
    {silent}) echo "{NO_ANSWER}" >&2; exit 1 ;;
esac
echo "{CLEAN}"
"""


def _lines() -> list[str]:
    """Return the Makefile's lines without comments and help, those that go on as one."""
    text = (REPO / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.split(" ## ")[0] for line in text.splitlines() if not line.startswith("#")]


def test_what_is_installed_is_locked() -> None:
    named = set()
    for line in _lines():
        if line.startswith("LOCKED :="):
            assert {"--require-hashes", "--no-deps"} < set(line.split())
            assert "--only-binary :all:" in line
        elif line.startswith("INSTALL :="):
            assert line.endswith(" $(LOCKED)")
        elif "$(INSTALL)" in line or "$(LOCKED)" in line:
            locks = re.findall(r" -r (\S+)", line)
            assert len(locks) == 1, line
            named |= {*locks}
        elif "pip install" in line:
            # Ours: what it asks for, and what builds it, is in a lock.
            assert "--no-deps --no-build-isolation --editable ." in line
        elif "npm" in line and "npm ci" not in line:
            assert not re.search(r"npm (i|install|add|exec|x)\b", line), line
        assert not re.search(
            r"\b(pipx|uvx|npx|easy_install|conda|curl|wget|uv (run|sync|tool))\b", line
        )
    assert sorted(named) == LOCKS


def test_locks_are_written_of_wheels_with_hashes() -> None:
    [lock] = [line for line in _lines() if line.startswith("LOCK :=")]
    assert "--only-binary :all:" in lock
    assert "--generate-hashes" in lock
    written = re.findall(r"\$\(LOCK\) .*--output-file (\S+)", "\n".join(_lines()))
    assert sorted(written) == LOCKS


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_each_package_by_hash(lock: str) -> None:
    text = (REPO / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert lines
    for line in lines:
        assert re.fullmatch(
            r"[\w.\[\],-]+==[^\s;]+( ; [^-]+?(-[^-]+?)*)?( +--hash=sha256:\w{64})+", line
        )


def test_benchmarks_install_nothing() -> None:
    for file in (REPO / "benchmarks").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"\bpip\W+install|\bnpm\b|\buvx?\W+(pip|run|tool)", text), file.name


@pytest.mark.parametrize(
    ("found", "silent", "code"),
    [("none", "none", 0), ("none", "*", 0), ("*-peer.txt", "*-dev.txt|*-tools.txt", 2)],
)
def test_each_lock_is_looked_up(tmp_path: Path, found: str, silent: str, code: int) -> None:
    stub = tmp_path / "pip-audit"
    texts = {"FOUND": FOUND, "NO_ANSWER": NO_ANSWER, "CLEAN": CLEAN}
    stub.write_text(STUB.format(found=found, silent=silent, **texts))
    stub.chmod(0o700)
    # -o: the tools' own environment is not made.
    words = ["make", "-o", ".venv/.tools", f"AUDIT={stub}", "vulnerabilities"]
    done = subprocess.run(
        words, cwd=REPO, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == code, done.stderr
    said = dict(re.findall(r"^(requirements\S*): (.+)$", done.stdout, re.MULTILINE))
    assert sorted(said) == LOCKS
    for lock, reported in said.items():
        ways = ((found, FOUND), (silent, "NOT CHECKED"), ("*", CLEAN))
        wanted = next(text for globs, text in ways if _fits(lock, globs))
        assert reported.startswith(wanted)
    assert (NO_ANSWER in done.stdout) == ("NOT CHECKED" in done.stdout)


def _fits(lock: str, globs: str) -> bool:
    return any(Path(lock).match(pattern) for pattern in globs.split("|"))
