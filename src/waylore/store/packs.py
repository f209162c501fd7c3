"""Encode what one passage says as a pack, one blob of columns, and decode many packs at once.

A pack has the statements of a passage with their vectors, the mentions in them and the facts that they state. It
refers to entities by their numbers in the store. Words that are not in the passage's text (predicates, plain values,
claims, addresses of links) are in the pack, so deleting it deletes them. Reading gives NumPy columns over all packs
and makes no object for an item. This module knows no SQL.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from waylore.errors import SchemaOutdated

Column = npt.NDArray[Any]

VERSION = 1
# Sections follow the head in this order: vectors (int8), statements, mentions, facts, trust, ends of words, words.
HEAD = np.dtype(
    [
        *(("version", "<u2"), ("flags", "<u2"), ("dimension", "<u2")),
        *(("statements", "<u2"), ("mentions", "<u2"), ("facts", "<u2"), ("words", "<u4"), ("text", "<u4")),
    ]
)
# A claim is not in the passage's text: its start and end are its place among the words. `scale` is 1 / length.
STATEMENT = np.dtype([("start", "<u4"), ("end", "<u4"), ("scale", "<f4"), ("kind", "<u2")])
MENTION = np.dtype(
    [
        *(("entity", "<u4"), ("rank", "<u2"), ("statement", "<u2"), ("start", "<u4"), ("length", "<u2")),
        *(("flags", "<u2"), ("address", "<u2")),
    ]
)
# The predicate of a fact is the word at its own place among the facts; a plain value is a word, too.
FACT = np.dtype([("key", "<u8"), ("subject", "<u4"), ("object", "<u4"), ("statement", "<u2"), ("flags", "<u2")])
TRUST = np.dtype([("weight", "<f8"), ("confidence", "<f8"), ("valid_from", "<i8"), ("valid_to", "<i8")])

KINDS = ("sentence", "row", "item", "claim")  # of statements, by number
IS_OWN = 1 << 15  # in the rank of a mention: the passage is about the entity; the other bits count its occurrences
IS_LINK = 1  # in the flags of a mention
IS_VALUE = 1 << 8  # in the flags of a fact: its object is a plain value
HAS_TRUST = 1  # in the flags of a pack
ALWAYS = np.iinfo(np.int64)  # its ends stand for no valid_from and no valid_to
PLAIN_TRUST = np.array((5.0, 1.0, ALWAYS.min, ALWAYS.max), dtype=TRUST)  # of a fact that says nothing else


@dataclass(frozen=True, slots=True)
class Pack:
    """What one passage says. Columns of a section have one row for each statement, mention or fact."""

    vectors: Column
    statements: Column
    mentions: Column
    facts: Column
    trust: Column
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Packs:
    """Several packs as columns. `statement_of`, `mention_of` and `fact_of` are places among the packs."""

    vectors: Column
    statements: Column
    statement_of: Column
    mentions: Column
    mention_of: Column
    facts: Column
    fact_of: Column
    trust: Column
    first_statement: Column  # the place of the first statement of each pack
    first_fact: Column
    _words: tuple[bytes, ...]  # the encoded words of each pack, behind their ends
    _counts: tuple[int, ...]  # of the words of each pack

    def __len__(self) -> int:
        return len(self._words)

    def decode_words(self, place: int) -> tuple[str, ...]:
        """Return the words of one pack."""
        count, section = self._counts[place], self._words[place]
        ends = np.frombuffer(section, "<u4", count).tolist()
        text = section[4 * count :]
        return tuple(
            text[start:end].decode("utf-8", "surrogatepass") for start, end in zip([0, *ends], ends, strict=False)
        )


def encode_pack(pack: Pack) -> bytes:
    """Return a pack as bytes. Equal packs give equal bytes."""
    words = [word.encode("utf-8", "surrogatepass") for word in pack.words]
    ends = np.cumsum([len(word) for word in words], dtype=np.int64).astype("<u4")
    has_trust = bool((pack.trust != PLAIN_TRUST).any())
    dimension = pack.vectors.shape[1]
    counts = (len(pack.statements), len(pack.mentions), len(pack.facts), len(words), int(ends[-1]) if words else 0)
    head = np.array((VERSION, HAS_TRUST * has_trust, dimension, *counts), dtype=HEAD)
    sections = [pack.vectors, pack.statements, pack.mentions, pack.facts, *([pack.trust] if has_trust else []), ends]
    return b"".join([head.tobytes(), *(section.tobytes() for section in sections), *words])


def decode_packs(blobs: Sequence[bytes]) -> Packs:
    """Return packs as columns, one behind the other in the given order."""
    heads = np.frombuffer(b"".join(blob[: HEAD.itemsize] for blob in blobs), HEAD)
    if (heads["version"] > VERSION).any():
        raise SchemaOutdated("a passage was written by a later version of Waylore: install that version")
    counts = {name: heads[name].astype(np.int64) for name in ("statements", "mentions", "facts", "words")}
    has_trust = (heads["flags"] & HAS_TRUST).astype(np.int64)
    vectors, statements, mentions, facts, trust, words = _cut_sections(blobs, heads, counts, has_trust)
    places = np.arange(len(blobs))
    dimension = int(heads["dimension"].max(initial=0))
    return Packs(
        vectors=np.frombuffer(b"".join(vectors), np.int8).reshape(-1, dimension or 1),
        statements=np.frombuffer(b"".join(statements), STATEMENT),
        statement_of=np.repeat(places, counts["statements"]),
        mentions=np.frombuffer(b"".join(mentions), MENTION),
        mention_of=np.repeat(places, counts["mentions"]),
        facts=np.frombuffer(b"".join(facts), FACT),
        fact_of=np.repeat(places, counts["facts"]),
        trust=_join_trust(trust, np.repeat(has_trust, counts["facts"]) > 0),
        first_statement=np.cumsum(counts["statements"]) - counts["statements"],
        first_fact=np.cumsum(counts["facts"]) - counts["facts"],
        _words=tuple(words),
        _counts=tuple(counts["words"].tolist()),
    )


def decode_pack(blob: bytes) -> Pack:
    """Return one pack."""
    one = decode_packs([blob])
    return Pack(one.vectors, one.statements, one.mentions, one.facts, one.trust, one.decode_words(0))


def quantise(vectors: Column) -> tuple[Column, Column]:
    """Return vectors in eight bits per dimension, and 1 / length of each of them."""
    largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0.0), 1e-12)
    codes = np.rint(vectors * (127.0 / largest)).astype(np.int8)
    wide = codes.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return codes, (1.0 / np.maximum(lengths, 1.0)).astype("<f4")


def _cut_sections(
    blobs: Sequence[bytes], heads: Column, counts: dict[str, Column], has_trust: Column
) -> list[list[bytes]]:
    """Return the bytes of each section of each pack."""
    sizes = [
        counts["statements"] * heads["dimension"],
        counts["statements"] * STATEMENT.itemsize,
        counts["mentions"] * MENTION.itemsize,
        counts["facts"] * FACT.itemsize,
        counts["facts"] * TRUST.itemsize * has_trust,
        counts["words"] * 4 + heads["text"],
    ]
    ends = HEAD.itemsize + np.cumsum(sizes, axis=0)
    starts = ends - sizes
    return [
        [blob[start:end] for blob, start, end in zip(blobs, first.tolist(), last.tolist(), strict=True)]
        for first, last in zip(starts, ends, strict=True)
    ]


def _join_trust(sections: Sequence[bytes], is_given: Column) -> Column:
    """Return the trust of all facts: as given, or plain in packs that leave the section out."""
    trust = np.full(len(is_given), PLAIN_TRUST)
    trust[is_given] = np.frombuffer(b"".join(sections), TRUST)
    return trust
