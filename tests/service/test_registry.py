"""Both registries follow the protocol: keys are stored unchanged, collections and requests exist once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex
from typing import Any

import apsw
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from databases import create_database
from waylore import Waylore
from waylore.cells import admin
from waylore.cells.open import create_catalogue
from waylore.errors import ArgumentError, ConfigError, SchemaOutdated, StoreUnavailable
from waylore.service.callers import Caller
from waylore.service.keys import make_key, mark_revoked, rotate_secret
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import (
    SCOPES,
    CachedResponse,
    IdempotencyKey,
    Key,
    RegisteredCollection,
    Registry,
)
from waylore.store.sqlite.file import open_file
from waylore.types.audit import find_break
from waylore.types.knowledge import SOURCES

Opening = Callable[[], Registry]
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KEY = Key("0" * 16, "mine", "hash", frozenset({"notes"}), "read", NOW)
times = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty store."""
    return create_database() if request.param == "postgres" else str(tmp_path / "memory.waylore")


@pytest.fixture
def opening(url: str) -> Iterator[Opening]:
    """Return a function that opens the registry as another process does."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(open_registry(url)))


@pytest.fixture
def registry(opening: Opening) -> Registry:
    return opening()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.builds(
        Key,
        id=st.just(""),
        name=words,
        hash=words,
        collections=st.frozensets(words, min_size=1),
        scope=st.sampled_from(SCOPES),
        created=times,
        labels=st.none() | st.frozensets(words),
        expires=st.none() | times,
        revoked=st.none() | times,
        used=st.none(),
        former=st.text("0123456789abcdef"),
        former_until=st.none() | times,
        max_source=st.sampled_from(SOURCES),
        user=st.just("") | words,
    )
)
def test_key_is_stored_unchanged(registry: Registry, key: Key) -> None:
    key = replace(key, id=token_hex(8))  # the time of creation does not change
    registry.set_key(replace(key, name="before", revoked=None, labels=frozenset({"x"})))
    registry.set_key(key)
    assert registry.get_key(key.id) == key
    listed = registry.list_keys()
    assert key in listed


def test_keys_of_an_earlier_release_get_the_source_of_their_labels(url: str) -> None:
    """A key with labels writes as a conversation, any other as before."""
    with closing(open_registry(url)) as registry:
        for id_, labels in (("limited", frozenset({"red"})), ("public", frozenset[str]()), ("all", None)):
            registry.set_key(replace(KEY, id=id_, labels=labels))
    table = "waylore_service.keys" if url.startswith("postgres") else "registry_keys"
    migrations = table.replace("keys", "migrations")
    _run(url, f"ALTER TABLE {table} DROP COLUMN max_source", f"DELETE FROM {migrations} WHERE name = 'max_source'")
    with closing(open_registry(url)) as registry:
        found = {key.id: key.max_source for key in registry.list_keys()}
    assert found == {"limited": "conversation", "public": "conversation", "all": "user_edit"}


def test_keys_of_an_earlier_release_have_no_user(url: str) -> None:
    with closing(open_registry(url)) as registry:
        registry.set_key(replace(KEY, user="mara"))
    table = "waylore_service.keys" if url.startswith("postgres") else "registry_keys"
    migrations = table.replace("keys", "migrations")
    _run(url, f'ALTER TABLE {table} DROP COLUMN "user"', f"DELETE FROM {migrations} WHERE name = 'user'")
    with closing(open_registry(url)) as registry:
        assert registry.get_key(KEY.id) == KEY


@pytest.mark.parametrize("user", ["", "a\nb", "a\x00", "a\x85", "x" * 1_001])
def test_key_is_not_created_for_a_wrong_user(user: str) -> None:
    """Check above all the empty user, as an unset variable of a shell gives it: that key would read everything."""
    with pytest.raises(ArgumentError, match="user must be text of one line"):
        make_key("x", user=user)


def test_rotation_and_revocation_keep_the_user() -> None:
    key, _ = make_key("x", scope="write", user="mara")
    assert (key.user, key.max_source) == ("mara", "conversation")
    rotated, _ = rotate_secret(key)
    assert {rotated.user, mark_revoked(rotated).user} == {"mara"}


@given(st.sampled_from(["", "mara", "sol"]), st.sampled_from(["", "mara", "sol"]))
def test_caller_manages_keys_of_its_user_only(own: str, wanted: str) -> None:
    caller = Caller("key:1", "admin", max_source="user_edit", user=own)
    assert caller.author.user == own
    assert caller.can_grant(replace(KEY, user=wanted)) == (own in ("", wanted))


def _run(url: str, *statements: str) -> None:
    if url.startswith("postgres"):
        with psycopg.connect(url, autocommit=True) as server:
            for statement in statements:
                server.execute(statement)
        return
    with closing(open_file(url)) as file:
        for statement in statements:
            file.execute(statement)


def test_last_use_survives_a_change_of_the_key(registry: Registry) -> None:
    registry.set_key(KEY)
    registry.record_key_use(KEY.id, NOW)
    registry.set_key(replace(KEY, name="yours"))
    assert registry.get_key(KEY.id) == replace(KEY, name="yours", used=NOW)
    assert registry.get_key("unknown") is None


def test_each_change_of_a_key_has_an_entry(registry: Registry, opening: Opening) -> None:
    registry.set_key(KEY)
    registry.record_key_use(KEY.id, NOW)
    limited = replace(KEY, labels=frozenset({"red", "blue"}))
    registry.set_key(limited, author="key:1")
    registry.set_key(limited, author="key:2")  # changes nothing
    rotated, _ = rotate_secret(limited)
    registry.set_key(rotated, author="key:1")
    opening().set_key(mark_revoked(rotated), author="key:3")
    entries = registry.audit()
    assert [(e.author, e.verb, e.key, e.labels_before, e.labels_after) for e in entries] == [
        ("local", "create_key", KEY.id, (), ("*",)),
        ("key:1", "change_key", KEY.id, ("*",), ("blue", "red")),
        ("key:1", "rotate_key", KEY.id, ("blue", "red"), ("blue", "red")),
        ("key:3", "revoke_key", KEY.id, ("blue", "red"), ("blue", "red")),
    ]
    assert not any(secret in str(entries) for secret in (repr(KEY.name), repr(KEY.hash), rotated.hash))
    assert find_break(entries) is None
    assert find_break([entries[0], replace(entries[1], key="other"), *entries[2:]]) is not None
    assert registry.audit(after=1, limit=2) == entries[1:3]
    assert registry.audit(after=-2) == entries[2:]


def test_changes_at_once_have_entries_one_after_another(opening: Opening) -> None:
    registries = [opening() for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda n: registries[n % 6].set_key(replace(KEY, id=f"{n}")), range(30)))
    entries = registries[0].audit()
    assert [entry.number for entry in entries] == list(range(1, 31))
    assert {entry.key for entry in entries} == set(map(str, range(30)))
    assert find_break(entries) is None


@pytest.mark.parametrize("statement", ["UPDATE {} SET author = 'other'", "DELETE FROM {}"])
def test_entries_of_keys_are_not_changed(url: str, statement: str) -> None:
    with closing(open_registry(url)) as registry:
        registry.set_key(KEY)
    table = "waylore_service.audit" if url.startswith("postgres") else "registry_audit"
    with pytest.raises((psycopg.Error, apsw.Error), match="audit log"):
        _run(url, statement.format(table))


def test_keys_of_an_earlier_release_have_no_entries(url: str) -> None:
    with closing(open_registry(url)) as registry:
        registry.set_key(KEY)
    table = "waylore_service.audit" if url.startswith("postgres") else "registry_audit"
    dropped = [f"DROP TABLE {table}"]
    dropped += ["DROP FUNCTION waylore_service.refuse_audit_change"] if url.startswith("postgres") else []
    _run(url, *dropped, f"DELETE FROM {table.replace('audit', 'migrations')} WHERE name = 'audit'")
    with closing(open_registry(url)) as registry:
        assert registry.audit() == ()
        registry.set_key(mark_revoked(KEY))
        assert [entry.verb for entry in registry.audit()] == ["revoke_key"]


def test_key_repr_hides_hashes() -> None:
    assert "hash" not in repr(replace(KEY, former="hash before"))


def test_collections_are_created_once_and_listed_by_name(registry: Registry, opening: Opening) -> None:
    assert registry.set_collection(RegisteredCollection("notes", "", NOW))
    assert registry.set_collection(RegisteredCollection("Über", "", NOW))
    assert not registry.set_collection(RegisteredCollection("notes", "mine", datetime.now(UTC)))
    assert opening().list_collections() == (
        RegisteredCollection("notes", "mine", NOW),
        RegisteredCollection("Über", "", NOW),
    )
    assert registry.remove_collection("notes")
    assert not registry.remove_collection("notes")
    assert registry.get_collection("notes") is None


def test_lists_continue_after_the_last_item(registry: Registry) -> None:
    names = ["a", "B", "ü", "z", "Z", "10", "9", "a.b", "a-b"]
    for number, name in enumerate(names):
        registry.set_collection(RegisteredCollection(name, "", NOW))
        registry.set_key(replace(KEY, id=f"{9 - number}", created=NOW + timedelta(seconds=number // 3)))
    shown = [
        one.name for one in _pages(lambda last: registry.list_collections(after=last.name if last else "", limit=2))
    ]
    assert shown == sorted(names)
    some = registry.list_collections(among=["z", "a", "unknown", "10"], after="10")
    assert [one.name for one in some] == ["a", "z"]
    assert registry.list_collections(among=[]) == ()
    keys = list(_pages(lambda last: registry.list_keys(after=last, limit=2)))
    assert keys == sorted(keys, key=lambda one: (one.created, one.id))
    assert len(keys) == len(names)


def _pages(page: Callable[[Any], tuple[Any, ...]]) -> Iterator[Any]:
    last = None
    while found := page(last):
        yield from found
        last = found[-1]


def test_only_one_caller_claims_a_request(registry: Registry, opening: Opening) -> None:
    claimed, others = IdempotencyKey("key:1", "word", "digest"), [opening() for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda r: r.claim(claimed, now=1.0, until=9.0), others))
    assert sorted(found, key=lambda one: one is None) == [*[CachedResponse("digest")] * 7, None]
    answer = CachedResponse("digest", 201, b"\x00\xff", "application/json")
    registry.store_response(claimed, answer, until=20.0)
    assert registry.claim(claimed, now=19.9, until=30.0) == answer
    assert registry.claim(replace(claimed, caller="key:2"), now=2.0, until=9.0) is None
    assert registry.claim(replace(claimed, digest="another"), now=20.0, until=30.0) is None


def test_released_request_can_be_claimed_again(registry: Registry) -> None:
    claimed = IdempotencyKey("key:1", "word", "digest")
    assert registry.claim(claimed, now=1.0, until=9.0) is None
    registry.release(claimed)
    assert registry.claim(claimed, now=1.0, until=9.0) is None
    registry.store_response(claimed, CachedResponse("digest", 200), until=9.0)
    registry.release(claimed)
    assert registry.claim(claimed, now=1.0, until=9.0) == CachedResponse("digest", 200)
    registry.delete_expired_responses(9.0)
    assert registry.claim(claimed, now=1.0, until=9.0) is None


def test_concurrent_creation_gives_one_secret(url: str) -> None:
    def secret(_: int) -> bytes:
        with closing(open_registry(url)) as registry:
            return registry.get_secret()

    with ThreadPoolExecutor(6) as threads:
        secrets = set(threads.map(secret, range(6)))
    assert [len(one) for one in secrets] == [32]


def test_registry_shares_database_with_store(url: str) -> None:
    with closing(open_registry(url)) as registry, Waylore.open(url, collection="notes") as notes:
        registry.set_key(KEY)
        document = notes.add("The login needs the session service.")
        assert notes.search("login").hits
        assert notes.verify_forgotten(notes.forget(document)) == ()
        assert registry.list_keys() == (KEY,)


def test_registry_of_cells_is_in_the_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.waylore"
    with closing(create_catalogue(str(path))) as catalogue:
        admin.add_cell(catalogue, "east", str(tmp_path / "east.waylore"))
    with closing(open_registry(f"cells+sqlite:///{path}")) as registry:
        registry.set_key(KEY)
        with Waylore.open(f"cells+sqlite:///{path}", collection="notes") as notes:
            notes.add("The login needs the session service.")
    with closing(open_registry(str(path))) as registry:
        assert registry.list_keys() == (KEY,)


def test_newer_schema_is_refused(url: str) -> None:
    open_registry(url).close()
    if url.startswith("postgresql"):
        with psycopg.connect(url) as server:
            server.execute("INSERT INTO waylore_service.migrations (number, name) VALUES (99, 'new')")
    else:
        file = open_file(url)
        file.execute("INSERT INTO registry_migrations VALUES (99, 'from the future', 0, '')")
        file.close()
    with pytest.raises(SchemaOutdated, match="upgrade Waylore"):
        open_registry(url)


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("mysql://x", ConfigError),
        ("postgresql://nobody@127.0.0.1:1/x", StoreUnavailable),
        ("/no/x", StoreUnavailable),
    ],
)
def test_open_raises_for_bad_urls(url: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        open_registry(url)
