"""Keeps what an agent recalls from becoming what it remembers: a memory that repeats another makes no new row.

A text is read as statements. One is known if the store says it in the same words, but for case, white space,
punctuation, articles and what is written around what was recalled: bullets, quotation, citations, headings,
"as you told me". Another number, name, negation or order of words is new, for what is stored twice does less
harm than a correction that is lost. `judged` decides and reads nothing but its arguments; `known` asks the
store, a bounded number of times. It calls no model but the embedder, and knows nothing of synonyms.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from waylore.indexing import pipeline
from waylore.indexing.memory.wording import LEAD_IN, REPORTING, Statement, statements, words
from waylore.protocols import Embedder, Extractor
from waylore.store.protocol import Store
from waylore.types.identity import document_id
from waylore.types.knowledge import STATUSES, Claim, Contribution, Document, Fact, Metadata
from waylore.types.search import Filter

HEARD = "conversation"  # the source that is trusted least
WINDOWS = 12  # searches by words for one text, at the most
NEAR = 20  # passages that each of them brings
SHORTEST = 3  # words that are worth recognising within a longer text
LEANING = 6  # a new statement of fewer words may speak of the one beside it: "That is not true."


@dataclass(frozen=True, slots=True)
class Known:
    """A passage that the same readers have already."""

    passage_id: str
    document_id: str
    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What of a text is new (all of it, some statements, or nothing) and which passages hold the rest."""

    new: str
    recalled: tuple[Known, ...] = ()


# -- deciding ------------------------------------------------------------------------------------------


def judged(text: str, known: Sequence[Known]) -> Judgement:
    """Tell what a text repeats from what it adds."""
    said = statements(text)
    titles = {words(k.title) for k in known if k.title}
    runs = _runs([w for s in said for w in s.words], known)
    is_new, recalled = _parted(said, runs)
    is_new = [new and not (recalled and _is_frame(s, titles)) for s, new in zip(said, is_new, strict=True)]
    if not recalled:
        return Judgement(text)
    kept = [s.text for s, keep in zip(said, _with_neighbours(said, is_new), strict=True) if keep]
    return Judgement(text if len(kept) == len(said) else "\n".join(kept), recalled)


@dataclass(frozen=True, slots=True)
class _Run:
    """Words of a text, from a place to another, that are statements of a passage from end to end."""

    end: int
    of: Known


def _runs(said: Sequence[str], known: Sequence[Known]) -> dict[int, list[_Run]]:
    """By where they begin. One of a word or two counts only if it is the whole of the text."""
    runs: dict[int, list[_Run]] = {}
    for passage in known:
        stream, starts, ends = _stream(passage.text)
        for at, word in enumerate(said):
            for start in starts.get(word, ()):
                length = _common(said, at, stream, start)
                for end in (e - start for e in ends if start < e <= start + length):
                    if end >= SHORTEST or end == len(said):
                        runs.setdefault(at, []).append(_Run(at + end, passage))
    return runs


def _stream(text: str) -> tuple[list[str], dict[str, list[int]], list[int]]:
    """The words of a passage, where its statements begin (by their first word), and where they end."""
    stream: list[str] = []
    starts: dict[str, list[int]] = {}
    ends: list[int] = []
    for statement in statements(text):
        starts.setdefault(statement.words[0], []).append(len(stream))
        stream.extend(statement.words)
        ends.append(len(stream))
    return stream, starts, ends


def _common(said: Sequence[str], at: int, stream: Sequence[str], start: int) -> int:
    """How many words two texts share from these places on."""
    length = 0
    while (
        at + length < len(said) and start + length < len(stream) and said[at + length] == stream[start + length]
    ):
        length += 1
    return length


def _parted(said: Sequence[Statement], runs: dict[int, list[_Run]]) -> tuple[list[bool], tuple[Known, ...]]:
    """Whether each statement is new, and what the others were recalled from."""
    stream = [w for s in said for w in s.words]
    ends = list(accumulate(len(s.words) for s in said))
    is_new, recalled, at = [True] * len(said), dict[str, Known](), 0
    for i, statement in enumerate(said):
        start = ends[i] - len(statement.words)
        if start < at:
            continue
        ways = _ways(stream, start, runs)
        at = max((end for end in ends[i:] if end in ways and ways[end].is_recalled), default=start)
        is_new[i:] = [new and end > at for new, end in zip(is_new[i:], ends[i:], strict=True)]
        recalled |= {k.passage_id: k for k in ways[at].recalled}
    return is_new, tuple(recalled.values())


@dataclass(frozen=True, slots=True)
class _Way:
    """How a place in a text is reached: over statements of passages, and words that lead them in."""

    recalled: tuple[Known, ...] = ()
    led_in: tuple[str, ...] = ()

    @property
    def is_recalled(self) -> bool:
        return bool(self.recalled) and (not self.led_in or not REPORTING.isdisjoint(self.led_in))


def _ways(stream: Sequence[str], start: int, runs: dict[int, list[_Run]]) -> dict[int, _Way]:
    """The places that known statements and lead-ins reach from a place on."""
    ways = {start: _Way()}
    for at in range(start, len(stream)):
        way = ways.get(at)
        if way is None:
            continue
        for run in runs.get(at, ()):
            ways.setdefault(run.end, replace(way, recalled=(*way.recalled, run.of)))
        if stream[at] in LEAD_IN:
            ways.setdefault(at + 1, replace(way, led_in=(*way.led_in, stream[at])))
    return ways


def _is_frame(statement: Statement, titles: set[tuple[str, ...]]) -> bool:
    """Whether a statement only introduces what was recalled."""
    said = set(statement.words)
    return statement.words in titles or (said <= LEAD_IN and not said.isdisjoint(REPORTING))


