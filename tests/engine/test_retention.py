"""Retention: documents that are older than their collection keeps them are forgotten with the expired ones."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from databases import create_database
from surfaces.commands import run_json
from surfaces.serving import create_client, create_token, make_settings, start_app
from waylore import Waylore
from waylore.errors import ArgumentError
from waylore.settings.sections import RetentionSettings
from waylore.types.author import Author

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return create_database() if request.param == "postgres" else str(tmp_path / "memory.waylore")


class Clock:
    """Returns the time that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(url: str, clock: Clock) -> Iterator[Waylore]:
    """Open a collection with documents of different age, event, user and label."""
    with Waylore.open(url, clock=clock) as memory:
        clock.now = NOW - 40 * DAY
        memory.add("Written long ago.", uri="old.md")
        memory.add("Written long ago, for Mara.", uri="old-of-mara.md", user="mara")
        memory.add("Written long ago, about tomorrow.", uri="tomorrow.md", at=NOW + DAY)
        clock.now = NOW
        memory.add("Written now, about long ago.", uri="event.md", at=NOW - 31 * DAY, labels="red")
        memory.add("Written now.", uri="new.md")
        memory.add("Has expired.", uri="expired.md", expires=NOW - DAY)
        yield memory


def list_left(memory: Waylore) -> set[str]:
    return {document.uri for document in memory.documents(user="mara", include_expired=True)}


def test_old_documents_of_all_users_are_forgotten(memory: Waylore) -> None:
    planned = memory.forget(expired=True, older_than=30 * DAY, dry_run=True)
    receipt = memory.forget(expired=True, older_than=30 * DAY)
    assert set(planned.documents) == set(receipt.documents)
    assert list_left(memory) == {"new.md", "tomorrow.md"}
    assert memory.verify_forgotten(receipt) == ()
    entry = memory.audit(after=-1)[0]
    assert (entry.verb, entry.count, set(entry.documents)) == ("expire", 4, set(receipt.documents))
    assert memory.forget(expired=True, older_than=30 * DAY).documents == ()


def test_without_an_age_only_expired_documents_go(memory: Waylore) -> None:
    memory.forget(expired=True)
    assert list_left(memory) == {"old.md", "old-of-mara.md", "tomorrow.md", "event.md", "new.md"}


def test_names_users_and_labels_limit_what_goes(memory: Waylore) -> None:
    memory.forget("old.md", "new.md", expired=True, older_than=30 * DAY)
    assert "new.md" in list_left(memory)
    assert "old.md" not in list_left(memory)
    memory.as_author(Author("key:red", frozenset({"red"}))).forget(expired=True, older_than=30 * DAY)
    assert list_left(memory) == {"old-of-mara.md", "tomorrow.md", "new.md", "expired.md"}
    memory.forget(expired=True, older_than=30 * DAY, user="mara")
    assert list_left(memory) == {"tomorrow.md", "new.md", "expired.md"}


@pytest.mark.parametrize(("age", "expired"), [(timedelta(), True), (-DAY, True), (DAY, False)])
def test_wrong_age_is_refused(memory: Waylore, age: timedelta, expired: bool) -> None:
    with pytest.raises(ArgumentError, match="older_than must be a positive"):
        memory.forget(expired=expired, older_than=age, user="mara")


def test_setting_names_collections_and_all_others() -> None:
    kept = RetentionSettings.model_validate({"days": "team=30, *=400"})
    assert [kept.get_age(name) for name in ("team", "default")] == [30 * DAY, 400 * DAY]
    assert RetentionSettings(days=("team=30",)).get_age("default") is None
    for wrong in ("30", "team", "team=", "team=0", "team=-1", "team=1.5", "a=b=3"):
        with pytest.raises(ValidationError, match="such as team=400"):
            RetentionSettings.model_validate({"days": wrong})


def test_command_forgets_what_the_setting_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    with Waylore.open("memory.waylore") as memory:
        old = memory.add("Of 2020.", uri="old.md", at="2020-01-01")
        memory.add("Of today.", uri="new.md")
    assert run_json("forget", "--expired", "--yes")["documents"] == []
    monkeypatch.setenv("WAYLORE_RETENTION_DAYS", "team=1,*=400")
    assert run_json("forget", "--expired", "--yes", "--dry-run")["documents"] == [old]
    assert run_json("forget", "--expired", "--yes")["documents"] == [old]
    assert [entry["verb"] for entry in run_json("audit")] == ["write", "write", "expire"]


async def test_service_forgets_what_the_setting_says(url: str) -> None:
    settings = make_settings(url, retention={"days": "team=30"})
    async with start_app(settings) as app, create_client(app, create_token(url)) as admin:
        for name, left in (("team", 1), ("other", 2)):
            here = f"/v1/collections/{name}"
            await admin.put(here, json={})
            for at in ("2020-01-01T00:00:00Z", None):
                body = {"text": f"Of {at}.", **({"at": at} if at else {})}
                assert (await admin.post(f"{here}/documents", json=body)).status_code == 201
            assert (await admin.post(f"{here}/documents/forget", json={"expired": True})).status_code == 200
            assert (await admin.get(f"{here}/stats")).json()["documents"] == left
