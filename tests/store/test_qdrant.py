"""A collection with an index on a real Qdrant server: it finds the same, shows nothing hidden, and forgets."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.qdrant.server import QdrantServer, start_qdrant
from tools.waiting import wait_until
from typer.testing import CliRunner

from databases import get_server_url, make_name, open_collections, start_shared_qdrant
from store.drawn import WORDS, DrawnPage, draw_pages, filters
from store.indexed import FedStore, create_index, open_new
from waylore import Filter, Waylore
from waylore.errors import ConfigError, NotFound
from waylore.settings.sections import Settings
from waylore.store.monitoring import read_lag
from waylore.store.partial import partial_answers
from waylore.store.postgres.candidates.admin import IndexAdmin
from waylore.store.postgres.candidates.find import MAX_PENDING
from waylore.store.postgres.store import PostgresStore
from waylore.store.qdrant.index import QdrantIndex, make_request
from waylore.store.qdrant.points import Point, make_point_id, read_point_id
from waylore.store.qdrant.queries import CandidateQuery, IndexPlace, Target, VisibleItems
from waylore.store.receipts import record_as
from waylore.store.sqlite.store import SqliteStore
from waylore.surfaces.checks.index import check_index
from waylore.surfaces.cli.app import app
from waylore.surfaces.telemetry.metrics import Metrics
from waylore.testing import OpenStore, StoreConformance
from waylore.testing.scopes import say
from waylore.testing.searching import SearchingTests
from waylore.testing.world import (
    EMBEDDER,
    KING,
    MODEL,
    OTHER_EMBEDDER,
    QUEEN,
    SECRET,
    WORLD,
    page,
    question,
    stage_other_model,
)
from waylore.types.author import OWNER
from waylore.types.identity import identity

questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


class IndexedFixtures:
    @pytest.fixture
    def open_store(self) -> Iterator[OpenStore]:
        known: set[str] = set()

        def open_named(name: str) -> PostgresStore:
            if name not in known:
                known.add(name)
                create_index(name)
            return FedStore(get_server_url(), name)

        with open_collections(open_named) as open_store:
            yield open_store


class TestSearching(IndexedFixtures, SearchingTests):
    """The searches of the Store protocol, for CI."""


@pytest.mark.full
class TestIndexed(IndexedFixtures, StoreConformance):
    """The whole Store protocol."""


def search_all(store: PostgresStore | SqliteStore, query: str, where: Filter) -> list[object]:
    """Return the results of the three searches that the index answers."""
    return [
        store.lexical(query, top_k=9, where=where),
        store.dense(question(query), top_k=9, where=where),
        store.nearest_entities(question(query), top_k=9, where=where),
    ]


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pages=draw_pages(20), query=questions, where=filters)
def test_index_ranks_as_sqlite(
    tmp_path_factory: pytest.TempPathFactory,
    pages: Sequence[DrawnPage],
    query: str,
    where: Filter,
) -> None:
    """With changes that the index has, and with others that are still in the outbox."""
    documents = [page(t, labels=ls, metadata=m, uri=str(i)) for i, (t, ls, m) in enumerate(pages)]
    half = len(documents) // 2
    with (
        closing(SqliteStore(tmp_path_factory.mktemp("like") / "a.waylore")) as other,
        open_new(PostgresStore) as store,
        open_new() as fed,
    ):
        for one in (other, store, fed):
            one.write(documents[:half], author=OWNER, model=MODEL)
            one.write(documents[half:], author=OWNER, model=MODEL)
            one.forget([documents[0].document.id], author=OWNER)
        expected = search_all(other, query, where)
        assert search_all(store, query, where) == expected
        assert search_all(fed, query, where) == expected


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pages=draw_pages(20), query=questions, labels=st.sampled_from([frozenset[str](), frozenset({"blue"})]))
def test_hidden_documents_change_nothing(pages: Sequence[DrawnPage], query: str, labels: frozenset[str]) -> None:
    """Scores too: the index counts no words of hidden passages."""
    where = Filter(labels=labels)
    documents = [page(t, labels=ls, metadata=m, uri=str(i)) for i, (t, ls, m) in enumerate(pages)]
    visible = [d for d in documents if not d.document.labels or d.document.labels & labels]
    with open_new() as whole, open_new() as part:
        whole.write(documents, author=OWNER, model=MODEL)
        part.write(visible, author=OWNER, model=MODEL)
        assert search_all(whole, query, where) == search_all(part, query, where)


def test_speakers_and_times_are_filtered_in_the_index() -> None:
    said = [say(f"The falcon flew {n} times.", user="ann", speaker=who) for n, who in enumerate(("ann", "ben") * 3)]
    with open_new() as store:
        store.write(said, author=OWNER, model=MODEL)
        found = store.lexical("falcon", top_k=9, where=Filter(user="ann", speaker="ben"))
        assert {each.id for each in found} == {p.id for d in said[1::2] for p in d.passages}
        assert store.lexical("falcon", top_k=9, where=Filter(user="ben")) == ()


# -- what the index may not do -------------------------------------------------------------------------


def make_query(tenant: bytes, accesses: Sequence[int] | None, target: Target = Target.PASSAGE) -> CandidateQuery:
    place = IndexPlace(tenant, start_shared_qdrant().url, EMBEDDER.dimension)
    visible = VisibleItems(accesses=accesses)
    if target is Target.WORDS:
        return CandidateQuery(place=place, target=target, visible=visible, limit=9, weights={1: 1.0})
    return CandidateQuery(place=place, target=target, visible=visible, limit=9, vector=question("falcon"))


@pytest.mark.parametrize("target", Target)
def test_every_query_names_tenant_and_permissions(target: Target) -> None:
    asked = make_request(make_query(b"\1" * 16, [3], target))
    assert {"key": "tenant", "match": {"value": "01" * 16}} in asked["filter"]["must"]
    assert {"key": "access", "match": {"any": [3, -1]}} in asked["filter"]["must"]


def test_answers_are_not_compressed() -> None:
    """Qdrant sends the end of a compressed answer 40 ms after the rest."""
    index = QdrantIndex(start_shared_qdrant().url)
    [peer] = index._cluster._peers
    answer = peer.get("/telemetry?details_level=3")
    index.close()
    assert len(answer.content) > 1_000
    assert "content-encoding" not in answer.headers
    assert int(answer.headers["content-length"]) == len(answer.content)


def test_tenants_do_not_find_points_of_each_other() -> None:
    tenants = [os.urandom(16), os.urandom(16)]
    item = identity("falcon")
    codes = (question("falcon") * 127).astype(np.int8).tobytes()
    terms = np.array([1 << 6 | 1], dtype=np.uint32).tobytes()
    with closing(QdrantIndex(start_shared_qdrant().url)) as index:
        place = make_query(tenants[0], None).place
        index.put(place, [Point(id=item, accesses=[1], codes=codes, terms=terms, length=1)])
        for target in (Target.PASSAGE, Target.WORDS):
            queries = [make_query(tenants[0], [1], target), make_query(tenants[0], [2], target)]
            assert index.search([*queries, make_query(tenants[1], None, target)]) == [[item], [], []]
        assert index.count(place) == 1
        index.remove_tenant(tenants[1])
        assert index.find(place, [item]) == [item]
        index.remove_tenant(tenants[0])
        assert index.find(place, [item]) == []


def test_wrong_points_show_nothing_hidden() -> None:
    """Whoever can write to Qdrant can make a hidden passage a candidate of everyone, and no more."""
    with open_new(PostgresStore) as store:
        store.write(WORLD, author=OWNER, model=MODEL)
        wait_until(lambda: store._feeder.feed_once().is_done)
        place = read_place(store)
        passage = SECRET.passages[0]
        codes = np.frombuffer(b"\x7f" * EMBEDDER.dimension, np.int8).tobytes()
        with closing(QdrantIndex(place.url)) as index:
            accesses = list(range(1, 9))
            index.put(place, [Point(id=passage.id, accesses=accesses, codes=codes)])
            index.put(place, [Point(id=identity("never written"), accesses=accesses, codes=codes)])
        near = store.dense(question("Falcon codename"), top_k=99, where=Filter(labels=frozenset()))
        assert {each.id for each in near} == {p.id for d in (KING, QUEEN) for p in d.passages}


def read_place(store: PostgresStore) -> IndexPlace:
    """Return the place of the index of a store."""
    with store._transaction() as (_, of):
        assert of.index
        return of.index


def test_ids_of_points_lead_back_to_items() -> None:
    tenant, item = os.urandom(16), identity("item")
    point = make_point_id(tenant, item)
    assert point != item
    assert read_point_id(tenant, f"{point[:8]}-{point[8:12]}-{point[12:16]}-{point[16:20]}-{point[20:]}") == item


# -- feeding -------------------------------------------------------------------------------------------


def test_existing_collection_is_built_and_then_searched() -> None:
    name = make_name("built")
    with closing(PostgresStore(get_server_url(), name)) as store:
        store.write(WORLD, author=OWNER, model=MODEL)
        expected = search_all(store, "falcon king", Filter())
        create_index(name)
        assert search_all(store, "falcon king", Filter()) == expected
        with closing(IndexAdmin(get_server_url(), name)) as index:
            status = index.read_status()
            assert (status.is_built, status.pending, status.points) == (True, 0, status.items)


def test_another_model_builds_the_index_again() -> None:
    with open_new() as store:
        store.write(WORLD, author=OWNER, model=MODEL)
        before = read_place(store)
        assert store.dense(question("falcon"), top_k=1)
        stage_other_model(store, limit=100, rounds=9)
        assert store.activate_model(OTHER_EMBEDDER.name, author=OWNER)
        after = read_place(store)
        assert store.lexical("falcon", top_k=1)
        with closing(QdrantIndex(before.url)) as index:
            assert before.tenant != after.tenant
            assert index.count(before) == 0 < index.count(after)


def test_killed_feeder_is_continued(tmp_path: Path) -> None:
    """A process is killed while it feeds; the next one sends the rest, and nothing twice or never."""
    name, documents = make_name("killed"), [page(f"falcon {n} {WORDS[n % 12]}") for n in range(1_500)]
    with closing(PostgresStore(get_server_url(), name)) as store:
        store.write(documents, author=OWNER, model=MODEL)
    with closing(IndexAdmin(get_server_url(), name)) as index:
        index.create(start_shared_qdrant().url)
        command = [sys.executable, "-m", "waylore.surfaces.cli", "index", "feed", "--store", get_server_url()]
        with subprocess.Popen([*command, "--collection", name], cwd=tmp_path) as process:
            wait_until(lambda: index.read_status().points)
            process.send_signal(signal.SIGKILL)
        assert list(index.feed())[-1].is_done
        status = index.read_status()
        assert status.points == status.items >= 1_500


def test_items_in_the_outbox_are_found_and_too_many_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waylore.store.postgres.candidates.find.MAX_PENDING", 2)
    monkeypatch.setattr("waylore.store.postgres.candidates.feeder.Feeder.start", lambda _: None)
    with open_new(PostgresStore) as store, partial_answers() as left_out:
        store.write([page("falcon one", uri="1")], author=OWNER, model=MODEL)
        store._feeder.feed_once()
        store.write([page("falcon two", uri="2")], author=OWNER, model=MODEL)
        assert len(store.lexical("falcon", top_k=9)) == 2
        assert not left_out
        store.write([page(f"falcon {n}", uri=f"{n}") for n in range(3, 9)], author=OWNER, model=MODEL)
        assert len(store.lexical("falcon", top_k=9)) >= 3
        assert "not in the search index yet" in left_out["~index"]
    assert MAX_PENDING == 2_000


def test_index_is_created_once_and_dropped() -> None:
    name, url = make_name("dropped"), start_shared_qdrant().url
    with closing(PostgresStore(get_server_url(), name)) as store, closing(IndexAdmin(get_server_url(), name)) as index:
        store.write(WORLD, author=OWNER, model=MODEL)
        with pytest.raises(NotFound, match="waylore index create"):
            index.read_status()
        with pytest.raises(ConfigError, match="http://localhost:6333"):
            index.create("localhost:6333")
        index.create(url)
        with pytest.raises(ConfigError, match="already"):
            index.create(url)
        assert list(index.feed())[-1].is_done
        place = read_place(store)
        index.drop()
        with closing(QdrantIndex(url)) as qdrant:
            assert qdrant.count(place) == 0
        with pytest.raises(NotFound):
            index.drop()
        assert store.lexical("falcon", top_k=1)


# -- an index that fails -------------------------------------------------------------------------------


@pytest.fixture
def own_qdrant() -> Iterator[QdrantServer]:
    """Start a server that a test may kill."""
    with start_qdrant() as server:
        yield server


def test_search_without_the_index_says_so_and_forgetting_waits(
    own_qdrant: QdrantServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The whole life of an outage: PostgreSQL answers, receipts say what is left, and everything follows later."""
    url, name, request = get_server_url(), make_name("outage"), identity("request")
    create_index(name, qdrant=own_qdrant.url)
    with (
        caplog.at_level(logging.ERROR),
        closing(PostgresStore(url, name)) as store,
        closing(IndexAdmin(url, name)) as index,
        Waylore.open(url, collection=name, embedder=EMBEDDER) as memory,
    ):
        store.write(WORLD, author=OWNER, model=MODEL)
        list(index.feed())
        expected = memory.search("Falcon codename", method="hybrid")
        assert expected.missing == ()
        own_qdrant.kill()
        store.write([page("A falcon sits on the wall.")], author=OWNER, model=MODEL)
        found = memory.search("Falcon codename", method="hybrid")
        assert found.hits[0].passage.id == expected.hits[0].passage.id
        assert any(line.startswith("index: ") and "PostgreSQL searched" in line for line in found.missing)
        with record_as(request):
            receipt = store.forget([SECRET.document.id], author=OWNER)
        assert receipt.unconfirmed == len(receipt.passages) + len(receipt.entities) > 0
        assert store.lexical("codename", top_k=9) == ()
        assert index.read_status().points is None
        own_qdrant.start()
        wait_until(lambda: index.read_status().pending == 0)  # the store tries again by itself
        again = store.get_receipt(request, author=OWNER)
        assert again is not None
        assert again.unconfirmed == 0
        assert store.find_remains(receipt) == ()


