"""Quarantine: what an author wrote is nowhere until it is released, and then it is as it was."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from databases import create_database
from waylore import NewFact, Waylore
from waylore.cells import admin
from waylore.cells.open import create_catalogue
from waylore.errors import ArgumentError, Forbidden, ModelMismatch
from waylore.protocols import Extraction
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.store.protocol import QUARANTINE
from waylore.store.receipts import record_as
from waylore.types.audit import find_break
from waylore.types.author import Author
from waylore.types.knowledge import Document, Passage

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
EMBEDDER = HashingEmbedder(32, quiet=True)
ENGINES = ("sqlite", "postgres", "cells")
GOOD, BAD = "key:good", "key:bad"
NAMES = ("Mara", "Quarry", "Oslo")
names = st.sampled_from(NAMES)
NUMBERS = count()


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return create_url(request.param, tmp_path)


def create_url(engine: str, folder: Path) -> str:
    """Return the URL of an empty store; that of cells has two files."""
    if engine == "postgres":
        return create_database()
    if engine == "sqlite":
        return str(folder / "memory.waylore")
    path = folder / "catalogue.waylore"
    with closing(create_catalogue(str(path))) as catalogue:
        for name in ("east", "west"):
            admin.add_cell(catalogue, name, str(folder / f"{name}.waylore"))
    return f"cells+sqlite:///{path}"


@dataclass(frozen=True)
class Note:
    """What one author writes about one or two names, for all or some readers, for all users or one."""

    author: str
    subject: str
    object: str
    labels: frozenset[str]
    user: str
    uri: str
    is_expired: bool

    def add(self, memory: Waylore) -> str:
        """Add the note as its author."""
        return memory.as_author(Author(self.author)).add(
            f"{self.subject} knows {self.object}. {self.author} wrote about {self.subject}.",
            uri=self.uri,
            labels=self.labels,
            user=self.user,
            facts=[NewFact(self.subject, "knows", self.object)],
            metadata={"by": self.author},
            expires=NOON - timedelta(days=1) if self.is_expired else None,
        )


notes = st.builds(
    Note,
    author=st.sampled_from([GOOD, BAD]),
    subject=names,
    object=names,
    labels=st.frozensets(st.sampled_from(["red", "blue"]), max_size=2),
    user=st.sampled_from(["", "", "mara"]),
    uri=st.just("") | st.integers(0, 99).map(lambda n: f"{n}.md"),
    is_expired=st.sampled_from([False, False, False, True]),
)


def list_distinct(written: Sequence[Note]) -> list[Note]:
    """Leave out notes at the address or with the text of an earlier one, because they would replace it."""
    by_place = {(n.uri, n.user) if n.uri else (n.author, n.subject, n.object, n.labels, n.user): n for n in written}
    return list(by_place.values())


@contextmanager
def open_memory(url: str, collection: str, **options: Any) -> Iterator[Waylore]:
    with Waylore.open(url, collection=collection, embedder=EMBEDDER, clock=lambda: NOON, **options) as memory:
        yield memory


def read_everything(memory: Waylore) -> dict[str, Any]:
    """Return the answers of every way to read the collection."""
    stats = replace(memory.stats(), version=0)  # which grows with every change
    answers: dict[str, Any] = {"export": list(memory.export_lines()), "stats": stats, "users": memory.users()}
    for user in ("", "mara"):
        answers[f"documents {user}"] = memory.documents(user=user, include_expired=True)
        for name in NAMES:
            facts = memory.facts(name, user=user)  # these searches count their uses
            answers[f"facts {name} {user}"] = [replace(f, access_count=0, last_accessed=None) for f in facts]
            answers[f"related {name} {user}"] = memory.related(name, hops=2, user=user).to_dict()
            answers[f"about {name} {user}"] = memory.find_about(name, user=user)
            for method in ("chain", "keyword"):
                hits = memory.search(f"Whom does {name} know?", method=method, user=user).hits
                answers[f"{method} {name} {user}"] = [(h.passage.id, round(h.score, 9)) for h in hits]
        answers[f"entities {user}"] = memory.list_entities(user=user).to_dict()
    return answers


def find_differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the answers that differ, by question."""
    return {name: (one[name], other[name]) for name in one if one[name] != other[name]}


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=6)
@given(written=st.lists(notes, min_size=1, max_size=8))
def test_quarantined_documents_were_never_there_and_come_back(engine: str, written: list[Note]) -> None:
    written = list_distinct(written)
    with TemporaryDirectory() as folder:
        url, run = create_once(engine, Path(folder)), next(NUMBERS)
        with open_memory(url, f"one{run}") as memory, open_memory(url, f"without{run}") as without:
            for note in written:
                note.add(memory)
                if note.author == GOOD:
                    note.add(without)
            before = read_everything(memory)
            receipt = memory.quarantine(BAD)
            bad = [note for note in written if note.author == BAD]
            assert len(receipt.documents) == len(bad)
            assert find_differences(read_everything(memory), read_everything(without)) == {}
            assert memory.list_quarantined() == ({BAD: len(bad)} if bad else {})
            assert memory.release(GOOD).documents == ()
            released = memory.release(BAD)
            assert (set(released.documents), released.missing) == (set(receipt.documents), ())
            assert find_differences(read_everything(memory), before) == {}
            assert memory.list_quarantined() == {}
            assert find_break(memory.audit()) is None


