"""The words of Waylore as frozen dataclasses, and the identities that content gives them.

A document, passage, entity or fact has the same 128-bit identity wherever and however often it is
added: that is what makes adding twice the same as adding once, and what lets a walk go on in another
cell. Nothing here reads or writes anything. `docs/glossary.md` says what each word means.
"""

from functools import lru_cache
from hashlib import blake2b

from waylore.text import normalise


def file_of(uri: str) -> str:
    """The file that a document came from: the address of a row in a file ends in its place, after a #."""
    return uri.partition("#")[0]


def identity(kind: str, *parts: str) -> str:
    """Return 128 bits of `kind` and `parts` as 32 hexadecimal digits."""
    digest = blake2b(digest_size=16, person=kind.encode())
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()


def document_id(*, uri: str = "", text: str = "", labels: frozenset[str] = frozenset()) -> str:
    """A document is its address where it has one, else its text and who may read it."""
    return identity("document", uri, *(() if uri else (text, *sorted(labels))))


def passage_id(document: str, text: str) -> str:
    """A passage is its text within its document."""
    return identity("passage", document, text)


@lru_cache(maxsize=65_536)
def entity_id(name: str, sense: str = "") -> str:
    """An entity is its normalised name, and a sense where two things share a name."""
    return identity("entity", normalise(name), normalise(sense))


def fact_id(subject: str, predicate: str, object_: str, *, is_entity: bool) -> str:
    """A fact is its subject's identity, its predicate, and its object's identity or plain value."""
    return identity("fact", subject, normalise(predicate), "entity" if is_entity else "", object_)
