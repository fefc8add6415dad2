"""FastChat's ``judge_prompts.jsonl`` as it is: one judge prompt per line.

Format: https://github.com/lm-sys/FastChat, fastchat/llm_judge/data/judge_prompts.jsonl.
"""

import json
import re
from pathlib import Path
from string import Formatter
from typing import Any

KEYS = ("name", "type", "output_format", "prompt_template")
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
TURN = re.compile(r"\{(question|answer|answer_a|answer_b|ref_answer)_([0-9]+)\}")
BRACED = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")
"""A word in braces, which a judge prompt has in two pairs of them unless it is a place."""
JUDGED = 2
"""The last turn of the conversations, which the prompts for several turns are about."""
SCALE = {"low": 1, "high": 10, "whole": False}
"""The scale that the prompts name; FastChat also reads grades with decimals."""
FORMS: dict[tuple[str, str], dict[str, Any]] = {
    ("pairwise", "[[A]]"): {"kind": "pair"},
    ("pairwise", "[[rating_a,rating_b]]"): {"kind": "pair", "verdict": "ratings", "scale": SCALE},
    ("single", "[[rating]]"): {"kind": "single", "scale": SCALE},
}
"""``type`` and ``output_format`` -> keys of a judge prompt."""


def prompts_of(file: Path) -> dict[str, dict[str, Any] | str]:
    """Return the keys of each judge prompt in a file, or why a line is none."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        return {file.stem: f"it cannot be read: {error}."}
    found: dict[str, dict[str, Any] | str] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            name, prompt = _prompt_in(line, f"{file.stem}-{number}")
            twice = f"line {number} has the name of an earlier line. Rename it."
            found |= {name: prompt} if name not in found else {f"{file.stem}-{number}": twice}
    return found


def _prompt_in(line: str, place: str) -> tuple[str, dict[str, Any] | str]:
    """Return the name and the keys of a prompt, or the line's place and what is wrong with it."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return place, f"the line is not valid JSON: {error}."
    missing = [
        key for key in KEYS if not (isinstance(record, dict) and isinstance(record.get(key), str))
    ]
    if missing:
        return place, f"the line is not a JSON object with the texts {', '.join(missing)}."
    name = record["name"]
    if not NAME.fullmatch(name):
        return place, f"the name {name!r:.60} is not allowed: use letters, digits, '_', '.', '-'."
    return name, _keys_of(record)


def _keys_of(record: dict[str, Any]) -> dict[str, Any] | str:
    """Return the keys of a judge prompt, or why it cannot be used."""
    name, system = record["name"], str(record.get("system_prompt") or "")
    try:
        template = _unformatted(record["prompt_template"])
    except ValueError as error:
        return str(error)
    turns = {int(number) for _, number in TURN.findall(system + template)}
    if later := max(turns - {1, JUDGED}, default=0):
        return (
            f"it shows turn {later} of a conversation, and a question has at most {JUDGED} turns."
        )
    form = FORMS.get((record["type"], record["output_format"]))
    if form is None:
        known = "; ".join(f"{kind} {reply}" for kind, reply in FORMS)
        return (
            f"type {record['type']!r:.40} with output_format {record['output_format']!r:.40} is "
            f"not known. Known: {known}."
        )
    return {
        **form,
        "source": f"{record.get('description') or name} (FastChat)",
        "system": _places_in(system, JUDGED if JUDGED in turns else 1),
        "user": _places_in(template, JUDGED if JUDGED in turns else 1),
    }


def _unformatted(template: str) -> str:
    """Return a template of ``str.format``, which has all other braces twice, as a judge prompt.

    One that FastChat could not format is left as it is.

    Raise ValueError if a place stands between braces, which would be an escaped word in a judge
    prompt.
    """
    try:
        parts = [*Formatter().parse(template)]
    except ValueError:
        return template
    literals, names = [""], []
    for literal, name, form, conversion in parts:
        literals[-1] += literal
        if name is not None:
            if form or conversion or not name.isidentifier():
                return template
            names.append(name)
            literals.append("")
    for name, before, after in zip(names, literals[:-1], literals[1:], strict=True):
        if before.endswith("{") and after.startswith("}"):
            raise ValueError(f"it shows {{{name}}} between braces. Put a space before it.")
    literals = [BRACED.sub(r"{\g<0>}", literal) for literal in literals]
    return literals[0] + "".join(
        f"{{{name}}}{after}" for name, after in zip(names, literals[1:], strict=True)
    )


def _places_in(template: str, judged: int) -> str:
    """Name the places as judge prompts do: without a number in the judged turn."""

    def name(place: re.Match[str]) -> str:
        what = place[1].replace("ref_answer", "reference")
        # For one turn, only the reference answer has a number.
        bare = int(place[2]) == judged and (judged == JUDGED or what == "reference")
        return f"{{{what}}}" if bare else f"{{{what}_{place[2]}}}"

    return TURN.sub(name, template)
