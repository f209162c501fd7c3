"""Turn messages into documents, one for each turn, and store those that are new.

The identity of a turn is its scope and the id of the message, else its role, speaker, text and how often that text was
in the call before. So a transcript that is added again changes nothing. Without a session, the day takes its place. A
turn keeps its text without the name of its speaker. Its position grows with its time: adding one reads no other turn.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from waylore.indexing import pipeline
from waylore.protocols import Embedder, Extractor
from waylore.store.protocol import Store
from waylore.store.rows import to_microseconds
from waylore.types.author import Author
from waylore.types.identity import add_scope, identity
from waylore.types.knowledge import Document, IndexedDocument, NewFact
from waylore.types.messages import Message
from waylore.types.results import RememberReport

BATCH_TURNS = 256  # in one transaction


@dataclass(frozen=True, slots=True)
class Turn:
    """A message with the document that it becomes; `position` is its place in the session."""

    message: Message
    document: Document
    position: int


def remember_turns(
    store: Store,
    embedder: Embedder | None,
    extractor: Extractor | None,
    turns: Sequence[Turn],
    facts: Sequence[NewFact],
    *,
    author: Author,
) -> RememberReport:
    """Store the turns that are new, the last one with the given facts, and report them."""
    report = RememberReport()
    for batch in pipeline.split_into_batches(turns, BATCH_TURNS):
        known = store.digests([turn.document.id for turn in batch])
        indexed = [
            _index_turn(turn, facts if turn is turns[-1] else (), extractor)
            for turn in batch
            if turn.document.id not in known
        ]
        pipeline.write(store, embedder, indexed, author=author)
        report += _report(batch, indexed)
    return report


def make_turns(messages: Sequence[Message], frame: Document, now: datetime) -> list[Turn]:
    """Return the turns of messages. A message without a time was said at that of the one before, else of the call."""
    seen: Counter[str] = Counter()
    said = frame.at or now
    made = []
    for place, message in enumerate(messages):
        said = message.at or said
        own = identity("turn", message.id) if message.id else _identify(message, seen)
        document = replace(frame, at=said, source="conversation")
        id_ = identity("document", "turn", add_scope(own, (*pipeline.get_scope(document), *sorted(frame.labels))))
        made.append(Turn(message, replace(document, id=id_), to_microseconds(said) + place))
    return made


def _identify(message: Message, seen: Counter[str]) -> str:
    own = identity("turn", message.role, message.name, message.content)
    seen[own] += 1
    return identity("turn", own, str(seen[own]))


def _index_turn(turn: Turn, facts: Sequence[NewFact], extractor: Extractor | None) -> IndexedDocument:
    message = turn.message
    indexed = pipeline.index_text(turn.document, message.content, facts, extractor=extractor)
    speaker = message.name or (turn.document.user if message.role == "user" else turn.document.agent) or message.role
    return replace(
        indexed,
        passages=tuple(
            replace(passage, speaker=speaker, role=message.role, position=turn.position) for passage in indexed.passages
        ),
    )


def _report(turns: Sequence[Turn], indexed: Sequence[IndexedDocument]) -> RememberReport:
    return RememberReport(
        documents=tuple(turn.document.id for turn in turns),
        new=len(indexed),
        known=len(turns) - len(indexed),
        cut=sum(len(document.passages) > 1 for document in indexed),
        facts=tuple(fact for document in indexed for fact in document.facts),
    )
