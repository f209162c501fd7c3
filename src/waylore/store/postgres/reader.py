"""Answers verbs of the PostgreSQL store, several at once, all of one version of the collection.

A filter becomes a scope, which is remembered. Every trip brings the collection's version: if someone wrote
since the scope was made or since the last trip, everything is asked again, and in the end within one long
snapshot. So no connection is held between two trips, and yet an answer is of one moment.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any

from waylore.errors import DimensionMismatch
from waylore.store.postgres import fetch as reading
from waylore.store.postgres import name_keys as keys
from waylore.store.postgres import scope as scoping
from waylore.store.postgres import search as searching
from waylore.store.postgres import server
from waylore.store.postgres.scope import Scope
from waylore.store.postgres.steps import Steps, Wanted, statement
from waylore.store.reads import driven, side_by_side
from waylore.store.requests import Ask
from waylore.types.search import EVERYTHING, Filter

VERBS: Mapping[str, Callable[..., Steps[Any]]] = MappingProxyType(
    {
        verb.__name__: verb
        for verb in (
            searching.dense,
            searching.lexical,
            searching.nearest_entities,
            searching.cosines,
            searching.nearby,
            keys.keyed,
            keys.alike,
            reading.entities_by_names,
            reading.facts_of_entities,
            reading.facts_of_passages,
            reading.passages_of_entities,
            reading.entities_of_passages,
            reading.documents,
            reading.sources,
            reading.listed,
            reading.passages,
            reading.contributions,
            reading.entities,
            reading.facts,
            reading.digests,
            reading.fingerprints,
            reading.statistics,
        )
    }
)
SCOPES = 1_000  # filters whose scope is remembered
TRIES = 3  # before all is read in one long snapshot


class Outdated(Exception):
    """Someone wrote meanwhile."""


class Reader:
    """What a collection on a server answers."""

    def __init__(self, lent: server.Server, key: int, name: str) -> None:
        self._server = lent
        self._key = key
        self._name = name
        self._scopes: dict[str, Scope] = {}

    def answers(self, asks: Sequence[Ask[Any]]) -> list[Any]:
        """An answer to each, in order."""
        wheres = {_key(where): where for where in map(_where, asks)}
        for _ in range(TRIES):
            with suppress(Outdated):
                return self._of_one_version(asks, wheres)
        with server.reading(self._server, self._key) as db:
            fetch = partial(server.fetched, db)
            return driven(_side_by_side(asks, driven(self._scoped(wheres), fetch)), fetch)

    def _of_one_version(self, asks: Sequence[Ask[Any]], wheres: Mapping[str, Filter]) -> list[Any]:
        known = {key: self._scopes[key] for key in wheres if key in self._scopes}
        fetch = partial(server.trip, self._server, self._key)
        fresh = driven(self._scoped({k: w for k, w in wheres.items() if k not in known}), fetch)
        scopes = known | fresh
        try:
            return driven(_side_by_side(asks, scopes), partial(self._fetched, scopes))
        except DimensionMismatch:
            if not known:
                raise
            self._forget(known)  # there may be another model by now
        raise Outdated

    def _fetched(self, scopes: Mapping[str, Scope], wanted: Sequence[Wanted]) -> list[list[Any]]:
        """Rows, if they are of the version that the scopes are of."""
        if not any(wanted):
            return [[] for _ in wanted]
        with_version = [*wanted, statement("version", collection=self._key)]
        *rows, [(version,)] = server.trip(self._server, self._key, with_version)
        if {version} != {scope.collection.statistics.version for scope in scopes.values()}:
            self._forget(scopes)
            raise Outdated
        return rows

    def _scoped(self, wheres: Mapping[str, Filter]) -> Steps[dict[str, Scope]]:
        known = self._server.has_textsearch
        made = [scoping.scope(self._key, self._name, where, has_textsearch=known) for where in wheres.values()]
        scopes = dict(zip(wheres, (yield from side_by_side(made)), strict=True))
        if len(self._scopes) >= SCOPES:
            self._scopes.clear()
        self._scopes |= scopes
        return scopes

    def _forget(self, scopes: Mapping[str, Scope]) -> None:
        for key in scopes:
            self._scopes.pop(key, None)


def _side_by_side(asks: Sequence[Ask[Any]], scopes: Mapping[str, Scope]) -> Steps[list[Any]]:
    return side_by_side([_steps(each, scopes[_key(_where(each))]) for each in asks])


def _steps(asked: Ask[Any], scope: Scope) -> Steps[Any]:
    options = {name: value for name, value in asked.options.items() if name != "where"}
    return VERBS[asked.verb](scope, *asked.arguments, **options)


def _where(asked: Ask[Any]) -> Filter:
    where: Filter = asked.options.get("where", EVERYTHING)
    return where


def _key(where: Filter) -> str:
    return f"{where.labels and sorted(where.labels)}{where.labels is None}{sorted(where.metadata.items())}"
