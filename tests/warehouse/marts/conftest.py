import pytest


@pytest.fixture(autouse=True)
def _light(copied_warehouses: None) -> None:
    """Copy new warehouses: these tests are about what marts show, not about how they are made."""
