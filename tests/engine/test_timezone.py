"""Test the timezone of a memory: it decides which day "yesterday" was, and never what a date means."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from waylore import Waylore
from waylore.errors import ArgumentError

NOW = datetime(2026, 3, 17, 22, 30, tzinfo=UTC)  # half past seven on the 18th in Tokyo
TALK = [
    {"role": "user", "content": "I visited the harbour.", "at": "2026-03-16T16:00Z"},  # on the 17th in Tokyo
    {"role": "user", "content": "I work at Havblikk since yesterday."},
]


@pytest.mark.parametrize(("timezone", "day"), [("UTC", "2026-03-16"), ("Asia/Tokyo", "2026-03-17")])
def test_words_name_days_in_the_timezone(tmp_path: Path, timezone: str, day: str) -> None:
    with Waylore.open(tmp_path / "talk.waylore", clock=lambda: NOW, timezone=timezone) as memory:
        memory.remember([{**message, "at": message.get("at", NOW)} for message in TALK], user="mara", session="one")
        found = memory.search("Where was I yesterday?", user="mara", method="conversation")
        assert [str(span) for span in found.spans] == [f"yesterday ({day})"]
        [work] = [fact for fact in memory.facts("mara", user="mara") if fact.object == "Havblikk"]
        assert work.valid_from == datetime.fromisoformat(f"{day}T00:00Z")
        assert memory.now() == NOW


def test_time_with_an_offset_is_local_already(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "talk.waylore", timezone="Asia/Tokyo") as memory:
        said = {"role": "user", "content": "I work at Havblikk since yesterday.", "at": "2026-03-17T18:30-04:00"}
        memory.remember([said], user="mara", session="one")
        [work] = [fact for fact in memory.facts("mara", user="mara") if fact.object == "Havblikk"]
        assert work.valid_from == datetime(2026, 3, 16, tzinfo=UTC)


def test_date_without_an_offset_is_utc_in_every_timezone(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "notes.waylore", timezone="Asia/Tokyo") as memory:
        memory.add("The harbour is closed.", at="2026-03-17", expires="2999-01-01")
        [document] = memory.documents()
        assert document.at == datetime(2026, 3, 17, tzinfo=UTC)
        assert document.expires == datetime(2999, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("timezone", ["Europe/Berlnn", "", "Europe", "+01:00", "../etc/passwd"])
def test_unknown_timezone_is_refused(timezone: str) -> None:
    with pytest.raises(ArgumentError, match="timezone must"):
        Waylore.open(":memory:", timezone=timezone)
