from pathlib import Path

import pytest

from tasks.kit.catalogue import read_toml
from tasks.perturbations import Item

FOLDER = Path(__file__).parents[3] / "tasks" / "datasets" / "_bloom"


@pytest.fixture(scope="session")
def bundled() -> list[tuple[Item, dict[str, str]]]:
    """The bundled targets, each with the versions that it brings."""
    entries = [
        entry for path in sorted(FOLDER.glob("*.toml")) for entry in read_toml(path)["questions"]
    ]
    return [
        (
            Item(f"bloom/{entry['id']}/a2", entry["question"], entry["target"]),
            {
                "factual_error": _replaced(entry["target"], entry["errors"]),
                "gender_bias": _replaced(entry["target"], entry["bias"]),
            },
        )
        for entry in entries
    ]


def _replaced(text: str, pairs: list[list[str]]) -> str:
    for right, wrong in pairs:
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    return text