def find_in_files(server: QdrantServer, texts: Sequence[bytes]) -> set[bytes]:
    """Return those of the texts that stand in a file of a server, whose files may change meanwhile."""
    found: set[bytes] = set()
    for file in server.storage.rglob("*"):
        with suppress(OSError):
            content = file.read_bytes() if file.is_file() else b""
            found.update(text for text in texts if text in content)
    return found


def test_forgotten_items_leave_the_index_before_the_receipt(own_qdrant: QdrantServer) -> None:
    """Neither text nor ids of items are ever in the files of the index."""
    name = make_name("files")
    create_index(name, qdrant=own_qdrant.url)
    with closing(PostgresStore(get_server_url(), name)) as store:
        store.write([*WORLD, page("Xylophonist Quarzheim signs.")], author=OWNER, model=MODEL)
        wait_until(lambda: store._feeder.feed_once().is_done)
        place, passage = read_place(store), SECRET.passages[0].id
        with closing(QdrantIndex(place.url)) as index:
            assert index.find(place, [passage]) == [passage]
            receipt = store.forget([SECRET.document.id], author=OWNER)
            assert receipt.unconfirmed == 0
            assert index.find(place, [*receipt.passages, *receipt.entities]) == []
    own_qdrant.stop()
    words = ("Falcon", "falcon", "Xylophonist", "xylophonist", "spies", "Lothair", passage)
    assert find_in_files(own_qdrant, [bytes.fromhex(passage), *(word.encode() for word in words)]) == set()


