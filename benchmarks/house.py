"""Size and shape of the repository: python benchmarks/house.py [FOLDER].

Prints lines of product, modules that lie loose in a folder, imports of another folder's private
modules, lines kept from the formatter, the files that a reader opens for one vote and for one ASR,
and the length of the README, of this checkout or of another.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOMS = ("booth", "flows", "schemas", "tasks", "warehouse")
PRODUCT = {".py", ".sql", ".toml", ".j2", ".css", ".js", ".html"}
CROWDED = 10
FILE = re.compile(r"`((?:flows|tasks|schemas|warehouse|booth)/[\w/]+\.(?:py|sql))`")
"""A file that a page names."""


def lines_in(files: list[Path]) -> int:
    """Count lines, blank ones too."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def imported(file: Path) -> Iterator[str]:
    """Yield each module that a file imports, and each name from it, as a module of it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files_to_follow(root: Path, what: str) -> set[str]:
    """Return the files that docs/architecture.md names for following one vote, or one ASR.

    The sentence "To follow one ..." names numbered steps above it, perhaps with some of their
    files in brackets, and further files.

    Raises
    ------
    ValueError
        If there is no such sentence, or a file does not exist.
    """
    text = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = {
        number: {*FILE.findall(step)}
        for number, step in re.findall(r"^(\d+)\. (.*)$", text, flags=re.MULTILINE)
    }
    sentence = re.search(rf"To follow one {what}[ ,].*?(?=\. [A-Z]|\.$)", text, flags=re.MULTILINE)
    if not sentence:
        raise ValueError(f"docs/architecture.md does not say how to follow one {what}.")
    named = {*FILE.findall(sentence[0])}
    listed = re.search(r"steps? (.*)", FILE.sub("", re.sub(r"(\d+) \([^)]*\)", "", sentence[0])))
    for number in re.findall(r"\b\d+\b", listed[1] if listed else ""):
        named |= steps[number]
    if missing := sorted(name for name in named if not (root / name).is_file()):
        raise ValueError(f"docs/architecture.md names files that do not exist: {missing}.")
    return named


def main() -> None:
    """Print the figures."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    files = [f for room in ROOMS for f in (root / room).rglob("*") if f.suffix in PRODUCT]
    code = [file for file in files if file.suffix == ".py"]
    tests = [*(root / "tests").rglob("*.py"), *(root / "benchmarks").rglob("*.py")]
    names = {".".join(file.relative_to(root).with_suffix("").parts): file for file in code}
    private = {name for name in names if name.rpartition(".")[2].startswith("_")} - {
        name for name in names if name.endswith("__")
    }
    across = sum(
        names[found].parent != file.parent
        for file in [*code, *(root / "benchmarks").rglob("*.py")]
        for found in private & {*imported(file)}
    )
    loose = {
        folder: sum(not file.stem.startswith("__") for file in folder.glob("*.py"))
        for folder in {file.parent for file in code}
    }
    readme = (root / "README.md").read_text(encoding="utf-8")
    skip = "fmt: " + "skip"
    rows = {
        "product: files": len(files),
        "product: lines": lines_in(files),
        "product: lines of Python": lines_in(code),
        "product: longest file, lines": max(lines_in([file]) for file in code),
        "tests and benchmarks: lines of Python": lines_in(tests),
        "modules in tasks/": loose[root / "tasks"],
        "modules in flows/": loose[root / "flows"],
        f"folders with more than {CROWDED} modules": sum(n > CROWDED for n in loose.values()),
        "private modules": len(private),
        "imports of another folder's private modules": across,
        f"lines with {skip}": sum(
            file.read_text(encoding="utf-8").count(skip) for file in [*code, *tests]
        ),
        "files to follow one vote": len(files_to_follow(root, "vote")),
        "files to follow one ASR": len(files_to_follow(root, "ASR")),
        "README: lines": len(readme.splitlines()),
        "README: words": len(readme.split()),
    }
    for name, number in rows.items():
        print(f"{name:46}{number:>8}")


if __name__ == "__main__":
    main()
