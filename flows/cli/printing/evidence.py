"""`voirdire show`: the pairs, texts and replies behind the results of a study."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

import polars as pl
from rich.padding import Padding
from rich.text import Text

from flows.cli.printing.answer import show_command
from flows.cli.printing.live import Printer
from flows.cli.printing.terminal import echo_json
from flows.publishing.evidence import SAME, VIEWS, Evidence, find_evidence, find_voted
from flows.running.run_row import is_calibration, why_without_results
from flows.studies.repeated import audit_again
from schemas.judging import SIDES
from tasks.judging.vote_wording import choice_text, grade_text, order_text
from tasks.kit.command_line import say
from tasks.kit.printable import message, printable
from tasks.reporting.wording import DRAWN, count, listing, marked, thousands
from tasks.rewriting.word_diff import difference
from warehouse.path_checks import default_path
from warehouse.store import Warehouse

NONE = {
    "flipped": "No perturbation changed a verdict of {who}.",
    "moved": "No perturbation moved a grade of {who}.",
    "invalid": "Every reply to {who} has a verdict.",
    "disagree": "No label of {who} that differs from people's is saved. "
    "`voirdire calibrate {study}` compares labels, where people voted or gave labels.",
    "changed": "No vote of {who} changed since the wave that drift compares with.",
    "all": "No pair of {who} was shown both with and without a perturbation.",
}
OF_LABELS = (
    "{!r} is a calibration, which has labels of items, and no perturbations, pairs or replies. To "
    "see the items that a judge and people label differently: `{}`."
)
CHOSEN = dict.fromkeys(VIEWS, DRAWN) | {
    "moved": "the furthest first",
    "disagree": "the worst first, judge by judge",
    "changed": f"{DRAWN}, votes on unperturbed answers before others",
}
"""What to show -> how those that are shown were chosen."""

FILTERS = ("judge", "prompt", "perturbation", "wave", "sample")

MARKS = {"removed": ("[-", "-]", "red"), "added": ("{+", "+}", "green")}
"""Changed words -> the marks around them, and their colour: never colour alone."""


def show_evidence(
    study: str, what: str, warehouse: Path | None, *, form: str, **wanted: Any
) -> None:
    """Print the evidence of a study: texts, changed words, verdicts and replies.

    ``wanted`` are the arguments of :func:`find_evidence` that choose among it.
    """
    found = find_evidence(study, what, warehouse, **wanted)
    if form == "json":
        echo_json([{**row, **_sham(row, found.replies)} for row in found.rows.to_dicts()])
        return
    filters = {"pair" if name == "sample" else name: wanted[name] for name in FILTERS}
    path = warehouse or default_path()
    others = list(_others(study, what, path, found, filters))
    if found.rows.is_empty():
        of_grades = what == "flipped" and found.others["grades"] and not found.others["verdicts"]
        if what != "disagree" and is_calibration(study, Warehouse(warehouse)):
            filters.pop("perturbation")
            say(OF_LABELS.format(study, show_command(study, path, filters, "disagree")))
        elif what != "disagree" and not found.voted:
            say(_without_votes(study, path, filters))
            return
        elif not of_grades and _looked_at(what, found):
            say(NONE[what].format(who=_who(study, filters), study=study))
        for other in others:
            say(other)
        return
    console = Printer()
    several = found.rows["prompt"].n_unique() > 1
    calibrations = what == "disagree" and found.rows["study"].n_unique() > 1
    for number, row in enumerate(found.rows.to_dicts(), 1):
        place = f"{number} of {found.total}"
        if calibrations:
            place += f" (calibration {row['study']})"
        for line in _lines(what, row, found, place, by_prompt=several):
            console.print(line)
        console.print()
    if found.total > found.rows.height:
        say(
            f"{found.rows.height} of {thousands(found.total)}, {CHOSEN[what]}; "
            f"--most {found.total} shows all."
        )
    if found.without_results:
        shown = listing(found.rows["wave"].unique().sort().to_list())
        *rest, last = found.without_results
        waves = f"{last} and {count(len(rest), 'other')}" if rest else last
        say(
            f"These are results of wave {shown}. The warehouse also has the votes of other "
            f"waves ({waves}): `{audit_again(path, study, last)}` measures {last} again, "
            f"asks no judge, and replaces the results of wave {shown}."
        )
    for other in others:
        say(other)


def _without_votes(study: str, path: Path, filters: Mapping[str, str | None]) -> str:
    """Say that a study, or a judge of it, has no vote, why, and what to do."""
    said = (
        f"No vote of {filters['judge'] or f'study {study}'} is saved, so there is nothing to show"
    )
    if find_voted(Warehouse(path), study, None):
        return f"{said}: `voirdire audit {quote(study)}` asks only for the votes that are missing."
    why = why_without_results(study, Warehouse(path))
    return f"{said}. {why[:1].upper()}{why[1:]}".rstrip()


def _looked_at(what: str, found: Evidence) -> bool:
    """Tell whether there was something to look at; if not, other lines say so."""
    if what == "changed":
        return bool(found.others["compared"]) or "wave" in found.others
    return what != "invalid" or not found.others["unread"]


def _who(study: str, filters: Mapping[str, str | None]) -> str:
    """Return whose results are shown, and of which pair."""
    who = filters["judge"] or f"study {study}"
    return who if filters["pair"] is None else f"{who} on {filters['pair']}"


def _others(
    study: str,
    what: str,
    path: Path,
    found: Evidence,
    filters: Mapping[str, str | None],
) -> Iterator[str]:
    """Say which other evidence the same filters leave, and which command shows it."""
    there = found.others
    if what == "changed":
        yield (
            f"{thousands(found.total)} of {count(there['compared'], 'vote')} changed between two "
            "waves; some votes change whenever a judge is asked again."
            if there["compared"]
            else f"Drift compares two waves of {_who(study, filters)} that asked the same "
            "questions: give each audit a label, `--wave LABEL`."
        )
        if not found.total and "wave" in there:
            yield _earlier_change(study, path, found, filters)
    if what == "flipped" and there["moved"]:
        command = show_command(study, path, filters, "moved")
        grades = f"{thousands(there['moved'])} of {count(there['grades'], 'grade')}"
        yield (
            f"{grades} of {_who(study, filters)} moved with a perturbation, by at most "
            f"{there['furthest']:g}. To see them, the furthest first: `{command}`."
        )
    elif what == "flipped" and there["grades"]:
        grades = count(there["grades"], "grade")
        yield f"None of {grades} of {_who(study, filters)} moved with a perturbation."
    if there.get("invalid") and what != "invalid":
        replies = count(there["invalid"], "reply has", "replies have")
        command = show_command(study, path, filters, "invalid")
        yield f"{replies} no verdict. To see them: `{command}`."
    elif there.get("unread") and not there["invalid"]:
        votes = count(there["unread"], "vote has", "votes have")
        yield f"{votes} no verdict. The replies are unknown: these votes were collected elsewhere."
    if there.get("flipped") and what in ("moved", "invalid") and found.rows.is_empty():
        changed = count(there["flipped"], "verdict")
        command = show_command(study, path, filters)
        yield f"A perturbation changed {changed}. To see them: `{command}`."


def _earlier_change(
    study: str, path: Path, found: Evidence, filters: Mapping[str, str | None]
) -> str:
    """Say which command shows the last confirmed change, since which the baseline is another."""
    base, wave = found.others["base"], found.others["wave"]
    command = f"`{show_command(study, path, {**filters, 'wave': wave}, 'changed')}`"
    said = f"The last confirmed change is that of wave {wave} since {base}"
    if wave not in found.without_results:
        return f"{said}: {command} shows it."
    return (
        f"{said}. `{audit_again(path, study, wave)}` measures the saved votes of {wave} again, "
        f"asks no judge, and replaces the results of other waves; then {command} shows it."
    )


def _lines(
    what: str, row: Mapping[str, Any], found: Evidence, place: str, *, by_prompt: bool
) -> Iterator[Text | Padding]:
    judge = marked(row["judge"], simulated=row["simulated"])
    since = f"{row['base']} -> " if what == "changed" else ""
    wave = f", wave {since}{row['wave']}" if row["wave"] else ""
    prompt = f", prompt {row['prompt'].partition('@')[0]}" if by_prompt else ""
    head = f"{place}  {judge}{prompt}{wave}  {_about(what, row)}"
    yield Text(printable(head), style="bold")
    if what == "disagree":
        yield from _texts(json.loads(row["texts"] or "{}"))
        yield from _replies({**row, "sample": row["item"]}, found.replies)
        return
    yield _labelled("sample", row["sample"])
    if what in ("invalid", "changed"):
        yield from _texts(_shown(row))
        yield from map(_reply, _before_and_after(row) if what == "changed" else [row])
        return
    yield from _texts({"question": row["question"], "anchor": row["anchor"]})
    if row["target"] is None:
        yield _labelled("texts", "unknown: these votes were collected elsewhere")
        return
    name = "target" if row["rating_kind"] is None else "answer"
    yield _compared(name, row["target"], row["perturbed"] or "")
    for text in _sham(row, found.replies).get("sham_targets", ()):
        yield _compared("sham", row["target"], text)
    yield from _replies(row, found.replies)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts that a judge saw: the question, and one answer or two."""
    first, _, alone = row["shown_first"].partition(" ")
    answers = {"answer": row[first]} if alone else {name: row[name] for name in SIDES}
    return {"question": row["question"], **answers}


