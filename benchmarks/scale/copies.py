"""Write copies of the rows of a sample into the tables of a PostgreSQL database, one piece after another.

What SQL can copy, it copies (`benchmarks.scale.sql`). Words, vectors, names and packs have ids of copies inside them, so
they are made here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg

from benchmarks.scale.sample import Sample, make_copy_id
from benchmarks.scale.sql import INSERT_COPIES, SELECT_NAMES, SELECT_PACKS, SELECT_VECTORS, SELECT_WORDS
from waylore.store import rows as columns
from waylore.store.packing import split_ids
from waylore.store.packs import ID, Column, Pack, Packs, encode_pack
from waylore.store.postgres.index import index_packs
from waylore.store.postgres.insert import make_passage_vectors
from waylore.store.postgres.scope import make_access_word, make_term_word
from waylore.store.postgres.steps import to_array
from waylore.types.identity import identity

COUNT_BITS = 6  # for the count of a term in a passage, as `waylore.store.bm25` packs it
Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Numbers: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Term:
    """A term of the sample: its marked text, its id and number there, and how many copies share it."""

    text: str
    id: str
    number: int
    grain: int


@dataclass(frozen=True)
class SampledRows:
    """The rows of a sample, in the order of its passages, and the tenants that get copies: their keys and marks."""

    sample: Sample
    tenants: Sequence[tuple[int, int]]
    terms: Sequence[Term]
    words: Rows
    cells: Sequence[npt.NDArray[np.uint32]]
    vectors: Rows
    names: Mapping[str, Rows]  # by kind: text, entity, access, documents
    passages: Rows  # that have a pack: id, access, time
    packs: Sequence[Packs]


def read_sample(db: Connection, sample: Sample) -> SampledRows:
    """Read the rows of a sample."""
    known = {id_.hex: number for id_, number in db.execute("SELECT term, number FROM sample.terms")}
    strings = [(kind, text, identity(kind, text)) for kind, text in sample.strings]
    texts = {(kind, id_): text for kind, text, id_ in strings}
    words, packs = db.execute(SELECT_WORDS).fetchall(), db.execute(SELECT_PACKS).fetchall()
    return SampledRows(
        sample=sample,
        tenants=db.execute("TABLE sample.tenants").fetchall(),
        terms=[Term(t, id_, known[id_], sample.get_grain(t)) for kind, t, id_ in strings if kind == "term"],
        words=words,
        cells=[np.frombuffer(blob, dtype=np.uint32) for *_, blob in words],
        vectors=db.execute(SELECT_VECTORS).fetchall(),
        names={
            kind: [(texts[kind, hash_.hex], *row) for hash_, *row in db.execute(query)]
            for kind, query in SELECT_NAMES.items()
        },
        passages=[row[:3] for row in packs],
        packs=[Packs([pack]) for *_, pack in packs],
    )


def number_terms(rows: SampledRows) -> Iterator[tuple[Numbers, int]]:
    """Yield, for each copy, the new number of each term by its old number, and the highest number so far."""
    old = np.array([term.number for term in rows.terms], np.int64)
    grains = np.array([term.grain for term in rows.terms], np.int64)
    numbers, last = np.zeros(old.max() + 1, np.int64), 0
    for copy in rows.sample.numbers:
        fresh = old[(copy % grains == 0) | (copy == rows.sample.numbers[0])]
        numbers[fresh] = last + 1 + np.arange(len(fresh))
        last += len(fresh)
        yield numbers.copy(), last


def write_piece(db: Connection, rows: SampledRows, numbers: Mapping[int, Numbers]) -> None:
    """Write some copies, given with the numbers of their terms."""
    db.execute("TRUNCATE sample.copies, sample.hashed")
    copy_rows(db, "sample.copies (copy)", ((copy,) for copy in numbers))
    copy_rows(db, "sample.hashed (old, copy, new, grain, number)", _list_terms(rows, numbers))
    db.execute("ANALYZE sample.copies, sample.hashed")
    size, whole = len(rows.sample.pages), rows.sample.numbers
    for statement in INSERT_COPIES.values():
        db.execute(statement, {"size": size, "first": whole.start, "end": whole.stop})
    for copy, numbered in numbers.items():
        _copy_words(db, rows, copy, numbered)
        _copy_vectors(db, rows, copy)
        _copy_names(db, rows, copy)
        _copy_packs(db, rows, copy)


def copy_rows(db: Connection, into: str, given: Iterable[Sequence[Any]]) -> None:
    """Send rows to a table."""
    with db.cursor().copy(f"COPY {into} FROM STDIN") as rows:
        for row in given:
            rows.write_row(row)


def _copy_of_tenants(db: Connection, rows: SampledRows, into: str, made: Rows) -> None:
    copy_rows(db, into, ((collection, *row) for row in made for collection, _ in rows.tenants))


def _is_new(rows: SampledRows, copy: int, grain: int) -> bool:
    return copy % grain == 0 or copy == rows.sample.numbers.start


def _list_terms(rows: SampledRows, numbers: Mapping[int, Numbers]) -> Iterator[tuple[Any, ...]]:
    """Yield the terms that are new in the copies of a piece."""
    for copy, numbered in numbers.items():
        for term in rows.terms:
            if _is_new(rows, copy, term.grain):
                new = identity("term", rows.sample.rename_copy(term.text, copy))
                yield term.id, copy, new, term.grain, int(numbered[term.number])


def _copy_names(db: Connection, rows: SampledRows, copy: int) -> None:
    """Copy the names of entities, and the keys of these names, that are new in a copy."""
    sample = rows.sample
    for kind, into in (("name", "names (collection, name"), ("key", "entity_keys (collection, key")):
        made = []
        for text, entity, access, documents in rows.names[kind]:
            grain = sample.entity_grains[entity.hex]
            if _is_new(rows, copy, grain):
                new = identity(kind, sample.rename_copy(text, copy))
                sharing = min(grain, sample.numbers.stop - copy)
                made.append((new, make_copy_id(entity.hex, copy // grain), access, documents * sharing))
        _copy_of_tenants(db, rows, f"{into}, entity, access, documents)", made)


def _copy_words(db: Connection, rows: SampledRows, copy: int, numbered: Numbers) -> None:
    added = (copy - rows.sample.numbers.start) * len(rows.words)
    with db.cursor().copy("COPY passage_terms (collection, number, id, length, terms, words) FROM STDIN") as into:
        for (number, id_, length, access, _), cell in zip(rows.words, rows.cells, strict=True):
            terms = np.sort(numbered[cell >> COUNT_BITS] << COUNT_BITS | cell & ((1 << COUNT_BITS) - 1))
            own = (number + added, make_copy_id(id_.hex, copy), length, terms.astype(np.uint32).tobytes())
            named = [*(make_term_word(0, n) for n in (terms >> COUNT_BITS).tolist()), make_access_word(0, access)]
            words = " " + " ".join(named)
            for collection, mark in rows.tenants:
                into.write_row((collection, *own, words.replace(" 0", f" {mark}")))


def _copy_vectors(db: Connection, rows: SampledRows, copy: int) -> None:
    table = "passage_vectors (collection, id, document, access, dimension, vector)"
    with db.cursor().copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as into:
        into.set_types(["int8", "uuid", "uuid", "int4", "int4", "halfvec"])
        made = make_passage_vectors(rows.sample.make_codes(copy))
        for (id_, document, access), (vector, dimension) in zip(rows.vectors, made, strict=True):
            ids = (UUID(make_copy_id(id_.hex, copy)), UUID(make_copy_id(document.hex, copy)))
            for collection, _ in rows.tenants:
                into.write_row((collection, *ids, access, dimension, vector))


def _copy_packs(db: Connection, rows: SampledRows, copy: int) -> None:
    """Copy packs with the ids and words of a copy, and the assertions of their facts."""
    accesses, said = ([row[column] for row in rows.passages] for column in (1, 2))
    blobs = [_rename_pack(packs, rows.sample, copy) for packs in rows.packs]
    ids = [make_copy_id(id_.hex, copy) for id_, *_ in rows.passages]
    made = Packs(blobs)
    facts = columns.group_pairs(zip(made.fact_of.tolist(), split_ids(made.facts["id"].tobytes()), strict=True))
    packed = [(id_, to_array(facts[of]), blob) for of, (id_, blob) in enumerate(zip(ids, blobs, strict=True))]
    _copy_of_tenants(db, rows, "packs (collection, passage, facts, pack)", packed)
    asserted = [
        (fact, source, -strength, *others)
        for fact, source, strength, *others in index_packs(made, accesses, ids, said).assertions
    ]
    into = "assertions (collection, fact, source, rank, passage, place, access, status, valid_from, valid_to, series, began)"
    _copy_of_tenants(db, rows, into, asserted)


def _rename_pack(packs: Packs, sample: Sample, copy: int) -> bytes:
    """Return a pack with the ids and words of a copy, in the order of the new ids."""
    own = [id_.hex() for id_ in packs.entities[1:].tolist()]
    entities = _make_copy_ids(own, sample.entity_grains, copy)
    facts, mentions = packs.facts[: packs.typed].copy(), packs.mentions
    facts["id"] = _make_copy_ids([id_.hex() for id_ in facts["id"].tolist()], sample.fact_grains, copy)
    ranks = zip(mentions["rank"].tolist(), mentions["entity"].tolist(), strict=True)
    best = sorted(
        range(len(mentions)), key=[(-rank, entities[place - 1].tobytes()) for rank, place in ranks].__getitem__
    )
    pack = Pack(
        entities=entities,
        statements=packs.statements,
        mentions=mentions[best],
        facts=facts[sorted(range(len(facts)), key=facts["id"].tolist().__getitem__)],
        pairs=packs.pairs,
        trust=packs.distinct_trust,
        words=tuple(sample.rename_copy(word, copy) for word in packs.decode_words(0)),
    )
    return encode_pack(pack)


def _make_copy_ids(ids: Sequence[str], grains: Mapping[str, int], copy: int) -> Column:
    return np.array([bytes.fromhex(make_copy_id(id_, copy // grains[id_])) for id_ in ids], ID)
