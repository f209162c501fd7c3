"""Build a PostgreSQL database of any size from a small sample, by copying the rows that Waylore wrote with SQL.

A million passages take an hour through `store.write`. Here only the sample is written that way. Then each table
is filled with copies of its rows, for each tenant and within a tenant. Each copy has ids and texts of its own
(`benchmarks.scale.sample`). The vectors of copies are mixed from a pool of other vectors, because nearly equal
vectors would make a vector index that no search can leave. Counters and frequencies are correct:
`store.find_remains` finds nothing. The words and vectors of tenants are interleaved, as if the tenants had
written in turns. Nothing is measured here.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from hashlib import md5
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
from pgvector.psycopg import register_vector

from benchmarks.corpus import Corpus
from benchmarks.scale.sample import Sample
from benchmarks.scale.sql import (
    CREATE_SAMPLE,
    INSERT_COPIES,
    SELECT_CONSTRAINTS,
    SELECT_INDEXES,
    SELECT_PACKS,
    SELECT_WORDS,
    TABLES,
    UPDATE_COUNTERS,
)
from waylore.store import rows as columns
from waylore.store.packing import split_ids
from waylore.store.packs import ID, Column, Pack, Packs, encode_pack
from waylore.store.postgres import vector_indexes as indexing
from waylore.store.postgres.index import index_packs
from waylore.store.postgres.insert import make_passage_vectors
from waylore.store.postgres.scope import compute_key, make_access_word, make_term_word
from waylore.store.postgres.search import MAX_EXACT_PASSAGES
from waylore.store.postgres.steps import to_array
from waylore.store.postgres.store import PostgresStore
from waylore.store.vectors import quantise, to_units
from waylore.types.author import OWNER
from waylore.types.identity import identity
from waylore.types.results import Statistics

COUNT_BITS = 6  # for the count of a term in a passage, as `waylore.store.bm25` packs it
BATCH_PAGES = 250
Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Numbers: TypeAlias = npt.NDArray[np.int64]
ReportProgress: TypeAlias = Callable[[str], None]


def name_tenant(number: int) -> str:
    """Return the collection name of a tenant."""
    return f"tenant-{number}"


def build_database(url: str, sample: Sample, report: ReportProgress) -> None:
    """Fill an empty database with all copies of a sample and index it; `url` must be that of a superuser."""
    with closing(PostgresStore(url, name_tenant(0))) as store:
        for start in range(0, len(sample.pages), BATCH_PAGES):
            store.write(sample.pages[start : start + BATCH_PAGES], author=OWNER, model=sample.model)
    db: Connection
    with psycopg.connect(url, autocommit=True) as db:
        register_vector(db)
        db.execute("SET search_path = waylore, public; SET jit = off; SET max_parallel_workers_per_gather = 0")
        with db.transaction():
            fill_tables(db, sample, report)
        db.execute("DROP SCHEMA sample CASCADE")
        db.execute("VACUUM ANALYZE")
        if (largest := sample.copies * len(sample.pages)) > MAX_EXACT_PASSAGES:
            report("a vector index for each tenant")
            known = Statistics(0, largest, 0, 0, 0, sample.model, _get_dimension(sample), 0)
            for number in range(sample.tenants):
                indexing.build_indexes(db, compute_key(name_tenant(number)), known)
        db.execute("CHECKPOINT")


def fill_tables(db: Connection, sample: Sample, report: ReportProgress) -> None:
    """Copy the sample aside and refill every table without indexes; a truncated table writes no log."""
    for statement in CREATE_SAMPLE:
        db.execute(statement)
    tenants = _add_tenants(db, sample)
    _add_grains(db, sample)
    numbers = _add_hashes(db, sample)
    indexes = _drop_indexes(db)
    db.execute("ANALYZE")
    bound = {"copies": sample.copies, "size": len(sample.pages), "first": compute_key(name_tenant(0))}
    for table in TABLES:
        report(table)
        db.execute(f"TRUNCATE {table}")
        if table in INSERT_COPIES:
            db.execute(INSERT_COPIES[table], bound)
    report("words and vectors")
    _copy_words(db, tenants, numbers)
    _copy_vectors(db, tenants, sample)
    report("packs")
    _copy_packs(db, tenants, sample)
    db.execute(UPDATE_COUNTERS, bound)
    for statement in indexes:
        report(statement.split(" USING ")[0])
        db.execute(statement)


def _get_dimension(sample: Sample) -> int:
    vector = sample.pages[0].passages[0].vector
    return 0 if vector is None else len(vector)


def _add_tenants(db: Connection, sample: Sample) -> list[tuple[int, int]]:
    """Add the tenants; return their keys and marks, ordered by mark."""
    with db.cursor().copy("COPY collections (collection, name) FROM STDIN") as rows:
        for number in range(1, sample.tenants):
            rows.write_row((compute_key(name_tenant(number)), name_tenant(number)))
    db.execute("CREATE TABLE sample.tenants AS SELECT collection, mark FROM collections ORDER BY mark")
    db.execute(f"CREATE TABLE sample.copies AS SELECT copy FROM generate_series(0, {sample.copies - 1}) copy")
    return list(db.execute("TABLE sample.tenants"))


def _add_grains(db: Connection, sample: Sample) -> None:
    with db.cursor().copy("COPY sample.grains (id, grain) FROM STDIN") as rows:
        for row in sample.entity_grains.items():
            rows.write_row(row)
    with db.cursor().copy("COPY sample.fact_grains (id, grain) FROM STDIN") as rows:
        for row in sample.fact_grains.items():
            rows.write_row(row)


def _add_hashes(db: Connection, sample: Sample) -> list[Numbers]:
    """Add the names, keys and terms of each copy; return the new number of each term by its old number."""
    known = {id_.hex: number for id_, number in db.execute("SELECT term, number FROM sample.terms")}
    strings = [(kind, text, identity(kind, text), sample.get_grain(text)) for kind, text in sample.strings]
    numbers, last = [np.zeros(max(known.values()) + 1, dtype=np.int64)], 0
    with db.cursor().copy("COPY sample.hashed (old, copy, new, grain, number) FROM STDIN") as rows:
        for copy in range(sample.copies):
            numbers.append(numbers[-1].copy())
            for kind, text, old, grain in strings:
                if copy % grain == 0:
                    last += 1
                    rows.write_row((old, copy, identity(kind, sample.rename_copy(text, copy)), grain, last))
                    if kind == "term":
                        numbers[-1][known[old]] = last
    return numbers[1:]


def _drop_indexes(db: Connection) -> list[str]:
    """Drop the indexes and return the statements that create them again."""
    constraints, indexes = list(db.execute(SELECT_CONSTRAINTS)), list(db.execute(SELECT_INDEXES))
    for table, name, _ in constraints:
        db.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")
    statements = [
        f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}' for table, name, definition in constraints
    ]
    return statements + [definition for _, definition in indexes]


def _copy_words(db: Connection, tenants: Sequence[tuple[int, int]], numbers: Sequence[Numbers]) -> None:
    sampled = list(db.execute(SELECT_WORDS))
    cells = [np.frombuffer(blob, dtype=np.uint32) for *_, blob in sampled]
    with db.cursor().copy("COPY passage_terms (collection, number, id, length, terms, words) FROM STDIN") as rows:
        for copy, numbered in enumerate(numbers):
            for (number, id_, length, access, _), cell in zip(sampled, cells, strict=True):
                terms = np.sort(numbered[cell >> COUNT_BITS] << COUNT_BITS | cell & ((1 << COUNT_BITS) - 1))
                own = (
                    number + copy * len(sampled),
                    _make_copy_id(id_, copy),
                    length,
                    terms.astype(np.uint32).tobytes(),
                )
                named = [
                    *(make_term_word(0, n) for n in (terms >> COUNT_BITS).tolist()),
                    make_access_word(0, access),
                ]
                words = " " + " ".join(named)
                for collection, mark in tenants:
                    rows.write_row((collection, *own, words.replace(" 0", f" {mark}")))


def _copy_vectors(db: Connection, tenants: Sequence[tuple[int, int]], sample: Sample) -> None:
    sampled = list(db.execute("SELECT id, document, access, vector FROM sample.passage_vectors"))
    vectors = to_units(np.stack([vector.to_numpy().astype(np.int8) for *_, vector in sampled]))
    mixed = Corpus(like=vectors if sample.pool is None else sample.pool)
    into = "passage_vectors (collection, id, document, access, dimension, vector)"
    with db.cursor().copy(f"COPY {into} FROM STDIN (FORMAT BINARY)") as rows:
        rows.set_types(["int8", "uuid", "uuid", "int4", "int4", "halfvec"])
        for copy in range(sample.copies):
            placed = mixed.make_vectors(len(vectors)) if copy else vectors
            for (id_, document, access, _), (vector, dimension) in zip(
                sampled, make_passage_vectors(quantise(placed)), strict=True
            ):
                own = (
                    _make_copy_id(id_, copy),
                    _make_copy_id(document, copy),
                    access,
                    dimension,
                    vector,
                )
                for collection, _ in tenants:
                    rows.write_row((collection, *own))


def _copy_packs(db: Connection, tenants: Sequence[tuple[int, int]], sample: Sample) -> None:
    """Copy packs with the ids and words of each copy, and the assertions of their facts."""
    sampled = list(db.execute(SELECT_PACKS))
    packs = [Packs([pack]) for *_, pack in sampled]
    accesses, said = [access for _, access, *_ in sampled], [recorded_at for _, _, recorded_at, _ in sampled]
    for copy in range(sample.copies):
        blobs = [_rename_pack(each, sample, copy) for each in packs]
        ids = [_make_copy_id(id_, copy).hex for id_, *_ in sampled]
        made = Packs(blobs)
        facts = columns.group_pairs(zip(made.fact_of.tolist(), split_ids(made.facts["id"].tobytes()), strict=True))
        rows = [(id_, to_array(facts[of]), blob) for of, (id_, blob) in enumerate(zip(ids, blobs, strict=True))]
        _copy_rows(db, tenants, "packs (collection, passage, facts, pack)", rows)
        asserted = [
            (fact, source, -strength, *others)
            for fact, source, strength, *others in index_packs(made, accesses, ids, said).assertions
        ]
        into = "assertions (collection, fact, source, rank, passage, place, access, status, valid_from, valid_to, series, began)"
        _copy_rows(db, tenants, into, asserted)


def _copy_rows(db: Connection, tenants: Sequence[tuple[int, int]], into: str, made: Sequence[tuple[Any, ...]]) -> None:
    with db.cursor().copy(f"COPY {into} FROM STDIN") as rows:
        for row in made:
            for collection, _ in tenants:
                rows.write_row((collection, *row))


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
    return np.array([_make_copy_id(UUID(id_), copy // grains[id_]).bytes for id_ in ids], ID)


def _make_copy_id(id_: UUID, copy: int) -> UUID:
    """Return the id of a row in a copy, as the SQL function `sample.id` computes it."""
    return UUID(md5(f"{id_}/{copy}".encode(), usedforsecurity=False).hexdigest())
