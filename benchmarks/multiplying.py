"""A PostgreSQL database of any size from a small sample: what Waylore wrote is written again by SQL, many times over.

A million passages take an hour through `store.write`. Here the sample goes that way, and then each table is filled
with copies of it: for each tenant, and within a tenant. A copy has identities of its own and texts of its own, for
words that are rare in the sample bear a mark that counts the copies; commoner ones are shared by ten or a hundred
copies, common ones by all. So a name is found in the copies that it belongs to, what many copies name becomes a
hub, and a word is in as many passages as one of its kind would be. Vectors of copies are mixed from a pool of others, for
near copies of each other would make a graph of vectors that no search finds its way out of.
Counters and frequencies are right: `store.remains` finds nothing. Words and vectors of tenants lie interleaved, as if they
had written in turns. Nothing here measures.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import md5
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from benchmarks.corpus import Corpus, Matrix
from benchmarks.multiplying_sql import COPIED, COUNTED, KEYS, REST, SAMPLED, TABLES, WORDS
from waylore.names import keys
from waylore.store.postgres import vector_indexes as indexing
from waylore.store.postgres.scope import access_word, key_of, term_word
from waylore.store.postgres.search import EXACT
from waylore.store.postgres.store import PostgresStore
from waylore.store.rows import names_of, readable
from waylore.text import STOP_WORDS, terms
from waylore.types.identity import entity_id, fact_id, identity
from waylore.types.knowledge import Contribution, Entity, Fact, Passage
from waylore.types.results import Statistics

MARKS = {1: "qx", 10: "qy", 100: "qz"}  # what a word bears that so many copies share
SEEN = {3: 1, 6: 10, 20: 100}  # a word in fewer passages of the sample than this is shared by so many copies
WORD = re.compile(r"[^\W_]+")
COUNT_BITS = 6  # of a term in a passage, as `lexicon` packs it
BATCH = 250
Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Numbers: TypeAlias = npt.NDArray[np.int64]
Tell: TypeAlias = Callable[[str], None]


def tenant(number: int) -> str:
    """The collection of a tenant."""
    return f"tenant-{number}"


# -- the sample, marked ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Contributions with their vectors, one for each page, and how often they are to be there."""

    contributions: Sequence[Contribution]
    model: str
    copies: int = 1
    tenants: int = 1
    pool: Matrix | None = None  # what the vectors of copies are mixed from; else those of the sample

    @cached_property
    def grains(self) -> dict[str, int]:
        """How many copies share a word, for each that not all of them do."""
        texts = [readable(p.title, p.text) for c in self.contributions for p in c.passages]
        names = {e.name for c in self.contributions for e in c.entities}
        seen = Counter(word for text in texts for word in set(WORD.findall(text.casefold())))
        seen.update({word: 0 for name in names for word in WORD.findall(name.casefold())})
        tiers = [(word, next((g for most, g in SEEN.items() if n < most), None)) for word, n in seen.items()]
        return {w: g for w, g in tiers if g is not None and g < self.copies and w not in STOP_WORDS}

    def marked(self, text: str) -> str:
        """A text as the first copy has it."""
        return WORD.sub(lambda word: self._marked(word.group()), text)

    def _marked(self, word: str) -> str:
        grain = self.grains.get(word.casefold())
        return f"{word}{MARKS[grain]}0000" if grain else word

    def grain(self, text: str) -> int:
        """How many copies share a marked text."""
        return next((g for g, mark in MARKS.items() if g < self.copies and f"{mark}0000" in text), self.copies)

    def said(self, text: str, copy: int) -> str:
        """A marked text as another copy has it."""
        for grain, mark in MARKS.items():
            text = text.replace(f"{mark}0000", f"{mark}{copy // grain:04d}")
        return text

    @cached_property
    def names(self) -> dict[str, str]:
        """The marked name of each entity."""
        return {e.id: e.name for c in self.pages for e in c.entities}

    @cached_property
    def strings(self) -> list[tuple[str, str]]:
        """All that a store knows by a hash alone, marked: terms, names, keys of names."""
        passages = [readable(p.title, p.text) for c in self.pages for p in c.passages]
        names = set(self.names.values())
        told = {
            "term": {term for text in passages for term in terms(text)},
            "name": {name for told in names for name in names_of(told, ())},
            "key": {key for name in names for key in keys(name)},
        }
        return [(kind, text) for kind, texts in told.items() for text in sorted(texts)]

    @cached_property
    def pages(self) -> list[Contribution]:
        """The contributions, marked."""
        return [self._page(c) for c in self.contributions]

    def _page(self, page: Contribution) -> Contribution:
        entities = {e.id: self._entity(e) for e in page.entities}
        return replace(
            page,
            document=replace(page.document, title=self.marked(page.document.title)),
            passages=tuple(self._passage(p) for p in page.passages),
            entities=tuple(entities.values()),
            mentions=tuple(replace(m, entity_id=entities[m.entity_id].id) for m in page.mentions),
            facts=tuple(self._fact(f, entities) for f in page.facts),
        )

    def _passage(self, passage: Passage) -> Passage:
        return replace(passage, title=self.marked(passage.title), text=self.marked(passage.text))

    def _entity(self, entity: Entity) -> Entity:
        name = self.marked(entity.name)
        return replace(entity, id=entity_id(name), name=name)

    def _fact(self, fact: Fact, entities: dict[str, Entity]) -> Fact:
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
            statement=self.marked(fact.statement),
        )