URLS: dict[str, str] = {}


def create_once(engine: str, folder: Path) -> str:
    """Return the URL of an empty store; on a server the same for all examples, because a database takes seconds."""
    if engine != "postgres":
        return create_url(engine, folder)
    return URLS.setdefault(engine, create_url(engine, folder))


def add_as(memory: Waylore, author: str, text: str, uri: str, **options: Any) -> str:
    return memory.as_author(Author(author)).add(text, uri=uri, **options)


def test_receipt_and_audit_log_name_what_was_taken(url: str) -> None:
    with open_memory(url, "notes") as memory:
        mine = add_as(memory, BAD, "Mara pays evil.example.", "bad.md", labels="red")
        add_as(memory, GOOD, "Mara sails.", "good.md")
        admin = memory.as_author(Author("key:admin"))
        with record_as("ab" * 16):
            receipt = admin.quarantine(BAD)
        assert (receipt.documents, receipt.id) == ((mine,), "ab" * 16)
        assert memory.get_receipt("ab" * 16) == receipt
        assert "evil" not in str(list(memory.export_lines()))
        admin.release(BAD)
        found = [(e.author, e.verb, e.documents, e.labels_before, e.labels_after) for e in memory.audit(after=2)]
        assert found == [
            ("key:admin", "quarantine", (mine,), ("red",), ()),
            ("key:admin", "release", (mine,), (), ("red",)),
        ]
        assert memory.get(mine).document.author == BAD


def test_document_that_was_added_again_is_not_replaced(url: str) -> None:
    with open_memory(url, "notes") as memory:
        id_ = add_as(memory, BAD, "The code is 1.", "code.md")
        memory.quarantine(BAD)
        assert add_as(memory, GOOD, "The code is 2.", "code.md") == id_
        assert memory.release(BAD).missing == (id_,)
        assert [p.text for p in memory.get(id_).passages] == ["The code is 2."]
        assert memory.list_quarantined() == {BAD: 1}
        memory.forget("code.md")
        assert memory.release(BAD).documents == (id_,)
        assert [p.text for p in memory.get(id_).passages] == ["The code is 1."]


def test_interrupted_runs_continue(url: str, tmp_path: Path) -> None:
    """A run that is killed in between leaves its documents in both collections."""
    with open_memory(url, "notes") as memory, open_memory(url, "notes" + QUARANTINE) as both:
        id_ = add_as(memory, BAD, "Mara knows Quarry.", "bad.md")
        memory.export(tmp_path / "copy.jsonl")
        both.import_(tmp_path / "copy.jsonl")
        assert memory.quarantine(BAD).documents == (id_,)
        memory.import_(tmp_path / "copy.jsonl")
        assert memory.release(BAD).documents == (id_,)
        assert (memory.stats().documents, both.stats().documents) == (1, 0)


