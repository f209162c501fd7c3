"""Define the documents that the fault tests write, and what a store must hold of each.

A number identifies a document, and an edition is its content. A test that knows the number of steps of a writer
therefore knows every row that must be stored. Each paragraph becomes a passage with a unique marker. The module
checks no store; `checking` does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random

from waylore.engine.waylore import Waylore
from waylore.indexing import pipeline
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.types.identity import document_id
from waylore.types.knowledge import Document, IndexedDocument, NewFact

NOW = datetime(2024, 5, 17, tzinfo=UTC)
EMBEDDER = HashingEmbedder(64, quiet=True)
WORDS = [a + b + c for a in ("bar", "col", "dun", "fel", "gor") for b in "aeiou" for c in ("mik", "nus", "pol")]
WORDS_IN_PARAGRAPH = 110  # two paragraphs are too long for one passage
FORGETTING = 0.25  # fraction of steps that forget a document


@dataclass(frozen=True, slots=True)
class Edition:
    """The content of one document at one time."""

    number: int
    edition: int

    @property
    def uri(self) -> str:
        return _uri(self.number)

    @property
    def labels(self) -> frozenset[str]:
        return frozenset({f"team {self.number % 3}"} if (self.number + self.edition) % 4 == 0 else ())

    @property
    def markers(self) -> list[str]:
        """One word for each passage that occurs nowhere else."""
        return [f"n{self.number}e{self.edition}p{i}" for i in range(3 + self.edition % 3)]

    @property
    def text(self) -> str:
        chosen = Random(f"{self.number} {self.edition}")
        filled = (" ".join(chosen.choices(WORDS, k=WORDS_IN_PARAGRAPH)) for _ in self.markers)
        paragraphs = [f"{marker} {rest}." for marker, rest in zip(self.markers, filled, strict=True)]
        paragraphs[-1] += f" Loom {self.number} stands in Mill {self.number % 7}."
        return "\n\n".join(paragraphs)

    @property
    def facts(self) -> list[tuple[str, str, str]]:
        """One fact of its own, one with an end that others share, and one that others state as well."""
        loom, mill = f"Loom {self.number}", f"Mill {self.number % 7}"
        cloth = f"Cloth {self.number} of {self.edition}"
        return [(loom, "weaves", cloth), (loom, "stands in", mill), (mill, "belongs to", "Waylore")]


Step = tuple[int, Edition | None]  # a document's number and its edition, or None to forget it


def make_steps(seed: int, numbers: Sequence[int]) -> Iterator[Step]:
    """Yield the steps of a writer without end; the same seed gives the same steps."""
    chosen = Random(seed)
    for step in count(1):
        number = chosen.choice(numbers)
        is_forgotten = chosen.random() < FORGETTING
        yield number, None if is_forgotten else Edition(number, seed * 100_000 + step)


def open_file(path: Path) -> Waylore:
    """Open a collection whose clock stands still, so that documents can be compared."""
    return Waylore.open(path, embedder=EMBEDDER, clock=lambda: NOW)


def run_step(waylore: Waylore, step: Step) -> None:
    """Run one step."""
    number, wanted = step
    if wanted is None:
        waylore.forget(get_id(number))
    else:
        waylore.add(wanted.text, uri=wanted.uri, labels=wanted.labels, facts=wanted.facts)


def to_line(step: Step) -> str:
    """Return the line that acknowledges a step."""
    number, wanted = step
    if wanted is None:
        return f"forget {number}\n"
    return f"add {number} {sha256(wanted.text.encode()).hexdigest()}\n"


def get_id(number: int) -> str:
    """Return the id of a document."""
    return document_id(uri=_uri(number))


@cache
def make_document(wanted: Edition) -> IndexedDocument:
    """Return what a store must hold of a document."""
    document = Document(get_id(wanted.number), uri=wanted.uri, labels=wanted.labels, recorded_at=NOW)
    return pipeline.index_text(document, wanted.text, [NewFact(*fact) for fact in wanted.facts])


def _uri(number: int) -> str:
    return f"test:document/{number}"
