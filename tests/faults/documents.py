"""The documents that the fault tests write, and what a store must hold of each.

A number names a document and an edition says what it tells, so that a test which knows how far a writer came
knows every row that must be there. Each paragraph becomes a passage with a marker that no other has. Nothing
here checks a store; `checking` does.
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
from waylore.types.knowledge import Claim, Contribution, Document

NOW = datetime(2024, 5, 17, tzinfo=UTC)
EMBEDDER = HashingEmbedder(64, quiet=True)
WORDS = [a + b + c for a in ("bar", "col", "dun", "fel", "gor") for b in "aeiou" for c in ("mik", "nus", "pol")]
WORDS_IN_PARAGRAPH = 110  # two paragraphs are too long for one passage
FORGETTING = 0.25  # of all steps


@dataclass(frozen=True, slots=True)
class Edition:
    """What one document says at one time."""

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
        """One word for each passage that nothing else says."""
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


Step = tuple[int, Edition | None]  # a document's number, and what is to be there: nothing, if it is forgotten


def steps(seed: int, numbers: Sequence[int]) -> Iterator[Step]:
    """What a writer does, in order and without end; the same for the same seed."""
    chosen = Random(seed)
    for step in count(1):
        number = chosen.choice(numbers)
        is_forgotten = chosen.random() < FORGETTING
        yield number, None if is_forgotten else Edition(number, seed * 100_000 + step)


def opened(path: Path) -> Waylore:
    """A collection whose clock stands still, so that it can be compared with what was meant."""
    return Waylore.open(path, embedder=EMBEDDER, clock=lambda: NOW)


def take(waylore: Waylore, step: Step) -> None:
    """Do one step."""
    number, wanted = step
    if wanted is None:
        waylore.forget(identity(number))
    else:
        waylore.add(wanted.text, uri=wanted.uri, labels=wanted.labels, facts=wanted.facts)


def acknowledgement(step: Step) -> str:
    """The line that says that a step was done."""
    number, wanted = step
    if wanted is None:
        return f"forget {number}\n"
    return f"add {number} {sha256(wanted.text.encode()).hexdigest()}\n"


def identity(number: int) -> str:
    """The identity of a document."""
    return document_id(uri=_uri(number))


@cache
def contribution(wanted: Edition) -> Contribution:
    """All that a store must hold of a document."""
    document = Document(identity(wanted.number), uri=wanted.uri, labels=wanted.labels, recorded_at=NOW)
    return pipeline.contribution(document, wanted.text, [Claim(*fact) for fact in wanted.facts])


def _uri(number: int) -> str:
    return f"test:document/{number}"
