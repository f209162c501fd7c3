"""Identities of documents, passages, entities and facts, computed from their content.

The same content has the same 128-bit identity in every store. So adding a document twice changes nothing, and a
walk can continue in another cell.
"""

import re
from functools import lru_cache
from hashlib import blake2b

from waylore.text import normalise

MARK_DIGITS = 8  # first digits of an id, enough to distinguish the passages of a collection

_ID = re.compile("[0-9a-f]{32}")


def get_file(uri: str) -> str:
    """Return the file of an address. The address of a row in a file ends in # and its place."""
    return uri.partition("#")[0]


def make_enrichment_uri(document: str) -> str:
    """Return the address of documents that a model added to a document's passages. Stores forget both together."""
    return f"enrich:{document}"


def is_id(text: str) -> bool:
    """Return whether a text has the form of an id."""
    return _ID.fullmatch(text) is not None


def make_mark(id_: str) -> str:
    """Return the first digits of an id. A model uses them to name a passage: six tokens instead of twenty."""
    return id_[:MARK_DIGITS]


def identity(kind: str, *parts: str) -> str:
    """Return 128 bits of `kind` and `parts` as 32 hexadecimal digits."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    sized = b"".join([len(part).to_bytes(8, "big") + part for part in encoded])
    return blake2b(sized, digest_size=16, person=kind.encode()).hexdigest()


def document_id(
    *, uri: str = "", text: str = "", labels: frozenset[str] = frozenset(), scope: tuple[str, ...] = ()
) -> str:
    """Return the id of a document, from its address if it has one, else from its text and labels.

    `scope` has the user first, then agent and session, so equal texts of two users are two documents. A user has one
    document at an address.
    """
    if uri:
        return add_scope(identity("document", uri), scope[:1])
    return add_scope(identity("document", uri, text, *sorted(labels)), scope)


def add_scope(id_: str, scope: tuple[str, ...]) -> str:
    """Return the id of the same content in a scope of user, agent and session; unchanged if the scope is empty."""
    return identity("scope", id_, *scope) if any(scope) else id_


def passage_id(document: str, text: str) -> str:
    """Return the id of a passage, from its document and text."""
    return identity("passage", document, text)


@lru_cache(maxsize=65_536)
def entity_id(name: str, sense: str = "") -> str:
    """Return the id of an entity, from its normalised name, and from a sense if two things share a name."""
    return identity("entity", normalise(name), normalise(sense))


def fact_id(subject: str, predicate: str, object_: str, *, is_entity: bool) -> str:
    """Return the id of a fact, from its subject's id, its predicate, and its object's id or plain value."""
    return identity("fact", subject, normalise(predicate), "entity" if is_entity else "", object_)


def pair_id(subject: str, object_: str) -> str:
    """Return the id of a pair, from halves of the ids of its entities, so that stores need not store it."""
    return subject[:16] + object_[:16]
