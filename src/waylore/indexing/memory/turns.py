"""Turn messages into documents, one for each turn, and store the new ones.

The identity of a turn is its scope and the id of the message. Without an id, it is its role, speaker, text and the
number of earlier occurrences of the text in the call. So adding a transcript again changes nothing. Without a session,
the day takes its place. The text of a turn is stored without the name of its speaker. Its position grows with its time,
so adding a turn reads no other turn.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from waylore.dates import to_local
from waylore.indexing import pipeline
from waylore.indexing.memory.repeats import outlasts
from waylore.indexing.memory.statements import corrects, find_statements
from waylore.protocols import Embedder, Extraction, Extractor
from waylore.relations import get_relation_name, to_denial
from waylore.store.protocol import Store
from waylore.store.rows import to_microseconds
from waylore.text import normalise
from waylore.types.author import Author
from waylore.types.identity import add_scope, entity_id, identity
from waylore.types.knowledge import EPOCH, USER_NAME, Document, IndexedDocument, NewFact
from waylore.types.messages import Message
from waylore.types.results import RememberReport
from waylore.types.search import Filter

BATCH_TURNS = 256  # turns in one transaction


@dataclass(frozen=True, slots=True)
class Turn:
    """A message with its document; `position` is its place in the session, `said` its local time."""

    message: Message
    document: Document
    position: int
    said: datetime

    @property
    def speaker(self) -> str:
        """The speaker of the turn."""
        return pipeline.get_speaker(self.document, self.message)

    @property
    def person(self) -> str:
        """The person that "user" means: the speaker, or the user to whom an agent speaks."""
        return self.speaker if self.message.role == "user" else self.document.user or USER_NAME


def remember_turns(
    store: Store,
    embedder: Embedder | None,
    extractor: Extractor | None,
    turns: Sequence[Turn],
    facts: Sequence[NewFact],
    *,
    author: Author,
) -> RememberReport:
    """Store the new turns, the last one with the given facts, and report them."""
    report = RememberReport()
    for batch in pipeline.split_into_batches(turns, BATCH_TURNS):
        known = store.documents([turn.document.id for turn in batch], where=Filter(user=batch[0].document.user))
        new = [turn for turn in batch if not (was := known.get(turn.document.id)) or not outlasts(was, turn.document)]
        stated = read_statements(store, [turn for turn in new if not facts or turn is not turns[-1]])
        indexed = [
            _index_turn(turn, facts if turn is turns[-1] else (), stated.get(turn.document.id), extractor)
            for turn in new
        ]
        pipeline.write(store, embedder, indexed, author=author)
        report += _report(batch, indexed)
    return report


def make_turns(messages: Sequence[Message], frame: Document, now: datetime) -> list[Turn]:
    """Return the turns of messages. A message without a time has the time of the previous one, else of the call.

    Days that a message names without a date, such as "yesterday", are days in the timezone of `now`.
    """
    seen: Counter[str] = Counter()
    said = frame.at or now
    made = []
    for place, message in enumerate(messages):
        said = message.at or said
        own = identity("turn", message.id) if message.id else _identify(message, seen)
        document = replace(frame, at=said, source="conversation")
        id_ = identity("document", "turn", add_scope(own, (*pipeline.get_scope(document), *sorted(frame.labels))))
        local = to_local(said, now.tzinfo or UTC)
        made.append(Turn(message, replace(document, id=id_), to_microseconds(said) + place, local))
    return made


def _identify(message: Message, seen: Counter[str]) -> str:
    own = identity("turn", message.role, message.name, message.content)
    seen[own] += 1
    return identity("turn", own, str(seen[own]))


def _index_turn(
    turn: Turn, facts: Sequence[NewFact], stated: Extraction | None, extractor: Extractor | None
) -> IndexedDocument:
    given = [_resolve_user(fact, turn) for fact in facts]
    document, message = turn.document, turn.message
    return pipeline.index_message(document, message, turn.position, given, extractor=extractor, stated=stated)


def read_statements(store: Store, turns: Sequence[Turn]) -> dict[str, Extraction]:
    """Return the facts that people state in turns, by document id, with names and beginnings from the store."""
    found = {turn.document.id: _find_statements(turn) for turn in turns if turn.message.role == "user"}
    spoken = [(turn, found[turn.document.id]) for turn in turns if turn.document.id in found]
    named = _resolve_names(store, [(turn, stated) for turn, stated in spoken if stated.facts])
    return _resolve_corrections(store, named)


def _find_statements(turn: Turn) -> Extraction:
    stated = find_statements(turn.message.content, turn.speaker, turn.said)
    return replace(stated, facts=tuple(_resolve_user(fact, turn) for fact in stated.facts))


def _resolve_names(store: Store, spoken: Sequence[tuple[Turn, Extraction]]) -> list[tuple[Turn, Extraction]]:
    """Resolve bare names in statements to the only person with this name of whom the user has spoken."""
    described: dict[str, set[str]] = {}
    for _, stated in spoken:
        for name, (bare, *_) in stated.aliases.items():
            described.setdefault(normalise(bare), set()).add(name)
    bare_names = {fact.subject for _, stated in spoken for fact in stated.facts if " (" not in fact.subject}
    known = store.entities_by_names(sorted(bare_names), where=_select_same_readers(spoken[0][0])) if bare_names else {}
    for name, entities in known.items():
        described.setdefault(normalise(name), set()).update(e.name for e in entities if " (" in e.name)
    only = {bare: next(iter(names)) for bare, names in described.items() if len(names) == 1}
    return [
        (turn, replace(stated, facts=tuple(_rename(fact, only) for fact in stated.facts))) for turn, stated in spoken
    ]


def _rename(fact: NewFact, only: Mapping[str, str]) -> NewFact:
    return replace(fact, subject=only.get(normalise(fact.subject), fact.subject))


def _resolve_corrections(store: Store, spoken: Sequence[tuple[Turn, Extraction]]) -> dict[str, Extraction]:
    """Return statements by document; a correction begins when the corrected fact began."""
    began: dict[tuple[str, str], datetime] = {}
    resolved: dict[str, Extraction] = {}
    for turn, stated in spoken:
        facts = stated.facts
        if corrects(turn.message.content):
            began = {**_read_beginnings(store, turn, facts), **began}
            facts = tuple(replace(fact, valid_from=fact.valid_from or began.get(_get_series(fact))) for fact in facts)
        began |= {_get_series(fact): fact.valid_from or turn.document.at or EPOCH for fact in facts}
        resolved[turn.document.id] = replace(stated, facts=facts)
    return resolved


def _read_beginnings(store: Store, turn: Turn, facts: Sequence[NewFact]) -> dict[tuple[str, str], datetime]:
    """Return the beginnings of the newest stored assertions of the same subjects and relations."""
    subjects, predicates = {entity_id(fact.subject) for fact in facts}, {fact.predicate for fact in facts}
    where = _select_same_readers(turn)
    told = store.assertions_of_entities(sorted(subjects), predicates=sorted(predicates), newest=1, where=where)
    return {fact.series: fact.began for of_one in told.values() for fact in of_one}


def _get_series(fact: NewFact) -> tuple[str, str]:
    return entity_id(fact.subject), get_relation_name(fact.predicate)


def _select_same_readers(turn: Turn) -> Filter:
    """Return a filter for documents that the readers of a turn may see. All turns of a call have the same readers."""
    return Filter(turn.document.labels, user=turn.document.user)


def _resolve_user(fact: NewFact, turn: Turn) -> NewFact:
    """Replace "user" in a fact by the name of the person, and mark the fact as own if that person said it.

    A predicate that denies a relation in other words, such as `stopped_playing`, gets its denying form.
    """
    subject, object_ = (turn.person if normalise(name) == USER_NAME else name for name in (fact.subject, fact.object))
    is_own = turn.message.role == "user" and normalise(subject) == normalise(turn.speaker)
    return replace(fact, subject=subject, predicate=to_denial(fact.predicate), object=object_, is_own=is_own)


def _report(turns: Sequence[Turn], indexed: Sequence[IndexedDocument]) -> RememberReport:
    return RememberReport(
        documents=tuple(turn.document.id for turn in turns),
        new=len(indexed),
        known=len(turns) - len(indexed),
        cut=sum(len(document.passages) > 1 for document in indexed),
        facts=tuple(fact for document in indexed for fact in document.facts),
    )
