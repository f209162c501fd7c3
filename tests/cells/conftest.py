"""Let processes that tests start find `benchmarks`, as pytest does."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def add_root_to_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the root of the checkout to the path of processes."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
