import importlib
from collections.abc import Callable
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def benchmark() -> Callable[[str], ModuleType]:
    """Return what imports a benchmark by name."""
    return lambda name: importlib.import_module(f"benchmarks.{name}")
