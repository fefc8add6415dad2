"""Docstrings of catalogue entries as text for a reader of the terminal, wrapped to its width."""

import inspect
import re
import textwrap

ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
REFERENCE = re.compile(r"\s*\(:\w+:`[^`]*`\)")
"""A cross-reference alone in parentheses, which leads to nothing that a terminal shows."""
EMPHASIS = re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])")
SECTION = re.compile(r"^(\S.*)\n-{3,}\n", re.MULTILINE)
FOR_PYTHON = ("Parameters", "Returns", "Raises", "Yields")
READING = "How to read it"
HEADINGS = {"Examples": "Example"}
"""Section of a docstring -> its heading, where the terminal has another one."""
HANGING = re.compile(r" *(?:- |\w+ = )")
"""How a line of a list or of settings begins: what follows its first line is indented."""
LONGEST_LINE = 100
"""Longer lines are hard to read; `--help` has the same limit."""


def documented(entry: object, reading: str = "") -> str:
    """Return a docstring as text: what the entry is, how to read its results, then the details.

    ``reading`` comes last of what says how to read the results. What callers in Python need is
    left out: parameters, types and examples in code.
    """
    text = without_markup(inspect.getdoc(entry) or "")
    about, *others = SECTION.split(text)
    summary, _, details = about.partition("\n\n")
    found = dict(zip(others[::2], others[1::2], strict=True))
    # What is said of each returned value, without its name and type.
    said = [line for line in found.get("Returns", "").split("\n") if line.startswith(" ")]
    returned = _paragraphs(textwrap.dedent("\n".join(said)))
    results = "\n".join(filter(None, (returned, reading)))
    parts = [_paragraphs(summary), _under(READING, results)]
    parts.append(_under("Details", _paragraphs(details)) if results else _paragraphs(details))
    for heading, body in found.items():
        if heading not in FOR_PYTHON and ">>>" not in body:
            parts.append(_under(HEADINGS.get(heading, heading), _paragraphs(body)))
    return "\n\n".join(filter(None, parts))


def without_markup(text: str) -> str:
    """Replace roles, double backticks, emphasis and the colons before a block by plain text."""
    text = ROLE.sub(r"`\1`", REFERENCE.sub("", text)).replace("``", "`")
    return re.sub("::$", ":", EMPHASIS.sub(r"`\1`", text), flags=re.MULTILINE)


def wrapped(text: str, width: int) -> str:
    """Break lines that are longer than the terminal is wide, each with its own indent."""
    return "\n".join(_wrapped(line, min(width, LONGEST_LINE)) for line in text.split("\n"))


def _wrapped(line: str, width: int) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line,
        max(width, len(indent) + 20),
        subsequent_indent=f"{indent}  " if HANGING.match(line) else indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _paragraphs(text: str) -> str:
    """Join the lines of each paragraph; lines of indented blocks and of lists stay apart."""
    joined: list[str] = []
    for line in text.strip("\n").split("\n"):
        goes_on = joined and joined[-1] and line and not line.startswith((" ", "- "))
        if goes_on and not joined[-1].startswith(" "):
            joined[-1] += f" {line}"
        else:
            joined.append(line)
    return "\n".join(joined)


def _under(heading: str, body: str) -> str:
    return f"{heading}:\n{textwrap.indent(body, '  ')}" if body else ""
