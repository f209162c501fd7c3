"""Results as plain values equal the JSON that the surfaces write."""

from datetime import UTC, datetime
from pathlib import Path

from waylore import Waylore
from waylore.surfaces import wire
from waylore.types.knowledge import Metadata

NOW = datetime(2026, 1, 31, 12, 30, 15, 250_000, tzinfo=UTC)


def test_to_dict_equals_the_wire(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore", clock=lambda: NOW) as memory:
        fact = {"subject": "login", "predicate": "needs", "object": "session service", "valid_from": "2025-05-01"}
        memory.add("The login needs the session service.", title="Login", uri="login.md", facts=[fact])
        metadata: Metadata = {"team": "core", "year": 2026, "share": 0.5, "is_new": True, "tags": ["a", "b"]}
        owns = ("Mara", "owns", "session service")
        memory.add("Mara looks after tokens.", metadata=metadata, labels=["staff", "ops"], facts=[owns])
        result = memory.search("Who can help with the login?")
    assert any(hit.path for hit in result)
    assert result.to_dict() == wire.SearchResult.of(result).model_dump(mode="json")
    for hit in result:
        assert hit.to_dict() == wire.Hit.of(hit).model_dump(mode="json")
