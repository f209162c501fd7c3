"""Made-up knowledge of any size that behaves like the real thing: Zipfian words, hubs, clustered vectors.

Vectors mimic bge-small's on MuSiQue: a common direction (mean of norm 0.65), an effective dimension of about
120, and topics that passages share. `like=` takes real vectors to mix instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from waylore.types.identity import document_id, entity_id, fact_id, passage_id
from waylore.types.knowledge import Contribution, Document, Entity, Fact, Mention, Passage

DIMENSION = 384
WORDS = 200_000
FACTS = 10
SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
PREDICATES = [f"predicate_{i}" for i in range(40)]
Matrix = npt.NDArray[np.float32]


def unit(vectors: npt.NDArray[np.floating[Any]]) -> Matrix:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


@dataclass
class Corpus:
    """Contributions one after another, the same for the same seed."""

    seed: int = 7
    like: Matrix | None = None

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.topics = self.like if self.like is not None else self._topics(2_000)
        self.words = ["".join(self._syllables(i)) for i in range(WORDS)]
        self.fact_vectors = self.vectors(1_000)

    def vectors(self, count: int) -> Matrix:
        """Each between two topics, moved by the difference of two others."""
        a, b, c, d = (self.topics[self.random.integers(0, len(self.topics), count)] for _ in range(4))
        pull = self.random.uniform(0.0, 0.5, (count, 1)).astype(np.float32)
        push = self.random.uniform(0.1, 0.3, (count, 1)).astype(np.float32)
        return unit((1 - pull) * a + pull * b + push * (c - d))

    def text(self) -> str:
        length = int(np.clip(self.random.lognormal(4.5, 0.4), 20, 300))
        return " ".join(self.words[i] for i in self._zipf(length, WORDS))

    def contributions(self, start: int, count: int) -> Iterator[Contribution]:
        vectors, names = self.vectors(count), self.vectors(count)
        for i in range(count):
            yield self._contribution(start + i, vectors[i], names[i])

    def _contribution(self, number: int, vector: Matrix, name_vector: Matrix) -> Contribution:
        """A page about one entity, that knows of four others among those that came before it."""
        text = self.text()
        document = Document(
            id=document_id(uri=f"page/{number}"), uri=f"page/{number}", metadata={"part": number % 100}
        )
        passage = Passage(
            passage_id(document.id, text), document.id, text, title=name(number), end=len(text), vector=vector
        )
        others = {int(o) for o in self._zipf(4, max(number, 1))} - {number}
        numbers = [number, *sorted(others)]
        entities = tuple(
            Entity(entity_id(name(n)), name(n), "thing", f"about {name(n)}", vector=name_vector)
            for n in numbers
        )
        return Contribution(
            document,
            (passage,),
            entities,
            tuple(Mention(e.id, passage.id, 1 + (e is entities[0]), e is entities[0]) for e in entities),
            tuple({f.id: f for f in (self._fact(entities, passage, k) for k in range(FACTS))}.values()),
        )

    def _fact(self, entities: tuple[Entity, ...], passage: Passage, k: int) -> Fact:
        subject, other = entities[0], entities[k % len(entities)]
        predicate = PREDICATES[(k * 7 + len(passage.text)) % len(PREDICATES)]
        is_entity = other is not subject
        value = other.name if is_entity else f"value {k}"
        return Fact(
            id=fact_id(subject.id, predicate, other.id if is_entity else value, is_entity=is_entity),
            subject_id=subject.id,
            subject=subject.name,
            predicate=predicate,
            object=value,
            object_id=other.id if is_entity else "",
            passage_id=passage.id,
            statement=f"{subject.name} {predicate} {value}, as the page says",
            weight=1.0 + k,
            vector=self.fact_vectors[(k * 31 + len(passage.text)) % len(self.fact_vectors)],
        )

    def _zipf(self, count: int, size: int) -> npt.NDArray[np.int64]:
        """Ranks below `size`, each about as often as 1/rank."""
        return np.asarray(np.exp(self.random.random(count) * np.log(size)) - 1, dtype=np.int64)

    def _topics(self, count: int) -> Matrix:
        spectrum = np.arange(1, DIMENSION + 1) ** -0.35
        mean = self.random.normal(size=DIMENSION)
        mean *= 0.86 * np.linalg.norm(spectrum) / np.linalg.norm(mean)
        return unit(mean + self.random.normal(size=(count, DIMENSION)) * spectrum)

    def _syllables(self, number: int) -> Iterator[str]:
        while True:
            number, at = divmod(number, len(SYLLABLES))
            yield SYLLABLES[at]
            if not number:
                return


def name(number: int) -> str:
    """The name of the entity that page `number` is about."""
    return f"Entity Number {number}"
