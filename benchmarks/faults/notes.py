"""Notes with known content, so that every answer can be judged, and the ledger of what was acknowledged.

A number names a note and an edition says what it tells; each has a word that no other has. The ledger knows of
every note which edition was acknowledged last and which was begun last. An answer is right if all that it shows
lies between the two. Nothing here asks a store anything but `settled`, which looks at what is there in the end.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from waylore.config import Cache
from waylore.engine.waylore import Waylore
from waylore.indexing import pipeline
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.types.identity import document_id
from waylore.types.knowledge import Claim, Contribution, Document

NOW = datetime(2024, 5, 17, tzinfo=UTC)
EMBEDDER = HashingEmbedder(64, quiet=True)
WORDS = "anchor basket candle dock engine ferry garden harbour island jetty kettle lantern market needle orchard".split()
QUIET_QUESTIONS = 20  # that a store is asked in the end, beside a quiet one


@dataclass(frozen=True, slots=True)
class Note:
    """What one document says at one time."""

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


def opened(store: Store) -> Waylore:
    """A collection whose clock stands still, and that keeps no answers: every one must come from the store."""
    return Waylore(store, EMBEDDER, clock=lambda: NOW, cache=Cache(seconds=0.0))


@lru_cache(maxsize=100_000)
def contribution(note: Note) -> Contribution:
    """All that a store must hold of a note."""
    document = Document(note.id, uri=note.uri, recorded_at=NOW)
    return pipeline.contribution(document, note.text, [Claim(*fact) for fact in note.facts])


def note_of(text: str) -> Note | None:
    """The note whose whole text this is; None, if there is no such note."""
    number, _, edition = text.partition(":")[0].removeprefix("marker").partition("x")
    if not (number.isdigit() and edition.isdigit()):
        return None
    note = Note(int(number), int(edition))
    return note if note.text == text else None


@dataclass(eq=False, slots=True)
class Ledger:
    """Which editions of notes were begun, and which were acknowledged. May be used by many threads."""

    first: int = 0  # the first number that is given to a new note
    acknowledged: dict[int, int] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)
    _writing: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, chance: Random, *, is_new: bool = False) -> Note:
        """What to write next: mostly a new note, else a new edition of one that nobody is writing."""
        with self._lock:
            known = sorted(self.acknowledged.keys() - self._writing)
            is_new = is_new or not known or chance.random() < 0.75
            number = self.first + len(self.begun) if is_new else chance.choice(known)
            note = Note(number, self.begun.get(number, 0) + 1)
            self.begun[number] = note.edition
            self._writing.add(number)
            return note

    def end(self, note: Note, *, is_acknowledged: bool) -> None:
        """The write is over; what was not acknowledged may be there or not."""
        with self._lock:
            self._writing.discard(note.number)
            if is_acknowledged:
                self.acknowledged[note.number] = note.edition

    def known(self, chance: Random) -> Note | None:
        """An acknowledged note that nobody writes and that cannot be of another edition."""
        with self._lock:
            sure = [n for n, edition in self.acknowledged.items() if self.begun[n] == edition]
            number = chance.choice(sure) if sure else None
            return None if number is None else Note(number, self.acknowledged[number])

    def floor(self) -> dict[int, int]:
        """What was acknowledged by now."""
        with self._lock:
            return dict(self.acknowledged)

    def is_still(self, note: Note) -> bool:
        """Whether no newer edition was begun."""
        return self.begun.get(note.number) == note.edition

    def explains(self, note: Note, floor: Mapping[int, int]) -> bool:
        """Whether one who asked when `floor` was acknowledged may be shown this edition."""
        return floor.get(note.number, 0) <= note.edition <= self.begun.get(note.number, 0)


@dataclass(frozen=True, slots=True)
class Settled:
    """What is wrong with a store after all is over."""

    lost: tuple[str, ...]
    wrong: tuple[str, ...]


def settled(waylore: Waylore, store: Store, ledger: Ledger) -> Settled:
    """Compare a store with what was acknowledged, and with a quiet SQLite store that holds the same."""
    there = {c.document.id: c for c in store.export()}
    held = {number: _held(there.get(Note(number).id), ledger, number) for number in ledger.begun}
    lost = [
        f"note {number}: edition {ledger.acknowledged[number]} was acknowledged, and is not there"
        for number, note in held.items()
        if note is None and number in ledger.acknowledged
    ]
    known = [note for note in held.values() if note]
    return Settled(tuple(lost), tuple(_differences(waylore, store, list(there.values()), known)))


def _held(found: Contribution | None, ledger: Ledger, number: int) -> Note | None:
    """The edition that is there, if it may be: the last that was acknowledged, or one that was begun since."""
    editions = range(max(ledger.acknowledged.get(number, 0), 1), ledger.begun[number] + 1)
    notes = [Note(number, edition) for edition in editions]
    return next((note for note in notes if found and found.digest == contribution(note).digest), None)


def _differences(waylore: Waylore, store: Store, there: list[Contribution], held: list[Note]) -> Iterator[str]:
    with TemporaryDirectory() as folder:
        quiet_store = SqliteStore(Path(folder) / "quiet.waylore")
        with opened(quiet_store) as quiet:
            pipeline.write(quiet_store, EMBEDDER, [contribution(note) for note in held])
            if list(quiet_store.export()) != there:
                yield "the export is not that of a quiet store"
            if _counts(store) != _counts(quiet_store):
                yield f"there are {_counts(store)} parts, in a quiet store {_counts(quiet_store)}"
            for note in held[:: max(len(held) // QUIET_QUESTIONS, 1)]:
                if _hits(waylore, note) != _hits(quiet, note):
                    yield f"{note} is found otherwise than in a quiet store"


def _counts(store: Store) -> tuple[int, ...]:
    told = store.statistics()
    return told.documents, told.passages, told.entities, told.facts, told.mentions


def _hits(waylore: Waylore, note: Note) -> list[tuple[str, str, float]]:
    found = waylore.search(note.text, method="hybrid", count_use=False)
    return [(hit.passage.id, hit.passage.text, round(hit.score, 5)) for hit in found.hits]
