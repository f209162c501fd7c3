"""A sample of documents whose rare words are marked, so that each copy of it has words of its own.

A word that is rare in the sample gets a mark that counts the copies. More frequent words are shared by ten or a
hundred copies, frequent ones by all. So a name is found only in the copies that it belongs to, an entity that
many copies name becomes a hub, and a word occurs in a realistic number of passages. Vectors of copies are mixed from
real ones, the same in every run. It does not touch a database.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import md5
from uuid import UUID
from zlib import crc32

import numpy as np

from benchmarks.corpus import Matrix, mix_vectors, normalize_rows
from waylore.names import keys
from waylore.store.rows import join_searchable_text, list_names
from waylore.store.vectors import Codes, quantise, to_units
from waylore.text import STOP_WORDS, terms
from waylore.types.identity import entity_id, fact_id, passage_id
from waylore.types.knowledge import Entity, Fact, IndexedDocument, Passage

MARKS = {1: "qx", 10: "qy", 100: "qz"}  # suffix of a word by the number of copies that share it
# If a word is in fewer passages of the sample than the key, the value is the number of copies that share it.
GRAIN_BELOW_PASSAGES = {3: 1, 6: 10, 20: 100}
ONE_OF_RARE_WORDS = (
    5  # so many rare words that are no names have one that is new in every copy; ten copies share the others
)
SHARED = 1_000_000  # copies that share what has no mark: all
CELL_COPIES = 3_000  # the first copies of two neighbouring cells are so far apart
DROPPED_WORD = 10  # a near-duplicate lacks every word whose place is a multiple of this
NOISE = 0.2  # length of what is added to the vector of a near-duplicate: their cosine is about 0.98
SEED = 7
WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Sample:
    """Documents with their vectors, one for each page, and the number of copies to make.

    The last `repeats` documents are near-duplicates of the first ones, also by the vectors of copies. Samples with
    another `place` give other copies of the same documents: each cell has one.
    """

    contributions: Sequence[IndexedDocument]
    model: str
    copies: int = 1
    tenants: int = 1
    pool: Matrix | None = None  # vectors to mix those of copies from; None takes the sample's
    repeats: int = 0
    place: int = 0

    @property
    def numbers(self) -> range:
        """The numbers of the copies."""
        return range(self.place * CELL_COPIES, self.place * CELL_COPIES + self.copies)

    @property
    def collections(self) -> list[str]:
        """The names of the collections, one for each tenant."""
        return [name_tenant(self.place + number) for number in range(self.tenants)]

    @property
    def passages(self) -> int:
        """The number of passages in all copies and tenants."""
        return len(self.contributions) * self.copies * self.tenants

    @cached_property
    def grains(self) -> dict[str, int]:
        """The number of copies that share a word, for each word that not all copies share."""
        texts = [join_searchable_text(p.title, p.text) for c in self.contributions for p in c.passages]
        names = {word for c in self.contributions for e in c.entities for word in WORD.findall(e.name.casefold())}
        seen = Counter(word for text in texts for word in set(WORD.findall(text.casefold())))
        seen.update(dict.fromkeys(names, 0))
        tiers = [(word, _choose_grain(word, count, is_name=word in names)) for word, count in seen.items()]
        return {w: g for w, g in tiers if g < self.copies and w not in STOP_WORDS}

    def mark(self, text: str) -> str:
        """Mark the words of a text for the first copy."""
        return WORD.sub(lambda word: self._mark_word(word.group()), text)

    def _mark_word(self, word: str) -> str:
        grain = self.grains.get(word.casefold())
        return f"{word}{MARKS[grain]}0000" if grain else word

    def get_grain(self, text: str) -> int:
        """Return the number of copies that share a marked text."""
        return next((g for g, mark in MARKS.items() if g < self.copies and f"{mark}0000" in text), SHARED)

    def rename_copy(self, text: str, copy: int) -> str:
        """Change the marks of a text to those of another copy."""
        for grain, mark in MARKS.items():
            text = text.replace(f"{mark}0000", f"{mark}{copy // grain:04d}")
        return text

    @cached_property
    def names(self) -> dict[str, str]:
        """The marked names of entities by id."""
        return {e.id: e.name for c in self.pages for e in c.entities}

    @cached_property
    def entity_grains(self) -> dict[str, int]:
        """The number of copies that share an entity, by id."""
        return {id_: self.get_grain(name) for id_, name in self.names.items()}

    @cached_property
    def fact_grains(self) -> dict[str, int]:
        """The number of copies that share a fact, by id."""
        grains = self.entity_grains
        return {fact.id: min(grains[end] for end in fact.ends) for page in self.pages for fact in page.facts}

    @cached_property
    def strings(self) -> list[tuple[str, str]]:
        """All marked strings that a store knows only by a hash: terms, names, keys of names."""
        passages = [join_searchable_text(p.title, p.text) for c in self.pages for p in c.passages]
        names = set(self.names.values())
        strings = {
            "term": {term for text in passages for term in terms(text)},
            "name": {name for one in names for name in list_names(one, ())},
            "key": {key for name in names for key in keys(name)},
        }
        return [(kind, text) for kind, texts in strings.items() for text in sorted(texts)]

    @cached_property
    def pages(self) -> list[IndexedDocument]:
        """The marked documents."""
        return [self._mark_page(c) for c in self.contributions]

    def _mark_page(self, page: IndexedDocument) -> IndexedDocument:
        entities = {e.id: self._mark_entity(e) for e in page.entities}
        return replace(
            page,
            document=replace(page.document, title=self.mark(page.document.title)),
            passages=tuple(self._mark_passage(p) for p in page.passages),
            entities=tuple(entities.values()),
            mentions=tuple(replace(m, entity_id=entities[m.entity_id].id) for m in page.mentions),
            facts=tuple(self._mark_fact(f, entities) for f in page.facts),
        )

    def _mark_passage(self, passage: Passage) -> Passage:
        return replace(passage, title=self.mark(passage.title), text=self.mark(passage.text))

    def _mark_entity(self, entity: Entity) -> Entity:
        name = self.mark(entity.name)
        return replace(entity, id=entity_id(name), name=name)

    def _mark_fact(self, fact: Fact, entities: dict[str, Entity]) -> Fact:
        subject, object_ = entities[fact.subject_id], entities.get(fact.object_id)
        value = object_.name if object_ else fact.object
        ends = (subject.id, fact.predicate, object_.id if object_ else value)
        return replace(
            fact,
            id=fact_id(*ends, is_entity=object_ is not None),
            subject_id=subject.id,
            subject=subject.name,
            object=value,
            object_id=object_.id if object_ else "",
            statement=self.mark(fact.statement),
        )

    # -- copies ----------------------------------------------------------------------------------------

    @cached_property
    def codes(self) -> Codes:
        """The vectors of the sample's passages, in eight bits per dimension."""
        return quantise(np.stack([p.vector for c in self.contributions for p in c.passages if p.vector is not None]))

    def make_codes(self, copy: int) -> Codes:
        """Make the vectors of a copy: the sample's own for copy 0, otherwise mixed from the pool."""
        if copy == 0:
            return self.codes
        random = np.random.default_rng((SEED, copy))
        vectors = mix_vectors(to_units(self.codes) if self.pool is None else self.pool, len(self.codes), random)
        if self.repeats:
            noise = normalize_rows(random.standard_normal((self.repeats, vectors.shape[1])))
            vectors[-self.repeats :] = normalize_rows(vectors[: self.repeats] + NOISE * noise)
        return quantise(vectors)

    def make_documents(self, copy: int) -> Iterator[IndexedDocument]:
        """Make the documents of a copy, as a multiplied database has them."""
        for page, vector in zip(self.pages, to_units(self.make_codes(copy)), strict=True):
            yield self._copy_page(page, vector, copy)

    def _copy_page(self, page: IndexedDocument, vector: Matrix, copy: int) -> IndexedDocument:
        [passage] = page.passages
        id_, document = (make_copy_id(each, copy) for each in (passage.id, passage.document_id))
        title, text = self.rename_copy(passage.title, copy), self.rename_copy(passage.text, copy)
        return replace(
            page,
            document=replace(
                page.document,
                id=document,
                uri=f"{page.document.uri}/{copy}",
                title=self.rename_copy(page.document.title, copy),
            ),
            passages=(replace(passage, id=id_, document_id=document, title=title, text=text, vector=vector),),
            entities=tuple(
                replace(e, id=self._copy_entity(e.id, copy), name=self.rename_copy(e.name, copy)) for e in page.entities
            ),
            mentions=tuple(
                replace(m, entity_id=self._copy_entity(m.entity_id, copy), passage_id=id_) for m in page.mentions
            ),
            facts=tuple(self._copy_fact(fact, id_, copy) for fact in page.facts),
        )

    def _copy_entity(self, id_: str, copy: int) -> str:
        return make_copy_id(id_, copy // self.entity_grains[id_])

    def _copy_fact(self, fact: Fact, passage: str, copy: int) -> Fact:
        return replace(
            fact,
            id=make_copy_id(fact.id, copy // self.fact_grains[fact.id]),
            subject_id=self._copy_entity(fact.subject_id, copy),
            subject=self.rename_copy(fact.subject, copy),
            object=self.rename_copy(fact.object, copy),
            object_id=self._copy_entity(fact.object_id, copy) if fact.object_id else "",
            passage_id=passage,
            statement=self.rename_copy(fact.statement, copy),
        )


def name_tenant(number: int) -> str:
    """Return the collection name of a tenant."""
    return f"tenant-{number}"


def _choose_grain(word: str, passages: int, *, is_name: bool) -> int:
    grain = next((g for most, g in GRAIN_BELOW_PASSAGES.items() if passages < most), SHARED)
    is_shared = grain == 1 and not is_name and crc32(word.encode()) % ONE_OF_RARE_WORDS
    return 10 if is_shared else grain


def make_copy_id(id_: str, copy: int) -> str:
    """Return the id of an item in a copy, as the SQL function `sample.id` computes it."""
    return md5(f"{UUID(id_)}/{copy}".encode(), usedforsecurity=False).hexdigest()


def thin_page(page: IndexedDocument, facts: int) -> IndexedDocument:
    """Return the page with its first facts, and with the entities of these facts and of the page itself."""
    kept = page.facts[:facts]
    own = {m.entity_id for m in page.mentions if m.is_own}
    entities = own | {end for fact in kept for end in fact.ends}
    return replace(
        page,
        facts=kept,
        entities=tuple(e for e in page.entities if e.id in entities),
        mentions=tuple(m for m in page.mentions if m.entity_id in entities),
    )


def drop_graph(page: IndexedDocument) -> IndexedDocument:
    """Return the page without entities and facts."""
    return replace(page, facts=(), entities=(), mentions=(), pairs=())


def repeat_page(page: IndexedDocument, address: IndexedDocument) -> IndexedDocument:
    """Return a near-duplicate of a page at another address: without a tenth of its words."""
    [passage] = page.passages
    text = " ".join(word for place, word in enumerate(passage.text.split(), 1) if place % DROPPED_WORD)
    document = replace(page.document, id=address.document.id, uri=address.document.uri, labels=address.document.labels)
    own = replace(
        passage, id=passage_id(document.id, text), document_id=document.id, text=text, end=len(text), vector=None
    )
    return replace(
        page,
        document=document,
        passages=(own,),
        mentions=tuple(replace(m, passage_id=own.id) for m in page.mentions),
        facts=tuple(replace(f, passage_id=own.id) for f in page.facts),
    )
