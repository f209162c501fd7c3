"""Stores that are broken on purpose, each in a way that stores have been broken in the wild."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from waylore.store.protocol import NONE
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import LIVE, Alike, Contribution, Fact, Status, Vector
from waylore.types.results import Receipt
from waylore.types.search import EVERYTHING, Filter, Ranking


class FiltersAfterwards(SqliteStore):
    """Takes the best of all, then drops what the caller may not see."""

    def dense(self, vector: Vector, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        found = super().dense(vector, top_k=top_k)
        seen = self.passages([s.id for s in found], where=where)
        return tuple(s for s in found if s.id in seen)

    def lexical(self, query: str, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        found = super().lexical(query, top_k=top_k)
        seen = self.passages([s.id for s in found], where=where)
        return tuple(s for s in found if s.id in seen)


class KeepsSomething(SqliteStore):
    """Removes a document's passages and says so, but leaves behind what was learnt from them."""

    def forget(self, documents: Sequence[str]) -> Receipt:
        contributions = {c.document.id: c for c in self.export()}
        receipt = super().forget(documents)
        for id_ in receipt.documents:
            was = contributions[id_]
            blanked = tuple(replace(p, text="", title="") for p in was.passages)
            self.write([replace(was, passages=blanked)], model=self.statistics().model)
        return receipt


class HearsHiddenVoices(SqliteStore):
    """Checks that a fact may be seen, then tells it in the words of whoever is trusted most."""

    def facts_of_entities(
        self,
        entities: Sequence[str],
        *,
        per_entity: int,
        predicates: Sequence[str] = (),
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = EVERYTHING,
    ) -> Mapping[str, tuple[Fact, ...]]:
        found = super().facts_of_entities(
            entities,
            per_entity=per_entity,
            predicates=predicates,
            statuses=statuses,
            as_of=as_of,
            where=where,
        )
        told = self.facts([f.id for fs in found.values() for f in fs], statuses=statuses, as_of=as_of)
        return {e: tuple(told[f.id] for f in fs) for e, fs in found.items()}


class WritesByHalves(SqliteStore):
    """Writes one contribution after another, so that a bad one leaves the ones before it."""

    def write(
        self,
        contributions: Sequence[Contribution],
        *,
        model: str | None,
        fingerprints: Mapping[str, str] = NONE,
        instead_of: Sequence[str] = (),
    ) -> int:
        written = 0
        for half in [[c] for c in contributions] or [[]]:
            written += super().write(half, model=model, fingerprints=fingerprints, instead_of=instead_of)
        return written


class BreaksTiesByArrival(SqliteStore):
    """Puts equals in whatever order they come."""

    def lexical(self, query: str, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        found = super().lexical(query, top_k=10 * top_k, where=where)
        return tuple(sorted(found, key=lambda s: (-s.score, s.id[::-1])))[:top_k]


class IntroducesHiddenNames(SqliteStore):
    """Finds names that look alike, whoever asks."""

    def alike(
        self, asked: Mapping[str, Sequence[str]], *, most: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Alike, ...]]:
        return super().alike(asked, most=most)


class LooksNowhere(SqliteStore):
    """Says that nothing is left without having looked."""

    def remains(self, receipt: Receipt) -> tuple[str, ...]:
        return ()