def thinned(page: Contribution, facts: int) -> Contribution:
    """A page with its first few facts, and the entities that these join or that the page is about."""
    kept = page.facts[:facts]
    own = {m.entity_id for m in page.mentions if m.is_own}
    entities = own | {end for fact in kept for end in fact.ends}
    return replace(
        page,
        facts=kept,
        entities=tuple(e for e in page.entities if e.id in entities),
        mentions=tuple(m for m in page.mentions if m.entity_id in entities),
    )


# -- the database ------------------------------------------------------------------------------------------


def build(url: str, sample: Sample, tell: Tell) -> None:
    """Fill an empty database with all copies of a sample, and index it; `url` is a superuser's."""
    with closing(PostgresStore(url, tenant(0))) as store:
        for start in range(0, len(sample.pages), BATCH):
            store.write(sample.pages[start : start + BATCH], model=sample.model)
    db: Connection
    with psycopg.connect(url, autocommit=True) as db:
        register_vector(db)
        db.execute("SET search_path = waylore, public; SET jit = off; SET max_parallel_workers_per_gather = 0")
        with db.transaction():
            fill(db, sample, tell)
        db.execute("DROP SCHEMA sample CASCADE")
        db.execute("VACUUM ANALYZE")
        if (largest := sample.copies * len(sample.pages)) > EXACT:
            tell("an index of vectors for each tenant")
            known = Statistics(0, largest, 0, 0, 0, sample.model, _dimension(sample), 0)
            for number in range(sample.tenants):
                indexing.build(db, key_of(tenant(number)), known)
        db.execute("CHECKPOINT")


def fill(db: Connection, sample: Sample, tell: Tell) -> None:
    """Set the sample aside and fill every table anew, without indexes; a table that is new costs no log."""
    for statement in SAMPLED:
        db.execute(statement)
    tenants = _add_tenants(db, sample)
    _add_grains(db, sample)
    numbers = _add_hashes(db, sample)
    indexes = _without_indexes(db)
    db.execute("ANALYZE")
    bound = {"copies": sample.copies, "size": len(sample.pages), "first": key_of(tenant(0))}
    for table in TABLES:
        tell(table)
        db.execute(f"TRUNCATE {table}")
        if table in COPIED:
            db.execute(COPIED[table], bound)
    tell("words and vectors")
    _copy_words(db, tenants, numbers)
    _copy_vectors(db, tenants, sample)
    db.execute(COUNTED, bound)
    for statement in indexes:
        tell(statement.split(" USING ")[0])
        db.execute(statement)


def _dimension(sample: Sample) -> int:
    vector = sample.pages[0].passages[0].vector
    return 0 if vector is None else len(vector)


