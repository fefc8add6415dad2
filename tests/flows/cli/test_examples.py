"""`voirdire init` and the user's own folder, from an empty folder to results."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli.examples import EXAMPLES
from warehouse.store import Warehouse

Voirdire = Callable[..., Any]


@pytest.mark.slow
def test_from_an_empty_folder_to_results_of_own_entries(
    voirdire: Voirdire, tmp_path: Path, warehouse: Warehouse
) -> None:
    made = voirdire("init")
    assert (made.returncode, made.stderr) == (0, "")
    written = sorted(file for file in (tmp_path / "voirdire").rglob("*.*") if file.suffix != ".pyc")
    named = [file.relative_to(tmp_path / "voirdire") for file in written]
    assert [line.strip() for line in made.stdout.splitlines()[1:-1]] == [str(n) for n in named]
    off = tmp_path / "voirdire" / "statistics" / "_mostly_first.py"
    off.rename(off.with_name("mostly_first.py"))

    listed = voirdire("list")
    for kind, file in {
        "datasets": "example.csv",
        "perturbations": "bandwagon.py",
        "prompts": "example.toml",
        "statistics": "mostly_first.py",
        "metrics": "within_one.py",
        "providers": "desk.toml",
        "studies": "example.toml",
    }.items():
        assert f"voirdire/{kind}/{file})" in "".join(listed.stdout.split()), kind

    done = voirdire("audit", "example")
    assert done.returncode == 0, done.stderr
    assert "To them any other, as bandwagon may be, makes" in " ".join(done.stdout.split())
    rows = warehouse.query(
        "select distinct dataset, prompt, perturbation from mart.bias "
        "where perturbation is not null"
    )
    [(dataset, prompt, perturbation)] = rows.rows()
    assert (dataset, perturbation) == ("example", "bandwagon")
    # A prompt of the user's own is named with a digest of its wording.
    assert re.fullmatch("example@[0-9a-f]{12}", prompt)
    counted = warehouse.query(
        "select judge, n, estimate from mart.numbers where statistic = 'mostly_first'"
    )
    assert set(counted["judge"]) == {"offline/honest", "offline/positional"}
    # Three questions, so three control pairs; this judge prefers the first slot.
    assert ("offline/positional", 3, 1.0) in counted.rows()


@pytest.mark.slow
def test_an_edited_prompt_asks_anew_and_old_votes_stay(
    voirdire: Voirdire, tmp_path: Path, warehouse: Warehouse
) -> None:
    assert voirdire("init").returncode == 0
    words = ("audit", "example", "--judge", "offline/honest")
    assert " 18 cast" in voirdire(*words).stdout
    assert "Nothing has changed since" in " ".join(voirdire(*words).stdout.split())
    prompt = tmp_path / "voirdire" / "prompts" / "example.toml"
    first = prompt.read_text()
    prompt.write_text(first.replace("in a hurry", "with much time"))
    assert voirdire("remeasure", "example").returncode == 0
    planned = voirdire("plan", "example", "--judge", "offline/honest")
    assert planned.returncode == 0
    done = voirdire(*words)
    assert (done.returncode, " 18 cast" in done.stdout) == (0, True), done.stderr
    votes = "select prompt, count(*) as n, count(distinct ballot_id) as different from ballots b"
    asked = warehouse.query(f"{votes} join votes using (ballot_id) group by prompt order by n")
    assert asked.select("n", "different").rows() == [(18, 18), (18, 18)]
    assert warehouse.query("select count(distinct prompt) as n from mart.bias")["n"].item() == 1
    prompt.write_text(first)
    assert " 0 cast" in voirdire(*words).stdout


def test_init_keeps_what_is_there(voirdire: Voirdire, tmp_path: Path) -> None:
    mine = tmp_path / "voirdire" / "studies" / "example.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text("about = 'mine'")
    made = voirdire("init")
    assert made.returncode == 0
    assert "1 file already there, unchanged." in made.stdout
    assert mine.read_text() == "about = 'mine'"


def test_a_home_that_does_not_exist_is_an_error_except_for_init(
    voirdire: Voirdire, tmp_path: Path
) -> None:
    place = str(tmp_path / "misspelt")
    for words in (("list",), ("plan",), ("audit", "quick"), ("measure", "votes.jsonl")):
        refused = voirdire(*words, VOIRDIRE_HOME=place)
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"voirdire: VOIRDIRE_HOME is '{place}', which is not a ")
    assert voirdire("init", VOIRDIRE_HOME=place).returncode == 0
    assert voirdire("list", "studies", VOIRDIRE_HOME=place).returncode == 0


def test_init_says_where_it_cannot_write(voirdire: Voirdire, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    made = voirdire("init", VOIRDIRE_HOME=str(tmp_path / "taken"))
    assert made.returncode == 2
    assert made.stderr.startswith(f"voirdire: {tmp_path / 'taken' / 'README.md'} cannot be written")
    assert "VOIRDIRE_HOME" in made.stderr


@pytest.mark.parametrize(
    ("place", "text", "said"),
    [
        ("statistics/bad.py", "import no_such_package", "ModuleNotFoundError in line 1"),
        (
            "statistics/other.py",
            "other = 1",
            "other.py cannot be used: it must define 'other' as a Statistic.",
        ),
        ("perturbations/padding.py", "", "there is a bundled perturbation of this name"),
        ("prompts/p.toml", "kind = 'pair'", "p.toml cannot be used:"),
        ("metrics/m.py", "1 / 0", "ZeroDivisionError in line 1"),
    ],
)
def test_a_bad_file_is_named_and_disables_itself_only(
    voirdire: Voirdire, tmp_path: Path, place: str, text: str, said: str
) -> None:
    file = tmp_path / "voirdire" / place
    file.parent.mkdir(parents=True)
    file.write_text(text)
    listed = voirdire("list")
    assert listed.returncode == 0
    assert said in listed.stderr
    assert str(file) in listed.stderr
    assert "Traceback" not in listed.stderr
    assert voirdire("plan", "quick").returncode == 0


def test_the_bandwagon_of_the_readme_is_the_example() -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    block = readme.split("## Add a perturbation")[1].split("```python\n")[1].split("```")[0]
    assert block == (EXAMPLES / "perturbations" / "bandwagon.py").read_text(encoding="utf-8")
