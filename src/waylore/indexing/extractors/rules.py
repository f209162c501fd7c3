"""Extract names and facts from text by rules, without a model and without dependencies.

The sentences of all passages of a document are read first, because how its author writes a word decides whether it
is a name (`extractors.spelling`, `extractors.naming`). Links, front matter and source code are read by
`extractors.structure`, facts are built by `extractors.facts`. What is found depends on the document alone, so the
order of adding does not matter.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from waylore.deadline import check_each
from waylore.indexing.blocks import Reading
from waylore.indexing.extractors.facts import MAX_FACTS, Sentence, build_extraction, build_facts
from waylore.indexing.extractors.marked import MAX_NAME_WORDS
from waylore.indexing.extractors.markup import (
    MarkedSentence,
    find_references,
    read_marks,
    read_sentences,
    remove_blocks,
    split_sentences,
    use_references,
)
from waylore.indexing.extractors.naming import find_listed_names, find_names, find_names_in_code
from waylore.indexing.extractors.relations import ReadBlock, build_list_facts
from waylore.indexing.extractors.spelling import Spelling, count_spellings
from waylore.indexing.extractors.structure import Structure, extract_structure, is_source_code, read_passages
from waylore.names import get_subject
from waylore.protocols import Extraction
from waylore.text import STOP_WORDS, is_unspaced, normalise, split_units
from waylore.types.identity import identity
from waylore.types.knowledge import Document, NewFact, Passage

VERSION = "rules-6"
TERM = "term"  # type of a listed name, which may be an ordinary word


@dataclass(frozen=True, slots=True)
class _ReadPassage:
    """A passage with its declarations, its sentences without markup, and the text of its blocks of code."""

    passage: Passage
    declared: Structure
    sentences: Sequence[MarkedSentence]
    code: str
    blocks: Sequence[ReadBlock] = ()


class RuleExtractor:
    """Extracts names and facts by rules; `known` names are recognised anywhere in a text, in any script."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = frozenset(map(normalise, known)) - {""}

    @property
    def name(self) -> str:
        """The version of the rules, with a fingerprint of the known names."""
        return f"{VERSION}@{identity('known', *sorted(self._known))[:8]}" if self._known else VERSION

    @property
    def concurrency(self) -> int:
        """One document at a time, because threads would not make pure Python faster."""
        return 1

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        """Return an extraction for each passage, in order."""
        headings = frozenset(read_marks(heading).text for passage in passages for heading in passage.headings)
        references = {label: to for passage in passages for label, to in find_references(passage.text).items()}
        read = [_read_passage(document, passage, headings, references) for passage in check_each(passages)]
        return self._extract_passages(document, read)

    def extract_reading(
        self, reading: Reading, document: Document, passages: Sequence[Passage]
    ) -> Sequence[Extraction]:
        """Return an extraction for each passage of a file, from its blocks and the marks of its author."""
        if is_source_code(document):
            return self.extract(document, passages)
        blocks = check_each(zip(passages, read_passages(reading, passages), strict=True))
        return self._extract_passages(document, [_read_blocks(passage, of_passage) for passage, of_passage in blocks])

    def _extract_passages(self, document: Document, read: Sequence[_ReadPassage]) -> Sequence[Extraction]:
        spelling = _count_spellings(read)
        return [self._extract_passage(document, one, spelling) for one in check_each(read)]

    def _extract_passage(self, document: Document, read: _ReadPassage, spelling: Spelling) -> Extraction:
        listed = frozenset(find_listed_names(read.sentences, spelling))
        sentences = [
            Sentence(sentence.text, {sentence.text: TERM} if number in listed else find_names(sentence, spelling))
            for number, sentence in enumerate(read.sentences)
        ]
        declared = _drop_unnamed_links(read.declared, sentences)
        title = read.passage.title or document.title
        named = {name: type_ for sentence in sentences for name, type_ in sentence.names.items()}
        related = list(build_list_facts(get_subject(title), read.blocks, named, spelling)) if read.blocks else []
        extraction = build_extraction(title, sentences, declared, related)
        if read.code:
            extraction = Extraction(extraction.facts, {**find_names_in_code(read.code), **extraction.names})
        if not self._known:
            return extraction
        return add_known_names(extraction, document, read.passage, self._known)


