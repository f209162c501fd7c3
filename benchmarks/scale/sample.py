"""A sample of documents whose rare words are marked, so that each copy of it has words of its own.

A word that is rare in the sample gets a mark that counts the copies. More frequent words are shared by ten or a
hundred copies, frequent ones by all. So a name is found only in the copies that it belongs to, an entity that
many copies name becomes a hub, and a word occurs in a realistic number of passages. It does not touch a
database.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from benchmarks.corpus import Matrix
from waylore.names import keys
from waylore.store.rows import join_searchable_text, list_names
from waylore.text import STOP_WORDS, terms
from waylore.types.identity import entity_id, fact_id
from waylore.types.knowledge import Entity, Fact, IndexedDocument, Passage

MARKS = {1: "qx", 10: "qy", 100: "qz"}  # suffix of a word by the number of copies that share it
# If a word is in fewer passages of the sample than the key, the value is the number of copies that share it.
GRAIN_BELOW_PASSAGES = {3: 1, 6: 10, 20: 100}
WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Sample:
    """Documents with their vectors, one for each page, and the number of copies to make."""

    contributions: Sequence[IndexedDocument]
    model: str
    copies: int = 1
    tenants: int = 1
    pool: Matrix | None = None  # vectors to mix those of copies from; None takes the sample's

    @cached_property
    def grains(self) -> dict[str, int]:
        """The number of copies that share a word, for each word that not all copies share."""
        texts = [join_searchable_text(p.title, p.text) for c in self.contributions for p in c.passages]
        names = {e.name for c in self.contributions for e in c.entities}
        seen = Counter(word for text in texts for word in set(WORD.findall(text.casefold())))
        seen.update({word: 0 for name in names for word in WORD.findall(name.casefold())})
        tiers = [
            (word, next((g for most, g in GRAIN_BELOW_PASSAGES.items() if n < most), None)) for word, n in seen.items()
        ]
        return {w: g for w, g in tiers if g is not None and g < self.copies and w not in STOP_WORDS}

    def mark(self, text: str) -> str:
        """Mark the words of a text for the first copy."""
        return WORD.sub(lambda word: self._mark_word(word.group()), text)

    def _mark_word(self, word: str) -> str:
        grain = self.grains.get(word.casefold())
        return f"{word}{MARKS[grain]}0000" if grain else word

    def get_grain(self, text: str) -> int:
        """Return the number of copies that share a marked text."""
        return next((g for g, mark in MARKS.items() if g < self.copies and f"{mark}0000" in text), self.copies)

    def rename_copy(self, text: str, copy: int) -> str:
        """Change the marks of a text to those of another copy."""
        for grain, mark in MARKS.items():
            text = text.replace(f"{mark}0000", f"{mark}{copy // grain:04d}")
        return text

    @cached_property
    def names(self) -> dict[str, str]:
        """The marked names of entities by id."""
        return {e.id: e.name for c in self.pages for e in c.entities}

    @cached_property
    def entity_grains(self) -> dict[str, int]:
        """The number of copies that share an entity, by id."""
        return {id_: self.get_grain(name) for id_, name in self.names.items()}

    @cached_property
    def fact_grains(self) -> dict[str, int]:
        """The number of copies that share a fact, by id."""
        grains = self.entity_grains
        return {fact.id: min(grains[end] for end in fact.ends) for page in self.pages for fact in page.facts}

    @cached_property
    def strings(self) -> list[tuple[str, str]]:
        """All marked strings that a store knows only by a hash: terms, names, keys of names."""
        passages = [join_searchable_text(p.title, p.text) for c in self.pages for p in c.passages]
        names = set(self.names.values())
        strings = {
            "term": {term for text in passages for term in terms(text)},
            "name": {name for one in names for name in list_names(one, ())},
            "key": {key for name in names for key in keys(name)},
        }
        return [(kind, text) for kind, texts in strings.items() for text in sorted(texts)]

    @cached_property
    def pages(self) -> list[IndexedDocument]:
        """The marked documents."""
        return [self._mark_page(c) for c in self.contributions]

    def _mark_page(self, page: IndexedDocument) -> IndexedDocument:
        entities = {e.id: self._mark_entity(e) for e in page.entities}
        return replace(
            page,
            document=replace(page.document, title=self.mark(page.document.title)),
            passages=tuple(self._mark_passage(p) for p in page.passages),
            entities=tuple(entities.values()),
            mentions=tuple(replace(m, entity_id=entities[m.entity_id].id) for m in page.mentions),
            facts=tuple(self._mark_fact(f, entities) for f in page.facts),
        )

    def _mark_passage(self, passage: Passage) -> Passage:
        return replace(passage, title=self.mark(passage.title), text=self.mark(passage.text))

    def _mark_entity(self, entity: Entity) -> Entity:
        name = self.mark(entity.name)
        return replace(entity, id=entity_id(name), name=name)

    def _mark_fact(self, fact: Fact, entities: dict[str, Entity]) -> Fact:
        subject, object_ = entities[fact.subject_id], entities.get(fact.object_id)
        value = object_.name if object_ else fact.object
        ends = (subject.id, fact.predicate, object_.id if object_ else value)
        return replace(
            fact,
            id=fact_id(*ends, is_entity=object_ is not None),
            subject_id=subject.id,
            subject=subject.name,
            object=value,
            object_id=object_.id if object_ else "",
            statement=self.mark(fact.statement),
        )


def thin_page(page: IndexedDocument, facts: int) -> IndexedDocument:
    """Return the page with its first facts, and with the entities of these facts and of the page itself."""
    kept = page.facts[:facts]
    own = {m.entity_id for m in page.mentions if m.is_own}
    entities = own | {end for fact in kept for end in fact.ends}
    return replace(
        page,
        facts=kept,
        entities=tuple(e for e in page.entities if e.id in entities),
        mentions=tuple(m for m in page.mentions if m.entity_id in entities),
    )
