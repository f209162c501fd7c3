"""Write notes with known content, record which writes were acknowledged, and check a store against the record.

A note has a number, and each of its editions has its own text; each text has a word that no other text has. The
ledger records for every note the last edition that was acknowledged and the last one that was begun. An answer
is correct if every edition that it shows lies between the two. Only `check_store` reads a store; it compares
the store with the ledger at the end.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from waylore.config import CacheConfig
from waylore.engine.waylore import Waylore
from waylore.indexing import pipeline
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.types.author import OWNER
from waylore.types.identity import document_id
from waylore.types.knowledge import Document, IndexedDocument, NewFact

NOW = datetime(2024, 5, 17, tzinfo=UTC)
EMBEDDER = HashingEmbedder(64, quiet=True)
WORDS = (
    "anchor basket candle dock engine ferry garden harbour island jetty kettle lantern market needle orchard".split()
)
COMPARED_SEARCHES = 20  # on the store and on a quiet one, at the end
# A question of common words is answered from the 2,000 newest passages. With more notes, the order of writing counts.
MAX_WRITTEN = 1_500


@dataclass(frozen=True, slots=True)
class Note:
    """One edition of a document."""

    number: int
    edition: int = 1

    @property
    def uri(self) -> str:
        return f"notes/{self.number}"

    @property
    def id(self) -> str:
        return document_id(uri=self.uri)

    @property
    def marker(self) -> str:
        return f"marker{self.number}x{self.edition}"

    @property
    def text(self) -> str:
        rest = Random(f"{self.number} {self.edition}").choices(WORDS, k=30)
        return f"{self.marker}: Ship {self.number} lies at Pier {self.number % 7}. {' '.join(rest)}."

    @property
    def facts(self) -> list[tuple[str, str, str]]:
        ship, pier = f"Ship {self.number}", f"Pier {self.number % 7}"
        return [
            (ship, "lies at", pier),
            (ship, "carries", f"Cargo {self.edition}"),
            (pier, "belongs to", "Harbour"),
        ]


def open_collection(store: Store) -> Waylore:
    """Open a collection with a fixed clock and without a cache, so that every answer comes from the store."""
    return Waylore(store, EMBEDDER, clock=lambda: NOW, cache=CacheConfig(seconds=0.0))


@lru_cache(maxsize=100_000)
def index_note(note: Note) -> IndexedDocument:
    """Return the indexed document that a store must have for a note."""
    document = Document(note.id, uri=note.uri, recorded_at=NOW)
    return pipeline.index_text(document, note.text, [NewFact(*fact) for fact in note.facts])


def parse_note(text: str) -> Note | None:
    """Return the note with exactly this text, or None."""
    number, _, edition = text.partition(":")[0].removeprefix("marker").partition("x")
    if not (number.isdigit() and edition.isdigit()):
        return None
    note = Note(int(number), int(edition))
    return note if note.text == text else None


@dataclass(eq=False, slots=True)
class Ledger:
    """Records which editions of notes were begun and which were acknowledged; safe for threads."""

    first: int = 0  # number of the first note
    acknowledged: dict[int, int] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)
    _writing: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, chance: Random, *, is_new: bool = False) -> Note:
        """Choose what to write next: mostly a new note, else a new edition of one that is not being written."""
        with self._lock:
            known = sorted(self.acknowledged.keys() - self._writing)
            is_new = is_new or not known or (len(self.begun) < MAX_WRITTEN and chance.random() < 0.75)
            number = self.first + len(self.begun) if is_new else chance.choice(known)
            note = Note(number, self.begun.get(number, 0) + 1)
            self.begun[number] = note.edition
            self._writing.add(number)
            return note

    def end(self, note: Note, *, is_acknowledged: bool) -> None:
        """Record the end of a write; if it was not acknowledged, it may be stored or not."""
        with self._lock:
            self._writing.discard(note.number)
            if is_acknowledged:
                self.acknowledged[note.number] = note.edition

    def choose_acknowledged(self, chance: Random) -> Note | None:
        """Choose an acknowledged note of which no newer edition was begun."""
        with self._lock:
            sure = [n for n, edition in self.acknowledged.items() if self.begun[n] == edition]
            number = chance.choice(sure) if sure else None
            return None if number is None else Note(number, self.acknowledged[number])

    def copy_acknowledged(self) -> dict[int, int]:
        """Return the editions that are acknowledged now."""
        with self._lock:
            return dict(self.acknowledged)

    def is_newest(self, note: Note) -> bool:
        """Return whether no newer edition was begun."""
        return self.begun.get(note.number) == note.edition

    def is_allowed(self, note: Note, acknowledged: Mapping[int, int]) -> bool:
        """Return whether an answer may have this edition; `acknowledged` is as of the time of the request."""
        return acknowledged.get(note.number, 0) <= note.edition <= self.begun.get(note.number, 0)


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """The problems of a store at the end: lost notes, and other differences."""

    lost: tuple[str, ...]
    wrong: tuple[str, ...]


def check_store(waylore: Waylore, store: Store, ledger: Ledger) -> StoreCheck:
    """Compare a store with the acknowledged notes, and with a quiet SQLite store that has the same notes."""
    stored = {c.document.id: c for c in store.export()}
    held = {number: _find_edition(stored.get(Note(number).id), ledger, number) for number in ledger.begun}
    lost = [
        f"note {number}: edition {ledger.acknowledged[number]} was acknowledged and is not stored"
        for number, note in held.items()
        if note is None and number in ledger.acknowledged
    ]
    known = [note for note in held.values() if note]
    return StoreCheck(tuple(lost), tuple(_find_differences(waylore, store, list(stored.values()), known)))


def _find_edition(found: IndexedDocument | None, ledger: Ledger, number: int) -> Note | None:
    """Return the stored edition, if it is the last acknowledged one or one that was begun later."""
    editions = range(max(ledger.acknowledged.get(number, 0), 1), ledger.begun[number] + 1)
    notes = [Note(number, edition) for edition in editions]
    return next((note for note in notes if found and found.digest == index_note(note).digest), None)


def _find_differences(waylore: Waylore, store: Store, stored: list[IndexedDocument], held: list[Note]) -> Iterator[str]:
    with TemporaryDirectory() as folder:
        quiet_store = SqliteStore(Path(folder) / "quiet.waylore")
        with open_collection(quiet_store) as quiet:
            pipeline.write(quiet_store, EMBEDDER, [index_note(note) for note in held], author=OWNER)
            if list(quiet_store.export()) != stored:
                yield "the export differs from that of a quiet store"
            if _read_counts(store) != _read_counts(quiet_store):
                yield f"the store has {_read_counts(store)} items, a quiet store {_read_counts(quiet_store)}"
            for note in held[:: max(len(held) // COMPARED_SEARCHES, 1)]:
                if _search_hits(waylore, note) != _search_hits(quiet, note):
                    yield f"a search for {note} differs from that in a quiet store"


def _read_counts(store: Store) -> tuple[int, ...]:
    counts = store.statistics()
    return counts.documents, counts.passages, counts.entities, counts.facts, counts.mentions


def _search_hits(waylore: Waylore, note: Note) -> list[tuple[str, str, float]]:
    found = waylore.search(note.text, method="hybrid", record_use=False)
    return [(hit.passage.id, hit.passage.text, round(hit.score, 5)) for hit in found.hits]
