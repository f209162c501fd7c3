"""Make synthetic documents of any number with realistic statistics: Zipfian words, hubs, clustered vectors.

Vectors resemble those of bge-small on MuSiQue: a common direction (mean of norm 0.65), an effective dimension
of about 120, and topics that passages share. `like=` takes real vectors to mix instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from waylore.types.identity import document_id, entity_id, fact_id, passage_id
from waylore.types.knowledge import Document, Entity, Fact, IndexedDocument, Mention, Passage

DIMENSION = 384
VOCABULARY_SIZE = 200_000
FACTS_PER_PAGE = 10
SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
PREDICATES = [f"predicate_{i}" for i in range(40)]
Matrix = npt.NDArray[np.float32]


def normalize_rows(vectors: npt.NDArray[np.floating[Any]]) -> Matrix:
    """Scale each row to length 1."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def mix_vectors(topics: Matrix, count: int, random: np.random.Generator) -> Matrix:
    """Make vectors, each between two topics and moved by the difference of two others."""
    a, b, c, d = (topics[random.integers(0, len(topics), count)] for _ in range(4))
    pull = random.uniform(0.0, 0.5, (count, 1)).astype(np.float32)
    push = random.uniform(0.1, 0.3, (count, 1)).astype(np.float32)
    return normalize_rows((1 - pull) * a + pull * b + push * (c - d))


@dataclass
class Corpus:
    """A source of synthetic documents; the same seed gives the same documents."""

    seed: int = 7
    like: Matrix | None = None

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.topics = self.like if self.like is not None else self._make_topics(2_000)
        self.words = ["".join(self._iterate_syllables(i)) for i in range(VOCABULARY_SIZE)]
        self.fact_vectors = self.make_vectors(1_000)

    def make_vectors(self, count: int) -> Matrix:
        """Make vectors from the topics."""
        return mix_vectors(self.topics, count, self.random)

    def make_text(self) -> str:
        """Make a text of 20 to 300 words."""
        length = int(np.clip(self.random.lognormal(4.5, 0.4), 20, 300))
        return " ".join(self.words[i] for i in self._draw_zipf(length, VOCABULARY_SIZE))

    def make_documents(self, start: int, count: int) -> Iterator[IndexedDocument]:
        """Make `count` documents with numbers from `start` on."""
        vectors, names = self.make_vectors(count), self.make_vectors(count)
        for i in range(count):
            yield self._make_document(start + i, vectors[i], names[i])

    def _make_document(self, number: int, vector: Matrix, name_vector: Matrix) -> IndexedDocument:
        """Make a page about one entity, with facts about up to four entities of earlier pages."""
        text = self.make_text()
        document = Document(id=document_id(uri=f"page/{number}"), uri=f"page/{number}", metadata={"part": number % 100})
        passage = Passage(
            passage_id(document.id, text),
            document.id,
            text,
            title=make_name(number),
            end=len(text),
            vector=vector,
        )
        others = {int(o) for o in self._draw_zipf(4, max(number, 1))} - {number}
        numbers = [number, *sorted(others)]
        entities = tuple(
            Entity(entity_id(make_name(n)), make_name(n), "thing", f"about {make_name(n)}", vector=name_vector)
            for n in numbers
        )
        return IndexedDocument(
            document,
            (passage,),
            entities,
            tuple(Mention(e.id, passage.id, 1 + (e is entities[0]), e is entities[0]) for e in entities),
            tuple({f.id: f for f in (self._make_fact(entities, passage, k) for k in range(FACTS_PER_PAGE))}.values()),
        )

    def _make_fact(self, entities: tuple[Entity, ...], passage: Passage, k: int) -> Fact:
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

    def _draw_zipf(self, count: int, size: int) -> npt.NDArray[np.int64]:
        """Draw ranks below `size`, each with a probability of about 1/rank."""
        return np.asarray(np.exp(self.random.random(count) * np.log(size)) - 1, dtype=np.int64)

    def _make_topics(self, count: int) -> Matrix:
        spectrum = np.arange(1, DIMENSION + 1) ** -0.35
        mean = self.random.normal(size=DIMENSION)
        mean *= 0.86 * np.linalg.norm(spectrum) / np.linalg.norm(mean)
        return normalize_rows(mean + self.random.normal(size=(count, DIMENSION)) * spectrum)

    def _iterate_syllables(self, number: int) -> Iterator[str]:
        while True:
            number, at = divmod(number, len(SYLLABLES))
            yield SYLLABLES[at]
            if not number:
                return


def make_name(number: int) -> str:
    """Return the name of the entity that page `number` is about."""
    return f"Entity Number {number}"
