"""Map errors to the names, titles, exit codes and HTTP status codes that every surface uses.

An error has the nearest listed kind. This module also words the error for an unknown field or argument. It writes
no responses: each surface does.
"""

from collections.abc import Collection
from difflib import get_close_matches
from typing import NamedTuple

from waylore.errors import (
    ArgumentError,
    ClosedError,
    ConfigError,
    DamagedStore,
    DeadlineExceeded,
    Forbidden,
    ModelError,
    ModelMismatch,
    NotFound,
    SchemaOutdated,
    StoreError,
    StoreUnavailable,
    WayloreError,
)


class ErrorKind(NamedTuple):
    """The name and title of an error, the exit code of a command, and the status of an HTTP response."""

    name: str
    title: str
    exit_code: int
    status: int


KINDS: dict[type[Exception], ErrorKind] = {
    ConfigError: ErrorKind("config", "Bad request", 2, 400),
    ArgumentError: ErrorKind("argument", "Invalid request", 2, 422),
    NotFound: ErrorKind("not-found", "Not found", 3, 404),
    StoreUnavailable: ErrorKind("store-unavailable", "Store unavailable", 4, 503),
    DamagedStore: ErrorKind("store-damaged", "Store damaged", 9, 500),
    SchemaOutdated: ErrorKind("schema-outdated", "Schema outdated", 5, 503),
    Forbidden: ErrorKind("forbidden", "Permission denied", 6, 403),
    ModelMismatch: ErrorKind("model-mismatch", "Model mismatch", 7, 409),
    ModelError: ErrorKind("model", "Model unavailable", 8, 503),
    ClosedError: ErrorKind("closed", "Collection closed", 1, 503),
    DeadlineExceeded: ErrorKind("timeout", "Timed out", 1, 504),
    StoreError: ErrorKind("store", "Internal error", 1, 500),
    WayloreError: ErrorKind("error", "Internal error", 1, 500),
    ValueError: ErrorKind("value", "Invalid request", 2, 422),
}

# Names that other libraries use for the same thing. For an unknown name, the known name of its group is suggested.
SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("top_k", "max_results", "limit", "k", "n", "top", "size", "most", "count"),
    ("where", "filter", "filters", "metadata", "metadata_filter"),
    ("layout", "style", "format", "template"),
    ("method", "recipe", "mode", "strategy", "search_type"),
    ("query", "question", "q", "prompt", "search"),
    ("as_of", "date", "at", "time", "timestamp"),
    ("max_tokens", "tokens", "budget", "token_budget", "max_length"),
    ("documents", "ids", "document_ids", "id", "document_id", "document"),
    ("id", "document_id", "passage_id", "document", "passage"),
    ("text", "content", "body", "message"),
    ("uri", "url", "path", "address", "source_uri"),
    ("labels", "label", "tags", "permissions", "groups"),
    ("metadata", "meta", "properties", "attributes"),
    ("facts", "fact", "triples", "claims", "relations"),
    ("use_graph", "graph", "with_graph"),
    ("min_similarity", "min_graph_score", "min_score", "threshold", "score_threshold", "similarity_cutoff"),
    ("rerank", "reranker", "reranking", "use_reranker"),
    ("user", "user_id", "userid", "owner"),
    ("agent", "agent_id", "assistant_id"),
    ("session", "session_id", "run_id", "thread_id", "conversation_id", "thread"),
    ("since", "from", "start", "after"),
    ("until", "to", "end", "before"),
    ("expires", "expires_at", "expiry"),
    ("grace_seconds", "grace"),
)


def find_kind(error: Exception) -> ErrorKind:
    """Return the nearest listed kind of an error; for an unexpected error, the kind of WayloreError."""
    listed = (KINDS[kind] for kind in type(error).__mro__ if kind in KINDS)
    return next(listed, KINDS[WayloreError])


def describe_unknown(noun: str, name: str, known: Collection[str]) -> str:
    """Return the message for an unknown field or argument, with the name that was probably meant."""
    for group in SYNONYMS:
        meant = [each for each in group if each in known] if name in group else []
        if meant:
            return f"unknown {noun} {name}; use {meant[0]}"
    similar = get_close_matches(name, known, n=1)
    return f"unknown {noun} {name}; use {similar[0] if similar else ', '.join(sorted(known))}"