def _before_and_after(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the two votes on a ballot that two waves have, each under the name of its wave."""
    for wave, end in ((row["base"], "_before"), (row["wave"], "")):
        said = {name: row[f"{name}{end}"] for name in ("choice", "rating", "reply")}
        yield {"arm": f"wave {wave}", "shown_first": row["shown_first"], **said}


def _sham(row: Mapping[str, Any], replies: pl.DataFrame) -> dict[str, list[str]]:
    """Return the texts of the sham and the replies to it; none where no pair is shown."""
    if "perturbed" not in row or replies.is_empty():
        return {}
    shams = [each for each in _own(row, replies) if each["arm"] == "sham"]
    return {
        "sham_targets": list(dict.fromkeys(each["target"] for each in shams)),
        "sham_replies": [each["reply"] for each in shams],
    }


def _about(what: str, row: Mapping[str, Any]) -> str:
    several = f", {row['criterion']}" if row.get("criterion") else ""
    if what == "disagree":
        human, judge = (grade_text(row[label]) for label in ("human_label", "judge_label"))
        return f"{row['item']}{several}: people: {human}, judge: {judge}"
    if what == "invalid":
        why = f" ({row['reason']})" if row["reason"] else ""
        return f"{row['perturbation'] or row['arm']}: {row['choice']}{why}"
    if what == "changed":
        votes = [
            choice_text(vote["choice"], vote["shown_first"], vote["rating"])
            for vote in _before_and_after(row)
        ]
        return f"{row['perturbation'] or row['arm']}: {' -> '.join(votes)}"
    said = [grade_text(row[arm] or "no verdict") for arm in ("control", "experimental")]
    sham = f" (sham: {grade_text(row['sham'])})" if row["sham"] else ""
    again = "" if row["repeat"] is None else f", repeat {row['repeat'] + 1}"
    return f"{row['perturbation']}{several}{again}: {' -> '.join(said)}{sham}"


def _texts(texts: Mapping[str, Any]) -> Iterator[Padding]:
    for name, text in texts.items():
        if text:
            yield _labelled(name, str(text))


def _labelled(name: str, text: str | Text) -> Padding:
    body = text if isinstance(text, Text) else Text(message(text))
    return Padding(Text.assemble((f"{name}: ", "dim"), body), (0, 0, 0, 2), expand=False)


def _compared(name: str, before: str, after: str) -> Padding:
    """Return both texts in one, with marks around removed and added words."""
    shown, found = Text(), difference(before, after)
    for part in found.parts:
        if part.change == "same":
            shown.append(message(part.text))
        else:
            opened, closed, colour = MARKS[part.change]
            shown.append(f"{opened}{message(part.text)}{closed}", style=colour)
    return _labelled(f"{name} ({found.note})" if found.note else name, shown)


def _own(row: Mapping[str, Any], replies: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the replies on the pairs of a row, in all arms."""
    # People label unperturbed items; a single answer is compared repeat by repeat.
    same = [*SAME, *(["repeat"] if row.get("repeat") is not None else [])]
    own = replies.filter(*(pl.col(name) == row[name] for name in same))
    unperturbed = pl.col("perturbation").is_null()
    wanted = pl.lit(row.get("perturbation"), pl.String)
    return own.filter(unperturbed | pl.col("perturbation").eq_missing(wanted)).to_dicts()


def _replies(row: Mapping[str, Any], replies: pl.DataFrame) -> Iterator[Padding]:
    yield from map(_reply, _own(row, replies))


def _reply(vote: Mapping[str, Any]) -> Padding:
    arm = "perturbed" if vote["arm"] == "experimental" else vote["arm"]
    first = vote["shown_first"]
    shown = ", ".join(filter(None, (arm, order_text(first))))
    verdict = choice_text(vote["choice"], first, vote["rating"])
    return _labelled(f"{shown}: {verdict}", vote["reply"])