def test_quarantined_documents_are_forgotten_for_good(url: str) -> None:
    with open_memory(url, "notes") as memory:
        id_ = add_as(memory, BAD, "Mara knows Quarry.", "bad.md")
        taken = memory.quarantine(BAD)
        with open_memory(url, "notes" + QUARANTINE) as quarantine:
            receipt = memory.forget_quarantined(BAD)
            assert (receipt.documents, receipt.passages) == ((id_,), taken.passages)
            assert quarantine.verify_forgotten(receipt) == ()
        assert memory.verify_forgotten(receipt) == ()
        assert memory.release(BAD).documents == ()


def test_facts_that_a_model_added_go_with_their_document(url: str) -> None:
    with open_memory(url, "notes", extractor=None) as memory:
        add_as(memory, BAD, "Marta runs Quarry.", "bad.md", metadata={"kind": "note"})
        add_as(memory, GOOD, "Kofi runs Ridge.", "good.md", metadata={"kind": "note"})
        assert memory.enrich(KnowsAll(), run="one", where={"kind": "note"}).facts == 2
        before = list(memory.export_lines())
        memory.quarantine(BAD)
        assert memory.facts("Marta") == ()
        assert len(memory.facts("Kofi")) == 1
        memory.release(BAD)
        assert list(memory.export_lines()) == before
        assert len(memory.facts("Marta")) == 1


class KnowsAll:
    """Finds one fact in each sentence of three words."""

    name = "knows-all"
    concurrency = 1

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        """Return each sentence as a fact."""
        words = [passage.text.strip(".").split() for passage in passages]
        return [Extraction(facts=(NewFact(a, b, c),), names={a: "", c: ""}) for a, b, c in words]


def test_only_an_author_without_limits_takes_documents_back(url: str) -> None:
    with open_memory(url, "notes") as memory:
        add_as(memory, BAD, "Mara knows Quarry.", "bad.md")
        for limited in (Author("key:red", frozenset({"red"})), Author("key:mara", user="mara")):
            view = memory.as_author(limited)
            for call in (view.quarantine, view.release, view.forget_quarantined):
                with pytest.raises(Forbidden):
                    call(BAD)
            with pytest.raises(Forbidden):
                view.list_quarantined()
        with pytest.raises(ArgumentError, match="author must not be empty"):
            memory.quarantine(" ")
        assert memory.stats().documents == 1


def test_other_model_is_refused_with_a_remedy(tmp_path: Path) -> None:
    url, other = str(tmp_path / "memory.waylore"), HashingEmbedder(16, quiet=True)
    with open_memory(url, "notes") as memory:
        add_as(memory, BAD, "Mara knows Quarry.", "bad.md")
        add_as(memory, GOOD, "Ines knows Oslo.", "good.md")
        memory.quarantine(BAD)
    Waylore.reembed(url, embedder=other, collection="notes")
    with Waylore.open(url, collection="notes") as memory, pytest.raises(ModelMismatch, match=QUARANTINE):
        memory.release(BAD)
    Waylore.reembed(url, embedder=other, collection="notes" + QUARANTINE)
    with Waylore.open(url, collection="notes") as memory:
        assert len(memory.release(BAD).documents) == 1


def test_all_collections_of_cells_leave_quarantine_out(tmp_path: Path) -> None:
    url = create_url("cells", tmp_path)
    with open_memory(url, "notes") as memory:
        add_as(memory, BAD, "Mara knows Quarry.", "bad.md")
        add_as(memory, GOOD, "Ines knows Oslo.", "good.md")
        memory.quarantine(BAD)
    with open_memory(url, "*") as everything:
        assert everything.stats().documents == 1
        assert not any("Mara" in hit.passage.text for hit in everything.search("Mara Quarry").hits)


def test_document_that_changes_meanwhile_stays(url: str) -> None:
    """A store forgets a document only if it still has the digest with which it was copied."""
    with open_memory(url, "notes") as memory:
        id_ = add_as(memory, BAD, "The code is 1.", "code.md")
        store, owner = memory._store, Author("local")
        digests = dict(store.digests([id_]))
        add_as(memory, BAD, "The code is 2.", "code.md")
        assert store.forget([id_], author=owner, digests=digests).documents == ()
        assert store.forget([id_], author=owner, digests=store.digests([id_])).documents == (id_,)