def _with_neighbours(said: Sequence[Statement], is_new: Sequence[bool]) -> list[bool]:
    """What is stored: the new, and what a short remark may speak of."""
    leaning = [new and len(s.words) < LEANING for s, new in zip(said, is_new, strict=True)]
    around = [False, *leaning, False]
    return [new or before or after for new, before, after in zip(is_new, around, around[2:], strict=False)]


# -- asking the store ----------------------------------------------------------------------------------


def known(store: Store, embedder: Embedder | None, document: Document, text: str) -> list[Known]:
    """Passages near a text that the same readers have, and that every filter finds which would find it."""
    where = Filter(labels=document.labels, metadata=document.metadata)
    rankings = [store.lexical(part, top_k=NEAR, where=where) for part in _windows(text)]
    if not any(rankings) and embedder is not None and store.statistics().model == embedder.name:
        vector = embedder.embed_passages([text])[0]  # "I am what I am" has no word to be found by
        rankings.append(store.dense(vector, top_k=NEAR, where=where))
    ids = dict.fromkeys(scored.id for ranking in rankings for scored in ranking)
    passages = store.passages(list(ids), where=where)
    documents = store.documents(list({p.document_id for p in passages.values()}), where=where)
    return [
        Known(p.id, p.document_id, p.text, p.title)
        for id_ in ids
        if (p := passages.get(id_)) and (d := documents.get(p.document_id)) and _is_for_the_same(d, document)
    ]


def _windows(text: str) -> Iterator[str]:
    """The statements of a text, in groups of one or more."""
    said = [s.text for s in statements(text)]
    size = -(-len(said) // WINDOWS)
    yield from (" ".join(said[at : at + size]) for at in range(0, len(said), max(size, 1)))


def _is_for_the_same(existing: Document, new: Document) -> bool:
    return existing.labels == new.labels and _has(existing.metadata, new.metadata)


def _has(existing: Metadata, wanted: Metadata) -> bool:
    return all(key in existing and _plain(existing[key]) == _plain(value) for key, value in wanted.items())


def _plain(value: object) -> object:
    return list(value) if isinstance(value, list | tuple) else value


# -- remembering ---------------------------------------------------------------------------------------


def remember(
    store: Store,
    embedder: Embedder | None,
    extractor: Extractor | None,
    document: Document,
    text: str,
    claims: Sequence[Claim],
) -> str:
    """Store what is new of a memory and count a use of what is not; return the document that has it."""
    found = judged(text, known(store, embedder, document, text))
    if found.recalled:
        store.touch(passages=[k.passage_id for k in found.recalled], at=document.recorded_at)
    if not found.new:
        remember_facts(store, embedder, [pipeline.stated(claim, document) for claim in claims])
        return found.recalled[0].document_id
    if found.new != text:
        document = replace(document, id=document_id(text=found.new, labels=document.labels))
    added = pipeline.contribution(document, found.new, claims, extractor=extractor)
    pipeline.write(store, embedder, [added])
    return document.id


def remember_facts(store: Store, embedder: Embedder | None, told: Sequence[Contribution]) -> tuple[str, ...]:
    """Store what is new of stated facts and count a use of those that are known; return their documents."""
    own = store.contributions([c.document.id for c in told])
    others = _voices(store, told)
    places = [_place(c, own.get(c.document.id), others) for c in told]
    repeated = [c for c, place in zip(told, places, strict=True) if place]
    if repeated:
        used = [f.id for c in repeated for f in c.facts]
        store.touch(facts=used, at=repeated[0].document.recorded_at)
    pipeline.write(store, embedder, [c for c, place in zip(told, places, strict=True) if not place])
    return tuple(place or c.document.id for c, place in zip(told, places, strict=True))


def _voices(store: Store, told: Sequence[Contribution]) -> dict[str, tuple[Fact, Document]]:
    """Facts that are known already, each with the document of its most trusted voice."""
    found: dict[str, tuple[Fact, Document]] = {}
    for labels in {c.document.labels for c in told}:
        where = Filter(labels=labels)
        ids = [f.id for c in told if c.document.labels == labels for f in c.facts]
        facts = store.facts(ids, statuses=STATUSES, where=where)
        passages = store.passages([f.passage_id for f in facts.values()], where=where)
        documents = store.documents([p.document_id for p in passages.values()], where=where)
        found |= {id_: (f, documents[passages[f.passage_id].document_id]) for id_, f in facts.items()}
    return found


def _place(told: Contribution, own: Contribution | None, others: dict[str, tuple[Fact, Document]]) -> str:
    """The document that states a fact already; none, if this one says something new.

    Only what is heard in conversation may be said in other words: who edits, means the words.
    """
    (fact,) = told.facts
    if own is not None:
        is_same = own.digest == told.digest or (fact.source == HEARD and _is_restated(own, told))
        return own.document.id if is_same else ""
    voice, document = others.get(fact.id, (None, None))
    if voice is None or document is None or fact.source != HEARD:
        return ""
    is_same = _is_for_the_same(document, told.document) and _held(voice) == _held(fact)
    return document.id if is_same else ""


def _is_restated(own: Contribution, told: Contribution) -> bool:
    """Whether a stated fact is the same but for how its words are written."""
    (old,), (new,) = own.facts, told.facts
    types = {e.id: e.type for e in own.entities}
    return (
        _has(own.document.metadata, told.document.metadata)
        and (_held(old), old.weight, old.confidence) == (_held(new), new.weight, new.confidence)
        and words(old.statement) == words(new.statement)
        and all(e.type in ("", types.get(e.id)) for e in told.entities)
    )


def _held(fact: Fact) -> tuple[object, ...]:
    return fact.status, fact.valid_from, fact.valid_to
