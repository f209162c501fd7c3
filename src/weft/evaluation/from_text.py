"""A benchmark set indexed from its text alone: what an extractor finds takes the place of the set's triples.

Names that are titles of other pages are known, and are recognised wherever they occur, as a store recognises
what it holds. The set's triples and entities are dropped unread; documents, passages and questions stay.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from weft.evaluation.datasets import Dataset
from weft.indexing.extraction import with_known
from weft.models import Extraction, Extractor
from weft.text import normalise, occurrences, without_aside
from weft.types import Claim, Contribution, Entity, Fact, Mention, Passage, entity_id, fact_id


def from_text(dataset: Dataset, extractor: Extractor, *, match_titles: bool = True) -> Dataset:
    """The set with what an extractor finds in titles and texts, and with titles found in other pages."""
    titles = {_own_name(page.document.title) for page in dataset.contributions} - {""}
    known = titles if match_titles else set()
    return replace(dataset, contributions=tuple(_page(c, extractor, known) for c in dataset.contributions))


def _page(page: Contribution, extractor: Extractor, known: Collection[str]) -> Contribution:
    """A page with what its passages say and name."""
    found = extractor.extract(page.document, page.passages)
    entities: dict[str, Entity] = {}
    mentions: list[Mention] = []
    facts: dict[str, Fact] = {}
    for passage, extracted in zip(page.passages, found, strict=True):
        said = with_known(extracted, page.document, passage, known)
        counts, own = _counted(passage, said), _own_name(passage.title)
        entities |= {entity_id(name): Entity(entity_id(name), name) for name in counts}
        mentions += [Mention(entity_id(name), passage.id, n, name == own) for name, n in counts.items()]
        facts |= {fact.id + passage.id: fact for fact in (_fact(claim, passage) for claim in said.claims)}
    return Contribution(
        page.document, page.passages, tuple(entities.values()), tuple(mentions), tuple(facts.values())
    )


def _counted(passage: Passage, said: Extraction) -> Counter[str]:
    """How often a passage has each name; what it is about counts twice more, as with the set's triples."""
    ends = [end for c in said.claims for end in ((c.subject,) if c.is_value else (c.subject, c.object))]
    text = normalise(passage.text)
    names = {normalise(name) for name in (*said.names, *ends)} - {""}
    counts = Counter({name: max(occurrences(name, text), 1) for name in sorted(names)})
    if own := _own_name(passage.title):
        counts[own] += 2
    return counts


def _own_name(title: str) -> str:
    return normalise(without_aside(title))


def _fact(claim: Claim, passage: Passage) -> Fact:
    subject, is_entity = normalise(claim.subject), not claim.is_value
    object_ = normalise(claim.object) if is_entity else claim.object
    object_id = entity_id(object_) if is_entity else ""
    return Fact(
        id=fact_id(entity_id(subject), claim.predicate, object_id or object_, is_entity=is_entity),
        subject_id=entity_id(subject),
        subject=subject,
        predicate=claim.predicate,
        object=object_,
        object_id=object_id,
        passage_id=passage.id,
        statement=claim.statement,
        weight=claim.weight,
        confidence=claim.confidence,
    )