def _add_tenants(db: Connection, sample: Sample) -> list[tuple[int, int]]:
    """Their keys and marks, the first of them first."""
    with db.cursor().copy("COPY collections (collection, name) FROM STDIN") as rows:
        for number in range(1, sample.tenants):
            rows.write_row((key_of(tenant(number)), tenant(number)))
    db.execute("CREATE TABLE sample.tenants AS SELECT collection, mark FROM collections ORDER BY mark")
    db.execute(f"CREATE TABLE sample.copies AS SELECT copy FROM generate_series(0, {sample.copies - 1}) copy")
    return list(db.execute("TABLE sample.tenants"))


def _add_grains(db: Connection, sample: Sample) -> None:
    with db.cursor().copy("COPY sample.grains (id, grain) FROM STDIN") as rows:
        for id_, name in sample.names.items():
            rows.write_row((id_, sample.grain(name)))


def _add_hashes(db: Connection, sample: Sample) -> list[Numbers]:
    """What names, keys and terms are in each copy; returns the number of each term there, by its old one."""
    known = {id_.hex: number for id_, number in db.execute("SELECT term, number FROM sample.terms")}
    strings = [(kind, text, identity(kind, text), sample.grain(text)) for kind, text in sample.strings]
    numbers, last = [np.zeros(max(known.values()) + 1, dtype=np.int64)], 0
    with db.cursor().copy("COPY sample.hashed (old, copy, new, grain, number) FROM STDIN") as rows:
        for copy in range(sample.copies):
            numbers.append(numbers[-1].copy())
            for kind, text, old, grain in strings:
                if copy % grain == 0:
                    last += 1
                    rows.write_row((old, copy, identity(kind, sample.said(text, copy)), grain, last))
                    if kind == "term":
                        numbers[-1][known[old]] = last
    return numbers[1:]


def _without_indexes(db: Connection) -> list[str]:
    """Take the indexes away and return what makes them again."""
    constraints, indexes = list(db.execute(KEYS)), list(db.execute(REST))
    for table, name, _ in constraints:
        db.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")
    again = [
        f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}' for table, name, definition in constraints
    ]
    return again + [definition for _, definition in indexes]


def _copy_words(db: Connection, tenants: Sequence[tuple[int, int]], numbers: Sequence[Numbers]) -> None:
    sampled = list(db.execute(WORDS))
    cells = [np.frombuffer(blob, dtype=np.uint32) for *_, blob in sampled]
    with db.cursor().copy(
        "COPY passage_terms (collection, number, id, length, terms, words) FROM STDIN"
    ) as rows:
        for copy, numbered in enumerate(numbers):
            for (number, id_, length, access, _), cell in zip(sampled, cells, strict=True):
                terms = np.sort(numbered[cell >> COUNT_BITS] << COUNT_BITS | cell & ((1 << COUNT_BITS) - 1))
                own = (
                    number + copy * len(sampled),
                    _copied(id_, copy),
                    length,
                    terms.astype(np.uint32).tobytes(),
                )
                named = [*(term_word(0, n) for n in (terms >> COUNT_BITS).tolist()), access_word(0, access)]
                words = " " + " ".join(named)
                for collection, mark in tenants:
                    rows.write_row((collection, *own, words.replace(" 0", f" {mark}")))


def _copy_vectors(db: Connection, tenants: Sequence[tuple[int, int]], sample: Sample) -> None:
    sampled = list(db.execute("SELECT id, document, access, vector FROM sample.passage_vectors"))
    vectors = np.stack([vector.to_numpy().astype(np.float32) for *_, vector in sampled])
    mixed = Corpus(like=vectors if sample.pool is None else sample.pool)
    into = "passage_vectors (collection, id, document, access, dimension, vector)"
    with db.cursor().copy(f"COPY {into} FROM STDIN (FORMAT BINARY)") as rows:
        rows.set_types(["int8", "uuid", "uuid", "int4", "int4", "halfvec"])
        for copy in range(sample.copies):
            placed = mixed.vectors(len(vectors)) if copy else vectors
            for (id_, document, access, _), vector in zip(sampled, map(HalfVector, placed), strict=True):
                own = (_copied(id_, copy), _copied(document, copy), access, vector.dimensions(), vector)
                for collection, _ in tenants:
                    rows.write_row((collection, *own))


def _copied(id_: UUID, copy: int) -> UUID:
    """The identity that a copy has instead, as `sample.id` makes it."""
    return UUID(md5(f"{id_}/{copy}".encode(), usedforsecurity=False).hexdigest())
