"""What ``--help`` and the completion of shells show."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
import polars as pl
import pytest
from click.testing import CliRunner

from booth.cli import booth
from flows.cli.main import main
from flows.running.run_row import first_row
from flows.studies import Study, make_study
from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

VERBS = {
    *("Accept", "Allow", "Also", "Answer", "Ask", "Audit", "Begin", "Browse", "Check", "Choose"),
    *("Compare", "Compute", "Copy", "Correct", "Count", "Create", "Draw", "Drop", "Exclude"),
    *("Exit", "Give", "Group", "Identify", "Label", "Let", "List", "Listen", "Map", "Measure"),
    *(
        "Name",
        "Offer",
        "Only",
        "Open",
        "Plan",
        "Print",
        "Put",
        "Read",
        "Recompute",
        "Require",
        "Run",
        "Save",
    ),
    *("Say", "Set", "Show", "Skip", "Spend", "Split", "Start", "Stop", "Subtract", "Switch"),
    *("Take", "Test", "Use", "Wait", "Write"),
}
"""How a text of help begins: it says what the option does. *Also* and *only* precede a verb."""


def _commands() -> dict[str, click.Command]:
    return {**main.commands, "booth": booth}


def test_every_help_begins_with_two_examples_that_can_be_typed() -> None:
    whole = CliRunner().invoke(main, ["--help"], prog_name="voirdire").stdout
    assert re.findall(r"^  voirdire .*", whole.split("\n\n")[1], re.MULTILINE) == [
        "  voirdire audit quick",
        "  voirdire show quick",
    ]
    for name, command in _commands().items():
        shown = CliRunner().invoke(command, ["--help"], prog_name=f"voirdire {name}").stdout
        _, examples, *_ = shown.split("\n\n")
        heading, *lines = examples.splitlines()
        assert (heading, len(lines)) == ("Examples:", 2), name
        for line in lines:
            words = shlex.split(line.strip().split(" > ")[0].split(" >> ")[0])
            if "=" in words[0]:  # a variable of the environment
                words = words[1:]
            assert words[:2] == ["voirdire", name]
            # Options and arguments are known and have values that they accept.
            command.make_context(name, words[2:])


def test_every_text_of_help_is_a_sentence_that_says_what_happens() -> None:
    for name, command in {"": main, **_commands()}.items():
        texts = {"": command.help}
        texts |= {
            each.opts[-1]: each.help for each in command.params if isinstance(each, click.Option)
        }
        for option, text in texts.items():
            where = f"{name} {option}"
            assert text, where
            first = text.split("\n\n")[0]
            assert re.fullmatch(r"[A-Z].*\.", first, re.DOTALL), where
            assert first.split()[0].removesuffix(",") in VERBS, f"{where}: {first}"


def test_help_states_the_defaults_of_a_study() -> None:
    study, seen = Study(), []
    for option in main.commands["audit"].params:
        default = getattr(study, option.name or "", None)
        stated = re.search(r"Default: ([\w.]+?)[.,]?(?: |$)", getattr(option, "help", None) or "")
        # An audit saves its results under the name of STUDY, which this is not.
        if not stated or default in (None, "") or option.name == "name":
            continue
        if isinstance(default, bool):
            assert stated[1] == ("on" if default else "off"), option.name
        elif isinstance(default, int | float):
            assert float(stated[1]) == default, option.name
        elif isinstance(default, str):
            assert stated[1] == default, option.name
        elif len(default) == 1:
            assert stated[1] == default[0], option.name
        else:
            continue
        seen.append(option.name)
    assert {"dataset", "prompts", "votes_per_pair", "mode", "sham", "seed", "checks", "probe"} <= {
        *seen
    }


def test_every_option_states_its_default() -> None:
    for name, command in _commands().items():
        context = click.Context(command, info_name=name)
        for option in command.params:
            if not isinstance(option, click.Option) or option.required:
                continue
            _, text = option.get_help_record(context) or ("", "")
            stated = [text.count(form) for form in ("Default: ", "Default if ", "[default: ")]
            assert sum(stated) == 1, f"{name} {option.opts[-1]}: {text}"


def test_all_commands_stand_in_four_sections() -> None:
    shown = CliRunner().invoke(main, ["--help"]).stdout
    titles = re.findall(r"^(\w+):$", shown, re.MULTILINE)
    assert titles == ["Examples", "Options", "Audit", "People", "Results", "Operate"]


def _completes_what_commands_take(completed: Callable[..., set[str]]) -> None:
    """Check completions where ``mine`` has results, and ``yours`` none."""
    for name in ("gate", "report", "show", "browse", "calibrate"):
        assert "mine" in completed(name, "mi")
        assert ("yours" in completed(name, "yo")) == (name == "calibrate")
    assert {"mine", "mine-people"} & completed("audit", "mi") == {"mine"}
    for name in ("show", "browse", "gate"):
        assert not {"offline/fair"} & completed(name, "mine", "--judge", "")
        assert "offline/fair" in completed(name, "other", "--judge", "offline/f")


def _asked(shell: str, *words: str) -> dict[str, str]:
    """Return the variables by which a shell asks the program to complete the last word."""
    return {
        "_VOIRDIRE_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": shlex.join(["voirdire", *words]),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
    }


@pytest.mark.slow
def test_the_installed_program_completes_names() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("voirdire")],
        capture_output=True,
        text=True,
        env={**os.environ, **_asked("bash", "audit", "--judge", "offline/d")},
        check=True,
    )
    assert "offline/dazzled" in re.split(r"[,\s]", done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_names(
    shell: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make_estimates: Callable[..., pl.DataFrame],
) -> None:
    script = CliRunner().invoke(main, ["completion", shell]).stdout
    assert "_VOIRDIRE_COMPLETE" in script
    monkeypatch.chdir(tmp_path)

    def completed(*words: str) -> set[str]:
        done = CliRunner().invoke(main, [], prog_name="voirdire", env=_asked(shell, *words))
        assert done.exit_code == 0, done.output
        return {re.split(r"[,\t]", line)[-1] for line in done.stdout.split()}

    assert "offline/dazzled" in completed("audit", "--judge", "offline/d")
    assert "quick" in completed("audit", "qui")
    # Bundled, but without results.
    assert "quick" not in completed("report", "qui")
    assert "fake_reference" in completed("show", "--perturbation", "fake")
    assert "which_judge" in completed("sql", "--ask", "wh")
    assert "dasr" in completed("list", "das")
    now = datetime.now(UTC)
    row = {**first_row("audit", "r1", make_study("quick", {}), now), "state": "completed"}
    for run, study in (("r1", "mine"), ("r2", "yours"), ("r3", "mine-people")):
        flow = "calibrate" if study.endswith("-people") else "audit"
        said = {**row, "run": run, "study": study, "flow": flow}
        Warehouse(tmp_path / "voirdire.duckdb").start_run(said)
    waves = make_estimates([{"wave": wave} for wave in ("n1", "n2", "o1", "")])
    Warehouse(tmp_path / "voirdire.duckdb").save([Saving(Estimates, waves)], run="r1", study="mine")
    for name in ("gate", "show"):
        found = completed(name, "mine", "--wave", "n")
        assert {"n1", "n2"} <= found
        assert "o1" not in found
        assert not {"n1", "n2"} & completed(name, "yours", "--wave", "n")
    _completes_what_commands_take(completed)
    drifted, judges = (("sql", "--ask", name, "--set") for name in ("what_drifted", "which_judge"))
    assert "days=7" in completed(*drifted, "d")
    assert "days=7" not in completed(*drifted, "s")
    for question in (drifted, judges):
        assert {"study=mine", "study=yours"} <= completed(*question, "st")
    # Bash passes three words, and replaces the last.
    last, known = (["study", "=", "m"], "mine") if shell == "bash" else (["study=m"], "study=mine")
    assert known in completed(*judges, *last)
    assert not {"yours", "study=yours"} & completed(*judges, *last)


def test_a_command_has_the_same_options_of_help_without_its_group() -> None:
    # What stands for the booth among the commands hands all words on to it.
    for command in [booth, *(each for each in main.commands.values() if each.add_help_option)]:
        context = click.Context(command, info_name=command.name, **command.context_settings)
        option = command.get_help_option(context)
        assert option is not None
        assert option.opts == ["-h", "--help"]
