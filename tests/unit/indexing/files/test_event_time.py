"""Test which date of a file is the time of its event."""

from datetime import UTC, datetime

import pytest

from waylore.indexing.blocks import Reading
from waylore.indexing.files.event_time import find_event_time


@pytest.mark.parametrize(
    ("uri", "title", "metadata", "expected"),
    [
        ("notes/a.md", "Meeting", {"date": "2026-03-01"}, "2026-03-01"),
        ("notes/2026-01-05.md", "Meeting", {"date": "2026-03-01"}, "2026-03-01"),
        ("notes/2026-01-05.md", "Meeting of 2026-02-03", {}, "2026-02-03"),
        ("notes/2026-01-05 Standup.md", "Standup", {}, "2026-01-05"),
        ("notes/20260105.md", "", {}, "2026-01-05"),
        ("notes/2026_01_05_standup.txt", "", {}, "2026-01-05"),
        ("notes/2026-01-05.csv#7", "", {}, "2026-01-05"),
        ("notes/a.md", "Meeting", {"date": "soon"}, None),
        ("2026-01-05/a.md", "Meeting", {}, None),  # the folder is no part of the name
        ("notes/2026-13-05.md", "Version 20.26.0105", {}, None),
        ("notes/2026-02-30.md", "", {}, None),
        ("notes/120260105.md", "", {}, None),
    ],
)
def test_event_time_is_found(uri: str, title: str, metadata: dict[str, str], expected: str | None) -> None:
    found = find_event_time(Reading(uri, title, "Text.", (), metadata))
    assert found == (datetime.fromisoformat(expected).replace(tzinfo=UTC) if expected else None)
