"""What an agent's tools answer: short shapes for a model to read, each as JSON and as a text.

`wire` has the whole of a hit, which takes a thousand tokens; here it is its text, its path and its explanation
in lines. Every answer fits into the tokens that its caller allows, and `left_out` says what did not. Nothing
here asks the memory anything: `tools` does.
"""

from collections.abc import Iterable, Iterator, Sized
from datetime import datetime
from typing import NamedTuple

from pydantic import Field

from waylore.surfaces.tools.fit import at_word, cut, first
from waylore.surfaces.wire import Receipt, Wire
from waylore.types.knowledge import Contribution, Document, Fact, Passage, Scalar, Source
from waylore.types.results import Receipt as Gone
from waylore.types.search import Found, Hit

TITLE = 40  # tokens of a title or an address
MORE = 8  # what stands around an answer's main part may take this part of the budget, each


class Answer(Wire):
    """What a tool answers; as a text it is its own JSON, unless it says otherwise."""

    def readable(self) -> str:
        """The answer for whoever reads."""
        return self.model_dump_json()


class BriefHit(Wire):
    """A passage that bears on the question."""

    score: float
    title: str
    uri: str
    text: str
    path: str = Field(description="how the graph led to it, over facts; empty if it did not")
    why: list[str] = Field(description="what each search gave to its score, and where it placed it")
    passage_id: str
    document_id: str


class Searched(Answer):
    """Hits, best first, and what the graph knows of the question."""

    hits: list[BriefHit]
    entities: list[str] = Field(description="what the question names")
    facts: list[str] = Field(description="what is known of that, strongest first")
    skipped: str = Field(description="why the graph was not used; empty if it was")
    missing: str = Field(description="what could not be searched")
    left_out: str = Field(description="what did not fit into max_tokens")

    def readable(self) -> str:
        """Hits under their titles, then facts."""
        return "\n\n".join(
            filter(None, [self._head(), *self._hits(), _listed("Facts", self.facts), *self._ends()])
        )

    def _head(self) -> str:
        named = f" The question names {', '.join(self.entities)}." if self.entities else ""
        if not self.hits:
            return f"{'No hit fits' if self.left_out else 'Nothing was found'}.{named}"
        return f"{len(self.hits)} passages, best first.{named}"

    def _hits(self) -> Iterator[str]:
        for mark, hit in enumerate(self.hits, 1):
            where = f"passage {hit.passage_id} of document {hit.document_id} {hit.uri}".rstrip()
            path = f"path: {hit.path}\n" if hit.path else ""
            why = f"why: {hit.score:.4f} = {' + '.join(hit.why)}"
            yield f"[{mark}] {hit.title}\n{where}\n{path}{why}\n\n{hit.text}"

    def _ends(self) -> Iterator[str]:
        yield f"The graph was left out: {self.skipped}." if self.skipped else ""
        yield f"Not searched: {self.missing}" if self.missing else ""
        yield self.left_out


class Read(Answer):
    """A document, or one passage of it: its text from `offset` on, and the facts that it states."""

    document_id: str
    passage_id: str = Field(description="empty where this is the whole document")
    title: str
    uri: str
    source: Source
    recorded_at: datetime
    metadata: dict[str, Scalar | list[Scalar]]
    text: str
    facts: list[str]
    next_offset: int | None = Field(description="read on from here; null at the end")
    left_out: str = Field(description="what did not fit into max_tokens")

    def readable(self) -> str:
        """The text under its title, then its facts."""
        what = f"passage {self.passage_id} of " if self.passage_id else ""
        head = f"{self.title}\n{what}document {self.document_id} {self.uri}".strip()
        about = f"{self.source}, {self.recorded_at:%Y-%m-%d}"
        known = "; ".join(f"{key}: {value}" for key, value in self.metadata.items())
        return "\n\n".join(
            filter(None, [f"{head}\n{about}", known, self.text, _listed("Facts", self.facts), self.left_out])
        )


class Said(NamedTuple):
    """What there is to read: a document, or one passage of it (then its id), the text and the facts of it."""

    document: Document
    passage_id: str
    text: str
    facts: tuple[Fact, ...]


class Remembered(Answer):
    """A memory that was added, or one that was there already and says the same."""

    document_id: str
    title: str
    passages: int
    facts: list[str] = Field(description="what was understood, as facts")

    def readable(self) -> str:
        """What is remembered, and under which id."""
        return "\n\n".join(
            filter(None, [f"Remembered as document {self.document_id}.", _listed("Facts", self.facts)])
        )


class Forgotten(Answer):
    """What went: the documents, and how much that nothing else supports."""

    documents: int
    passages: int
    entities: int
    facts: int
    receipt: Receipt | None = Field(description="the identities of all that went; null if they are too many")

    def readable(self) -> str:
        """What went, in a line."""
        went = f"{self.documents} documents with {self.passages} passages, {self.facts} facts"
        return f"Forgotten: {went} and {self.entities} entities that nothing else supports."


