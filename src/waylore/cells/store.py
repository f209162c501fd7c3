"""A store over several stores: one collection wherever it lives, or several searched as one.

Reading verbs ask every collection at once and make one answer of what they say (`federated_merging`), so a walk
goes on from one cell to another: identities are the same everywhere. Writing verbs concern one collection: the
only one, or the one that is marked. This module is the verbs; `federated_members` carries them out. It knows
neither databases nor files, only the Store protocol and the catalogue.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from waylore.cells import facts as telling
from waylore.cells import merge as merging
from waylore.cells.catalogue.protocol import Placed
from waylore.cells.members import Federation, Members, Verb
from waylore.errors import ConfigError, NotFound
from waylore.store import similar_names
from waylore.store.partial import partial_answers
from waylore.store.protocol import NONE, Store
from waylore.store.reads import run_request
from waylore.store.requests import Ask, ask
from waylore.types.knowledge import (
    LIVE,
    Alike,
    Contribution,
    Document,
    Embeddable,
    Entity,
    Fact,
    Mention,
    Passage,
    Status,
    Vector,
)
from waylore.types.results import Receipt, Statistics
from waylore.types.search import EVERYTHING, Filter, Ranking

T = TypeVar("T")
EVERY, AND, WRITTEN = "*", ",", "+"  # in the names of collections that are opened together


def open_federated(
    federation: Federation, collections: str, *, closing: Callable[[], None] = lambda: None
) -> "FederatedStore":
    """One collection, made if need be, or several as one: `team,library`, or `*`, or `+team,*` to write one."""
    names = [name.strip() for name in collections.split(AND)]
    is_one = len(names) == 1 and names != [EVERY]
    written = [name.removeprefix(WRITTEN) for name in names if is_one or name.startswith(WRITTEN)]
    if len(written) > 1:
        raise ConfigError(f"{' and '.join(written)} cannot be written at once: mark one of them with {WRITTEN}")
    for name in written:
        federation.catalogue.place(name)
    named = sorted({name.removeprefix(WRITTEN) for name in names} - {EVERY})
    unknown = set(named) - federation.catalogue.placed(named).keys()
    if unknown:
        raise NotFound(f"no collection {', '.join(sorted(unknown))}: open it alone to make it")
    members = Members(federation, None if EVERY in names else named, "".join(written))
    return FederatedStore(members, closing)


class FederatedStore:
    """Collections in cells, as one store."""

    def __init__(self, members: Members, closing: Callable[[], None] = lambda: None) -> None:
        self._members = members
        self._closing = closing

    # -- writing ---------------------------------------------------------------------------------------

    def write(
        self,
        contributions: Sequence[Contribution],
        *,
        model: str | None,
        fingerprints: Mapping[str, str] = NONE,
        instead_of: Sequence[str] = (),
    ) -> int:
        """Write all of the contributions or none; return how many were new or changed."""
        return self._members.write(
            lambda s: s.write(contributions, model=model, fingerprints=fingerprints, instead_of=instead_of),
            both=max,
            stray=lambda store: store.forget([c.document.id for c in contributions]),
        )

    def fingerprints(self, files: Sequence[str]) -> Mapping[str, str]:
        """What these files were when they were last read, by the collection that is written, if one is."""
        return self._one(lambda _, s: s.fingerprints(files), merging.first, only=self._members.written)

    def digests(self, documents: Sequence[str]) -> Mapping[str, str]:
        """What is there of these documents, in the collection that is written, if one is."""
        return self._one(lambda _, s: s.digests(documents), merging.first, only=self._members.written)

    def forget(self, documents: Sequence[str]) -> Receipt:
        """Remove documents with all that nothing else supports, and say what went."""
        return self._members.write(lambda s: s.forget(documents), both=merging.receipts)

    def remains(self, receipt: Receipt) -> tuple[str, ...]:
        """What is left of what a receipt says went, a line each."""
        return self._members.write(lambda s: s.remains(receipt), both=_last)

    def compact(self) -> None:
        """Write everything anew, so that nothing is kept but what is there."""
        self._members.write(lambda s: s.compact(), both=_last)

    def touch(self, *, passages: Sequence[str] = (), facts: Sequence[str] = (), at: datetime) -> None:
        """Count a use of each, in every collection that has it and answers."""
        with partial_answers():
            self._members.ask(lambda _, s: s.touch(passages=passages, facts=facts, at=at), tries=1)

    # -- searching -------------------------------------------------------------------------------------

    def dense(self, vector: Vector, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Passages by cosine, best first."""
        return self._ranked(lambda _, s: s.dense(vector, top_k=top_k, where=where), top_k)

    def lexical(self, query: str, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Passages by BM25, best first, each by the statistics of its own collection."""
        return self._ranked(lambda _, s: s.lexical(query, top_k=top_k, where=where), top_k)

    def nearest_entities(self, vector: Vector, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Entities by the cosine of their names, best first."""
        return self._ranked(lambda _, s: s.nearest_entities(vector, top_k=top_k, where=where), top_k)

    def entities_by_names(
        self, names: Sequence[str], *, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Entity, ...]]:
        """Entities that have one of these names or aliases; names are normalised before they are compared."""
        if self._members.is_one:
            return self._members.ask(lambda _, s: s.entities_by_names(names, where=where))[0]
        permitted = replace(where, metadata={})  # a name finds whoever has it, whichever document says so
        found = self._members.ask(lambda _, s: s.entities_by_names(names, where=permitted))
        by_name = merging.identities([{name: [e.id for e in es] for name, es in f.items()} for f in found])
        known = self.entities(list({id_ for ids in by_name.values() for id_ in ids}), where=where)
        named = {name: tuple(known[id_] for id_ in ids if id_ in known) for name, ids in by_name.items()}
        return {name: entities for name, entities in named.items() if entities}

    def keyed(
        self, keys: Sequence[str], *, most: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[str, ...]]:
        """Entities whose names have one of these keys, by identity."""
        return self._one(lambda _, s: s.keyed(keys, most=most, where=where), merging.identities)

    def alike(
        self, asked: Mapping[str, Sequence[str]], *, most: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Alike, ...]]:
        """For each entity that asks with keys, the others whose names have one of them, wherever they live."""
        having = self.keyed(similar_names.wanted(asked), most=most + 1, where=where) if asked else {}
        others = similar_names.others(asked, having, most=most)
        every = [*others, *(id_ for found in others.values() for id_ in found)]
        return similar_names.alike(others, self.entities(every, where=where, vectors=True)) if every else {}

    # -- the graph -------------------------------------------------------------------------------------

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
        """Facts with one of these at either end, strongest first, as the most trusted visible voice has it."""
        held = telling.Held(statuses, as_of, where)
        return telling.facts_of_entities(self._members, entities, per_entity, predicates, held)

    def facts_of_passages(
        self,
        passages: Sequence[str],
        *,
        per_passage: int,
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = EVERYTHING,
    ) -> Mapping[str, tuple[Fact, ...]]:
        """Facts that these passages state, strongest first, each as the passage itself states it."""
        held = telling.Held(statuses, as_of, where)
        return telling.facts_of_passages(self._members, passages, per_passage, held)

    def passages_of_entities(
        self, entities: Sequence[str], *, per_entity: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Mention, ...]]:
        """Where entities are mentioned: their own passages first, then by how often."""
        return self._one(
            lambda _, s: s.passages_of_entities(entities, per_entity=per_entity, where=where),
            partial(merging.mentions, most=per_entity, asked=entities),
        )

    def nearby(
        self,
        vector: Vector,
        entities: Sequence[str],
        *,
        per_entity: int,
        keys: Sequence[str] = (),
        most: int = 0,
        where: Filter = EVERYTHING,
    ) -> tuple[Mapping[str, tuple[Mention, ...]], Mapping[str, float]]:
        """What `passages_of_entities` says, and how near each of those passages is to a vector."""
        asked = ask(Store.nearby, vector, entities, per_entity=per_entity, keys=keys, most=most, where=where)
        found = self._members.ask(lambda _, s: run_request(s, asked))
        return found[0] if self._members.is_one else merging.nearby(found, most=per_entity)

    def entities_of_passages(
        self, passages: Sequence[str], *, per_passage: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Mention, ...]]:
        """What passages mention: what they are about first, then by how often."""
        return self._one(
            lambda _, s: s.entities_of_passages(passages, per_passage=per_passage, where=where),
            partial(merging.mentions, most=per_passage, asked=passages),
        )

    # -- fetching --------------------------------------------------------------------------------------

    def documents(self, ids: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Document]:
        """Documents by identity."""
        return self._one(lambda _, s: s.documents(ids, where=where), merging.first)

    def listed(
        self,
        *,
        under: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1_000,
        where: Filter = EVERYTHING,
    ) -> tuple[Document, ...]:
        """Documents whose address begins with `under`, by address and identity, from `after` on."""
        return self._one(
            lambda _, s: s.listed(under=under, after=after, limit=limit, where=where),
            partial(merging.listed, limit=limit),
        )

    def passages(
        self, ids: Sequence[str], *, where: Filter = EVERYTHING, vectors: bool = False
    ) -> Mapping[str, Passage]:
        """Passages by identity, with their vectors if asked for."""
        return self._one(lambda _, s: s.passages(ids, where=where, vectors=vectors), merging.first)

    def sources(self, passages: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Document]:
        """The documents that passages are of, by the identity of the passage."""
        return self._one(lambda _, s: s.sources(passages, where=where), merging.first)

    def cosines(
        self, vector: Vector, passages: Sequence[str], *, where: Filter = EVERYTHING
    ) -> Mapping[str, float]:
        """How near these passages are to a vector; those without a vector are left out."""
        return self._one(lambda _, s: s.cosines(vector, passages, where=where), merging.first)

    def contributions(self, ids: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Contribution]:
        """Documents by identity, each with all that it says."""
        return self._one(lambda _, s: s.contributions(ids, where=where), merging.first)

    def entities(
        self, ids: Sequence[str], *, where: Filter = EVERYTHING, vectors: bool = False
    ) -> Mapping[str, Entity]:
        """Entities by identity, described by what the caller may see, with their vectors if asked for."""
        return self._one(lambda _, s: s.entities(ids, where=where, vectors=vectors), merging.entities)

    def facts(
        self,
        ids: Sequence[str],
        *,
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = EVERYTHING,
    ) -> Mapping[str, Fact]:
        """Facts by identity, each as its most trusted visible voice has it."""
        return telling.facts(self._members, ids, telling.Held(statuses, as_of, where))

    # -- several at once -------------------------------------------------------------------------------

    def together(self, asks: Sequence[Ask[Any]]) -> Sequence[Any]:
        """Answers to several reading verbs: at once from a single collection, else one after another."""
        if not self._members.is_one:
            return [run_request(self, each) for each in asks]
        return self._members.ask(lambda p, s: [_placed(p, answer) for answer in s.together(asks)])[0]

    # -- the collection --------------------------------------------------------------------------------

    def version(self) -> int:
        """A number that grows with every write by anyone, and with every move."""
        return self.statistics().version

    def statistics(self) -> Statistics:
        """How much there is, and the embedding model; where models differ all are named, and none will do."""
        return self._one(lambda placed, s: _placed(placed, s.statistics()), merging.statistics)

    def export(self) -> Iterator[Contribution]:
        """Everything, a document at a time, by identity; what is in several collections comes once."""
        yield from merging.exports([store.export() for store in self._members.each()])

    def close(self) -> None:
        """Let go of every connection."""
        self._members.close()
        self._closing()

    # -- another embedding model -----------------------------------------------------------------------

    def unembedded(self, model: str, *, limit: int) -> tuple[Embeddable, ...]:
        """Passages, entities and facts that have no vector of this model staged yet."""
        return self._members.write(lambda s: s.unembedded(model, limit=limit), both=_last)

    def stage(self, items: Sequence[Embeddable], *, model: str) -> None:
        """Keep vectors of a model that is not the collection's yet; a move leaves them behind."""
        self._members.write(lambda s: s.stage(items, model=model), both=_last)

    def adopt(self, model: str) -> bool:
        """Make the staged vectors the collection's own; False if some are still unembedded."""
        return self._members.write(lambda s: s.adopt(model), both=_last)

    # -- asking ----------------------------------------------------------------------------------------

    def _one(self, verb: Verb[T], merge: Callable[[Sequence[T]], T], *, only: str = "") -> T:
        """The answer of the only collection, or one made of several."""
        answers = self._members.ask(verb, only=only)
        return answers[0] if self._members.is_one else merge(answers)

    def _ranked(self, verb: Verb[Ranking], top_k: int) -> Ranking:
        return self._one(verb, partial(merging.rankings, top_k=top_k))


def _placed(placed: Placed, answer: T) -> T:
    """What a store says of a collection here: its version goes on from where it was before."""
    if not isinstance(answer, Statistics):
        return answer
    return replace(answer, version=placed.base + answer.version)


def _last(_: T, last: T) -> T:
    return last
