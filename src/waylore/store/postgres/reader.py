"""Run read requests on the PostgreSQL store, several at a time, against one version of the collection.

A filter becomes a scope, which is cached. Every round trip also reads the collection's version. If the version
changed since the scope was made or since the last trip, everything is read again, and after some attempts
within one long snapshot. So no connection is held between two trips, and still all results are of one version.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any

from waylore.errors import DimensionMismatch
from waylore.store import rows as columns
from waylore.store.postgres import fetch as reading
from waylore.store.postgres import name_keys as keys
from waylore.store.postgres import scope as scoping
from waylore.store.postgres import search as searching
from waylore.store.postgres import server
from waylore.store.postgres.scope import PostgresScope
from waylore.store.postgres.steps import Asked, Steps, Wanted, make_statement
from waylore.store.qdrant.queries import CandidateQuery
from waylore.store.reads import drive, run_together
from waylore.store.requests import ReadRequest
from waylore.types.search import NO_FILTER, Filter

VERBS: Mapping[str, Callable[..., Steps[Any]]] = MappingProxyType(
    {
        verb.__name__: verb
        for verb in (
            searching.dense,
            searching.dense_many,
            searching.lexical,
            searching.nearest_entities,
            searching.cosines,
            searching.word_scores,
            searching.count_terms,
            searching.turns,
            searching.nearby,
            keys.find_entities_by_key,
            keys.find_similar_entities,
            reading.entities_by_names,
            reading.list_entities,
            reading.facts_of_entities,
            reading.assertions_of_entities,
            reading.facts_of_passages,
            reading.pairs_of_entities,
            reading.passages_of_entities,
            reading.entities_of_passages,
            reading.documents,
            reading.sources,
            reading.list_documents,
            reading.passages,
            reading.find_passages,
            reading.get_indexed_documents,
            reading.entities,
            reading.facts,
            reading.digests,
            reading.fingerprints,
            reading.statistics,
            reading.has_facts,
            reading.has_turns,
            reading.has_only_turns,
            reading.first_expiry,
            reading.list_expired,
            reading.list_all_documents,
            reading.users,
            reading.most_used,
            reading.growth,
        )
    }
)
MAX_CACHED_SCOPES = 1_000
MAX_ATTEMPTS = 3  # before everything is read in one long snapshot


FetchRows = Callable[[Sequence[Wanted]], list[list[Any]]]
SearchIndex = Callable[[Sequence[CandidateQuery]], list[list[Any]]]


class OutdatedScope(Exception):
    """The collection was written to since the scope was made."""


class Reader:
    """The reading verbs of a collection on a server."""

    def __init__(self, shared: server.Server, key: int, name: str, search_index: SearchIndex) -> None:
        self._server = shared
        self._key = key
        self._name = name
        self._search_index = search_index
        self._scopes: dict[str, PostgresScope] = {}

    def answer(self, requests: Sequence[ReadRequest[Any]]) -> list[Any]:
        """Run requests and return their results, in order."""
        filters = {columns.make_filter_key(where): where for where in map(_get_filter, requests)}
        for _ in range(MAX_ATTEMPTS):
            with suppress(OutdatedScope):
                return self._answer_at_one_version(requests, filters)
        with server.open_snapshot(self._server, self._key) as db:
            fetch = partial(self._fetch_all, partial(server.fetch_statements, db))
            return drive(_run_requests(requests, drive(self._make_scopes(filters), fetch)), fetch)

    def _answer_at_one_version(self, requests: Sequence[ReadRequest[Any]], filters: Mapping[str, Filter]) -> list[Any]:
        known = {key: self._scopes[key] for key in filters if key in self._scopes}
        read = partial(self._fetch_all, partial(server.run_trip, self._server, self._key))
        fresh = drive(self._make_scopes({k: w for k, w in filters.items() if k not in known}), read)
        scopes = known | fresh
        try:
            return drive(_run_requests(requests, scopes), partial(self._fetch_all, partial(self._fetch, scopes)))
        except DimensionMismatch:
            if not known:
                raise
            self._forget(known)  # the collection may have another model by now
        raise OutdatedScope

    def _fetch_all(self, fetch: FetchRows, asked: Sequence[Asked]) -> list[list[Any]]:
        """Return the rows of statements and of queries of the index, in order."""
        queries = [one for one in asked if isinstance(one, CandidateQuery)]
        if not queries:
            return fetch(asked)  # type: ignore[arg-type]  # all are statements
        found = iter(self._search_index(queries))
        statements = [one for one in asked if not isinstance(one, CandidateQuery)]
        rows = iter(fetch(statements) if statements else ())
        return [next(found if isinstance(one, CandidateQuery) else rows) for one in asked]

    def _fetch(self, scopes: Mapping[str, PostgresScope], wanted: Sequence[Wanted]) -> list[list[Any]]:
        """Return rows if they are of the version of the scopes."""
        if not any(wanted):
            return [[] for _ in wanted]
        with_version = [*wanted, make_statement("version", collection=self._key)]
        *rows, [(version,)] = server.run_trip(self._server, self._key, with_version)
        if {version} != {scope.collection.statistics.version for scope in scopes.values()}:
            self._forget(scopes)
            raise OutdatedScope
        return rows

    def _make_scopes(self, filters: Mapping[str, Filter]) -> Steps[dict[str, PostgresScope]]:
        known = self._server.has_textsearch
        made = [scoping.read_scope(self._key, self._name, where, has_textsearch=known) for where in filters.values()]
        scopes = dict(zip(filters, (yield from run_together(made)), strict=True))
        if len(self._scopes) >= MAX_CACHED_SCOPES:
            self._scopes.clear()
        # A search by vectors reads nothing of an empty collection, so it would not learn of the first write.
        self._scopes |= {key: scope for key, scope in scopes.items() if scope.collection.statistics.documents}
        return scopes

    def _forget(self, scopes: Mapping[str, PostgresScope]) -> None:
        for key in scopes:
            self._scopes.pop(key, None)


def _run_requests(requests: Sequence[ReadRequest[Any]], scopes: Mapping[str, PostgresScope]) -> Steps[list[Any]]:
    return run_together([_start_request(request, scopes) for request in requests])


def _start_request(request: ReadRequest[Any], scopes: Mapping[str, PostgresScope]) -> Steps[Any]:
    where = _get_filter(request)
    scope = scopes[columns.make_filter_key(where)].hide_expired(where)
    options = {name: value for name, value in request.options.items() if name != "where"}
    return VERBS[request.verb](scope, *request.arguments, **options)


def _get_filter(request: ReadRequest[Any]) -> Filter:
    where: Filter = request.options.get("where", NO_FILTER)
    return where