def _read_passage(
    document: Document, passage: Passage, headings: frozenset[str], references: Mapping[str, str]
) -> _ReadPassage:
    declared = extract_structure(document, passage)
    prose, code = remove_blocks(declared.body)
    return _ReadPassage(passage, declared, read_sentences(use_references(prose, references), headings), code)


def _read_blocks(passage: Passage, blocks: Sequence[ReadBlock]) -> _ReadPassage:
    sentences = [sentence for one in blocks for sentence in _list_sentences(one)]
    code = "\n".join(one.text for one in blocks if one.block.kind == "code")
    return _ReadPassage(passage, Structure(""), sentences, code, blocks)


def _list_sentences(one: ReadBlock) -> Iterable[MarkedSentence]:
    """Return the sentences of a block; the fields of the head are declared, so only shapes count in them."""
    is_head = one.block.kind == "field" and not one.block.headings
    return (replace(sentence, kind="heading") for sentence in one.sentences) if is_head else one.sentences


def _drop_unnamed_links(declared: Structure, sentences: Iterable[Sentence]) -> Structure:
    """Return declarations without links whose text is no name; the target of a wiki link always is one."""
    named = {normalise(name) for sentence in sentences for name in sentence.names}

    def is_kept(fact: NewFact) -> bool:
        return not fact.is_pair or normalise(fact.object) in named or f"[[{fact.object}" in declared.body

    facts = tuple(filter(is_kept, declared.facts))
    return replace(declared, facts=facts, names={f.object: f.object_type for f in facts if not f.is_value})


def _count_spellings(passages: Iterable[_ReadPassage]) -> Spelling:
    sentences = [sentence for read in passages for sentence in read.sentences]
    code = [s.text[m.start : m.end] for s in sentences for m in s.marks if m.kind in {"code", "role"}]
    return count_spellings(
        (sentence.blank_code() for sentence in sentences if sentence.kind != "heading"),
        (sentence.blank_code() for sentence in sentences if sentence.kind == "heading"),
        code,
    )


def add_known_names(extraction: Extraction, document: Document, passage: Passage, known: Collection[str]) -> Extraction:
    """Add the known names (normalised) that an extraction missed, with a fact for each."""
    subject = get_subject(passage.title)
    seen = {normalise(name) for name in extraction.names}
    new_names: dict[str, str] = {}
    facts: list[NewFact] = []
    for sentence in split_sentences(extract_structure(document, passage).prose or passage.text):
        missed = [name for name in find_known_names(sentence, known) if name not in seen]
        seen.update(missed)
        names = {_find_spelling(name, sentence): "" for name in missed}
        facts += build_facts(subject, sentence, names)
        new_names |= names
    room = max(MAX_FACTS - len(extraction.facts), 0)
    return Extraction((*extraction.facts, *facts[:room]), {**extraction.names, **new_names})


def list_possible_names(text: str) -> dict[tuple[int, int], str]:
    """Return runs of words that may be known names, longest first.

    Keys are the start and the length in words, values the normalised names.
    """
    words = split_units(normalise(text))
    return {
        (start, length): name
        for length in range(min(MAX_NAME_WORDS, len(words)), 0, -1)
        for start in range(len(words) - length + 1)
        if _is_possible_name(name := "".join(words[start : start + length]).strip())
    }


def find_known_names(text: str, known: Collection[str]) -> list[str]:
    """Return the known names in a text: longest first, and no word belongs to two of them."""
    found: dict[str, None] = {}
    used: set[int] = set()
    for (start, length), name in list_possible_names(text).items():
        taken = range(start, start + length)
        if name in known and used.isdisjoint(taken):
            used.update(taken)
            found[name] = None
    return list(found)


def _is_possible_name(name: str) -> bool:
    if is_unspaced(name):
        return len(name) > 1
    return len(name) > 2 and not all(word in STOP_WORDS or word.isdigit() for word in name.split())


def _find_spelling(name: str, sentence: str) -> str:
    """Return a normalised name as the sentence spells it, or unchanged if it is not found."""
    pattern = r"[\W_]+".join(map(re.escape, name.split()))
    match = re.search(pattern, sentence, re.IGNORECASE)
    return match[0] if match else name