# -- operating -----------------------------------------------------------------------------------------


def run_index(*arguments: str) -> Any:
    """Run `waylore index` in this process, and return its JSON."""
    result = CliRunner().invoke(app, ["index", *arguments, "--store", get_server_url(), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_commands_doctor_and_metrics_show_the_lag(
    own_qdrant: QdrantServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    name = make_name("operated")
    with closing(PostgresStore(get_server_url(), name)) as store:
        store.write(WORLD, author=OWNER, model=MODEL)
        built = run_index("create", own_qdrant.url, "--collection", name)
        assert built["is_built"]
        assert built["points"] == built["items"] > 0
        assert describe_index(name) == ("good", f"{own_qdrant.url}, up to date")
        own_qdrant.kill()
        store.write([page("A falcon sits on the wall.")], author=OWNER, model=MODEL)
        wait_until(lambda: read_lag().pending)
        metrics = Metrics().expose()[0].decode()
        assert re.search(r"^waylore_index_pending [1-9]", metrics, re.MULTILINE)
        assert "waylore_index_lag_seconds 0.0\n" not in metrics
        state, message = describe_index(name)
        assert (state, "changes behind" in message) == ("wrong", True)
        own_qdrant.start()
        assert run_index("feed", "--collection", name)["pending"] == 0
        assert run_index("status", "--collection", name)["problem"] == ""
        assert run_index("drop", "--collection", name) == {"dropped": True}
    assert read_lag().pending == 0


def describe_index(name: str) -> tuple[str, str]:
    """Return what `waylore doctor` says about the index."""
    [found] = check_index(Settings(store=get_server_url(), collection=name))
    return found.state, found.message
