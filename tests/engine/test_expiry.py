"""Test documents that expire: what each call shows before and after, repeated memories, and forgetting them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from databases import create_database
from waylore import Waylore
from waylore.errors import ArgumentError, Forbidden, NotFound
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.types.author import Author

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
CODE = "The door code of the harbour office is 4471."


@dataclass
class Clock:
    """A clock that tests set."""

    now: datetime = NOON - SECOND

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Waylore]:
    url = create_database() if request.param == "postgres" else str(tmp_path / "expiry.waylore")
    with Waylore.open(url, clock=clock, embedder=HashingEmbedder(64, quiet=True)) as memory:
        yield memory


def read_all(memory: Waylore, document: str, **options: Any) -> list[bool]:
    """Return whether each call shows a document."""
    found = memory.search("What is the door code of the Harbour office?", record_use=False, **options)
    return [
        document in {hit.document.id for hit in found.hits},
        "4471" in memory.context(found).text,
        "Harbour office" in {entity.name for entity in found.entities},
        bool(memory.facts("Harbour office", **options)),
        bool(memory.related("Harbour office", **options).entities),
    ]


def shows(memory: Waylore, document: str, passage: str) -> list[bool]:
    """Return whether each call by id shows a document."""

    def finds(call: Any, id_: str) -> bool:
        try:
            return bool(call(id_))
        except NotFound:
            return False

    listed = {each.id for each in memory.documents()}
    return [document in listed, finds(memory.get, document), finds(memory.get_passage, passage)]


def test_every_call_hides_what_has_expired(memory: Waylore, clock: Clock) -> None:
    fact = ("Harbour office", "has_code", "4471")
    document = memory.add(CODE, facts=[fact], at=NOON - timedelta(days=9), expires=NOON)
    memory.add("The harbour has a door.", facts=[("Harbour", "has", "door")])
    passage = memory.get(document).passages[0].id
    assert read_all(memory, document) == [True] * 5
    clock.now = NOON  # without a write in between: no answer comes from the cache
    assert read_all(memory, document) == [False] * 5
    assert shows(memory, document, passage) == [False] * 3
    assert read_all(memory, document, as_of=NOON - SECOND) == [True] * 5
    assert [each.id for each in memory.documents(include_expired=True) if each.expires] == [document]
    assert memory.get(document, include_expired=True).document.expires == NOON
    assert sum('"expires":"2026-06-01T12:00:00+00:00"' in line for line in memory.export_lines()) == 1
    clock.now = NOON - SECOND
    assert read_all(memory, document) == [True] * 5


def test_answers_are_cached_until_something_expires(memory: Waylore, clock: Clock) -> None:
    memory.add(CODE, expires=NOON)
    memory.add("The harbour is closed.", expires=NOON + SECOND)

    def ask() -> tuple[int, bool]:
        found = memory.search("harbour", record_use=False)
        return len(found.hits), found.from_cache

    assert [ask(), ask()] == [(2, False), (2, True)]
    clock.now = NOON
    assert [ask(), ask()] == [(1, False), (1, False)]
    clock.now += SECOND
    assert ask() == (0, False)
    assert len(memory.forget(expired=True).documents) == 2
    assert [ask(), ask()] == [(0, False), (0, True)]


def test_expired_documents_are_forgotten(memory: Waylore, clock: Clock) -> None:
    gone = [memory.add(CODE, expires=NOON), memory.remember(CODE, user="ann", expires=date(2026, 6, 1)).documents[0]]
    stays = [memory.add("The harbour is closed."), *memory.add_facts([("Ann", "likes", "tea")], expires="2026-06-02")]
    assert memory.forget(expired=True, dry_run=True).documents == (gone[1],)  # a date is its first moment
    clock.now = NOON
    assert set(memory.forget(expired=True, dry_run=True).documents) == set(gone)
    assert memory.forget(expired=True, user="ann", dry_run=True).documents == (gone[1],)
    assert memory.forget(expired=True, where={"kind": "note"}).documents == ()
    assert memory.forget(gone[0], stays[0], expired=True, dry_run=True).documents == (gone[0],)
    receipt = memory.forget(expired=True)
    assert set(receipt.documents) == set(gone)
    assert memory.verify_forgotten(receipt) == ()
    assert {each.id for each in memory.documents(include_expired=True)} == set(stays)
    assert memory.forget(expired=True).documents == ()
    with pytest.raises(ArgumentError, match="expired"):
        memory.forget(expired="yes")  # type: ignore[arg-type]


def test_author_forgets_only_its_own_expired_documents(memory: Waylore, clock: Clock) -> None:
    open_, own = memory.add(CODE, expires=NOON), memory.add(CODE, labels="staff", expires=NOON)
    of_ann = memory.add(CODE, user="ann", expires=NOON)
    clock.now = NOON
    assert memory.as_author(Author("staff", frozenset({"staff"}))).forget(expired=True).documents == (own,)
    assert memory.as_author(Author("ann", user="ann")).forget(expired=True).documents == (of_ann,)
    assert memory.forget(open_).documents == (open_,)  # by its name, although it has expired


def test_memory_that_expires_later_replaces_a_repeated_one(memory: Waylore, clock: Clock) -> None:
    def get_expiry(document: str) -> datetime | None:
        return memory.get(document, include_expired=True).document.expires

    first = memory.add(CODE, source="conversation", expires=NOON)
    assert memory.add(CODE, source="conversation", expires=NOON - SECOND) == first
    assert get_expiry(first) == NOON
    assert memory.add(CODE, source="conversation", expires=NOON + SECOND) == first
    assert get_expiry(first) == NOON + SECOND
    clock.now = NOON + SECOND
    assert memory.add(CODE, source="conversation") == first
    assert get_expiry(first) is None
    [said] = memory.add_facts([("Ann", "likes", "tea")], source="conversation", expires=NOON, at="2026-01-01")
    assert memory.facts("Ann") == ()
    assert memory.add_facts([("Ann", "likes", "tea")], source="conversation", at="2026-01-01") == (said,)
    assert [fact.object for fact in memory.facts("Ann")] == ["tea"]


def test_turn_that_expires_later_replaces_a_known_one(memory: Waylore, clock: Clock) -> None:
    def say(expires: datetime | None) -> tuple[int, int]:
        report = memory.remember(CODE, user="ann", session="one", at="2026-05-01", expires=expires)
        return report.new, report.known

    assert [say(NOON), say(NOON), say(NOON - SECOND)] == [(1, 0), (0, 1), (0, 1)]
    clock.now = NOON
    assert memory.search("door code", user="ann").hits == ()
    assert [say(None), say(NOON)] == [(1, 0), (0, 1)]
    assert len(memory.search("door code", user="ann").hits) == 1


def test_files_expire(memory: Waylore, clock: Clock, tmp_path: Path) -> None:
    (tmp_path / "code.md").write_text(f"# Code\n\n{CODE}\n")
    assert memory.add_files(tmp_path / "code.md", expires=NOON).documents == 1
    assert memory.add_files(tmp_path / "code.md", expires=NOON).unchanged == 1
    clock.now = NOON
    assert memory.search("door code").hits == ()
    assert memory.add_files(tmp_path / "code.md").documents == 1
    assert len(memory.search("door code").hits) == 1


def test_export_is_imported_with_expiry(memory: Waylore, clock: Clock, tmp_path: Path) -> None:
    memory.add(CODE, expires=NOON)
    memory.export(tmp_path / "export.jsonl")
    with Waylore.open(tmp_path / "copy.waylore", clock=clock, embedder=HashingEmbedder(64, quiet=True)) as copy:
        copy.import_(tmp_path / "export.jsonl")
        assert list(copy.export_lines()) == list(memory.export_lines())
        clock.now = NOON
        assert copy.search("door code").hits == ()


def test_users_are_listed_by_name(memory: Waylore) -> None:
    memory.add(CODE)
    for user in ("mara", "ann", "ben"):
        memory.remember([{"role": "user", "content": f"{n}: {CODE}"} for n in range(len(user))], user=user)
    memory.add(CODE, user="ann", labels="staff")
    assert [(each.user, each.documents, each.passages) for each in memory.users()] == [
        ("ann", 4, 4),
        ("ben", 3, 3),
        ("mara", 4, 4),
    ]
    assert [each.user for each in memory.users(after="ann", limit=1)] == ["ben"]
    memory.forget(user="ben")
    assert [each.user for each in memory.users()] == ["ann", "mara"]
    for author in (Author("staff", frozenset({"staff"})), Author("ann", user="ann")):
        with pytest.raises(Forbidden):
            memory.as_author(author).users()