def searched(found: Found, tokens: int, hits: int) -> Searched:
    """An answer with the first so many hits."""
    more = tokens // MORE
    return Searched(
        hits=[_brief(hit, tokens) for hit in found.hits[:hits]],
        entities=first((entity.name for entity in found.entities), more),
        facts=first(_facts(found.facts), more),
        skipped=cut(found.skipped, more),
        missing=cut("; ".join(found.missing), more),
        left_out=_hits_left(len(found.hits) - hits, tokens),
    )


def said(told: Contribution, passage: Passage | None = None) -> Said:
    """A document with its text put together, or one passage of it."""
    if passage is None:
        return Said(told.document, "", _text(told.passages), told.facts)
    facts = tuple(fact for fact in told.facts if fact.passage_id == passage.id)
    return Said(told.document, passage.id, passage.text, facts)


def read(what: Said, tokens: int, offset: int, length: int) -> Read:
    """So many characters of a document, or of one passage of it."""
    end = at_word(what.text, offset, min(offset + length, len(what.text)))
    facts = first(_facts(what.facts), tokens // MORE)
    metadata = _metadata(what.document, tokens // MORE)
    return Read(
        document_id=what.document.id,
        passage_id=what.passage_id,
        title=cut(what.document.title, TITLE),
        uri=cut(what.document.uri, TITLE),
        source=what.document.source,
        recorded_at=what.document.recorded_at,
        metadata=metadata,
        text=what.text[offset:end],
        facts=facts,
        next_offset=end if end < len(what.text) else None,
        left_out=_rest(what, end, facts, metadata),
    )


def remembered(told: Contribution, tokens: int) -> Remembered:
    """What was understood of a memory."""
    return Remembered(
        document_id=told.document.id,
        title=cut(told.document.title, TITLE),
        passages=len(told.passages),
        facts=first(_facts(told.facts), tokens // 2),
    )


def forgotten(gone: Gone, with_receipt: int) -> Forgotten:
    """What went, with its receipt if asked for."""
    return Forgotten(
        documents=len(gone.documents),
        passages=len(gone.passages),
        entities=len(gone.entities),
        facts=len(gone.facts),
        receipt=Receipt.of(gone) if with_receipt else None,
    )


def _text(passages: Iterable[Passage]) -> str:
    """The text that passages were cut from: what two of them share is said once."""
    parts: list[str] = []
    end = 0
    for passage in sorted(passages, key=lambda p: (p.position, p.start, p.id)):
        shared = end - passage.start if passage.start < end <= passage.end else 0
        parts.append(passage.text[shared:] if shared else f"\n\n{passage.text}")
        end = passage.end
    return "".join(parts).removeprefix("\n\n")


def _rest(what: Said, end: int, facts: Sized, metadata: Sized) -> str:
    """What an answer leaves out, and how to get it."""
    beyond = len(what.text) - end
    left = [
        f"{beyond} more characters, from offset={end} on" if beyond > 0 else "",
        f"{len(what.facts) - len(facts)} facts" if len(what.facts) > len(facts) else "",
        "metadata" if len(metadata) < len(what.document.metadata) else "",
    ]
    return f"Left out: {', '.join(filter(None, left))}." if any(left) else ""


def _brief(hit: Hit, tokens: int) -> BriefHit:
    return BriefHit(
        score=hit.score,
        title=cut(hit.passage.title or hit.document.title, TITLE),
        uri=cut(hit.document.uri, TITLE),
        text=cut(hit.passage.text, tokens // 2),
        path=str(hit.path or ""),
        why=[f"{p.share:.4f} {p}" for p in hit.placements],
        passage_id=hit.passage.id,
        document_id=hit.document.id,
    )


def _metadata(document: Document, tokens: int) -> dict[str, Scalar | list[Scalar]]:
    """The first pairs that fit."""
    pairs = list(document.metadata.items())
    fitting = len(first((f"{key}: {value}" for key, value in pairs), tokens))
    return {key: list(value) if isinstance(value, list | tuple) else value for key, value in pairs[:fitting]}  # type: ignore[misc]


def _hits_left(count: int, tokens: int) -> str:
    if not count:
        return ""
    return f"Left out: {count} more hits. Raise max_tokens from {tokens}, or ask for less with max_results."


def _facts(facts: Iterable[Fact]) -> Iterator[str]:
    """Facts as lines, each once."""
    return iter(dict.fromkeys(map(str, facts)))


def _listed(heading: str, lines: Iterable[str]) -> str:
    shown = "\n".join(f"- {line}" for line in lines)
    return f"{heading}:\n{shown}" if shown else ""
