"""tests/requirements.py: what is missing is named, with the way to get it."""

from pathlib import Path

import pytest
from tools.postgres.builds import MissingRequirement

import requirements
from requirements import find_model, find_set


def test_missing_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "CACHE", tmp_path)
    with pytest.raises(MissingRequirement, match=r"potion is missing or damaged; run `python tools/models.py potion`"):
        find_model("potion")


def test_missing_set_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "SETS", tmp_path)
    with pytest.raises(MissingRequirement, match="musique-train100 is missing"):
        find_set("musique-train100")
    (tmp_path / "musique-train100").mkdir()
    assert find_set("musique-train100") == tmp_path / "musique-train100"
