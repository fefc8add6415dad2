"""Size and shape of the repository: python benchmarks/house.py [FOLDER].

Prints lines of product, modules that lie loose in a folder, imports of another folder's private
modules, lines kept from the formatter and the length of the README, of this checkout or of another.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOMS = ("booth", "flows", "schemas", "tasks", "warehouse")
PRODUCT = {".py", ".sql", ".toml", ".j2", ".css", ".js", ".html"}
CROWDED = 10


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
        "README: lines": len(readme.splitlines()),
        "README: words": len(readme.split()),
    }
    for name, number in rows.items():
        print(f"{name:46}{number:>8}")


if __name__ == "__main__":
    main()
