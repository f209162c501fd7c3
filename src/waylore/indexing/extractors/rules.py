"""Finds names and claims in text by rules: no model, no dependency.

Names are capitalised runs, quoted titles and code identifiers; what links, front matter and source code
declare comes from `structure`. A sentence of a page that names something else is a claim about what the page
is about, with the sentence as its statement. Scripts without capitals give what their links, quotes and front
matter name, and what of a list of `known` names they have. It reads no facts out of grammar: a claim says that
two things are spoken of together, and where.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from waylore.indexing.extractors.structure import Structure, structure
from waylore.names import is_short
from waylore.protocols import Extraction
from waylore.text import STOP_WORDS, is_unspaced, normalise, units, without_aside
from waylore.types.identity import identity
from waylore.types.knowledge import Claim, Document, Passage

MOST_CLAIMS = 24  # of one passage
LONGEST_NAME = 8  # words
LONGEST_PREDICATE = 4  # words
LONGEST_STATEMENT = 600  # characters; a table or a block of code may have no sentence
WEIGHT, CONFIDENCE = 4.0, 0.6
MENTIONS = "mentions"

_TITLES = "Mr Mrs Ms Dr St Jr Sr Prof Gen Col Capt Lt Rev Mt Ft"
_UNFINISHED = "".join(rf"(?<!\b{word})" for word in ["[A-Z]", *_TITLES.split(), "vs", "No", "Vol"])
_SENTENCES = re.compile(
    rf"(?:{_UNFINISHED}\.|[!?])[\"'”’)\]]*\s+(?=[\"'“‘`(\[]*[^\W_a-z])|(?<=[。！？])|\n\s*\n|\n(?=\s*[-*+#>|])"
)
_WORD = re.compile(
    rf"(?:{_TITLES.replace(' ', '|')})\.(?= [A-Z])|"
    r"[^\W_](?:[\w&]|[-'’./](?=\w)|\.(?=\w))*(?:(?<=\b[^\W\d_])\.)?"
)
_QUOTED = re.compile(
    r"``\s*(.{1,100}?)\s*''|“(.{1,100}?)”|\"(.{1,100}?)\"|「(.{1,100}?)」|『(.{1,100}?)』|《(.{1,100}?)》|`([^`]{1,100})`|\*\*(.{1,100}?)\*\*"
)
_IDENTIFIER = re.compile(
    r"\b(?:[a-z]+[A-Z]\w*|[A-Za-z]\w*(?:_\w+)+|[a-z]\w{0,50}(?:\.[a-z]\w{0,50}){1,6}(?=\(\))|\w+(?=\(\)))"
)
_POSSESSIVE = re.compile(r"['’]s?$")
_ARTICLE = re.compile(r"^(?:the|a|an|mr\.|mrs\.|ms\.)\s+", re.IGNORECASE)
_PRONOUN = re.compile(r"^(he|she|it|they|(his|her|its|their)) (?=\w)", re.IGNORECASE)
_JOINS = frozenset("of the de la le du des del della di da dos van von der den zu & for bin ibn al y e".split())
_OPENERS = STOP_WORDS | frozenset(  # words that begin sentences and are no names
    """about above according across after afterwards again against all almost along already also although among
    another any around back because before behind below beneath beside besides between beyond both currently
    despite down during each early either even every few finally first following former formerly further given
    here however including indeed initially instead later like located many meanwhile more moreover most much
    near nearly neither nevertheless next none nor now often once one only originally other others out outside
    over part perhaps prior rather recently second see several shortly similarly since some sometimes soon still
    subsequently third though three through throughout thus today together two under unlike until up upon
    usually whereas whether while within without yet
    das der die ein eine el er es et il la las le les lo los sie un une в на он она они оно его её их это
    """.split()
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and the names in it, in order, with their types."""

    text: str
    names: Mapping[str, str] = field(default_factory=dict)


class RuleExtractor:
    """Names and claims by rules alone; `known` names are recognised wherever they stand, in any script."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = frozenset(map(normalise, known)) - {""}

    @property
    def name(self) -> str:
        """The rules and their version, with a fingerprint of the names that are known."""
        return f"rules-2@{identity('known', *sorted(self._known))[:8]}" if self._known else "rules-2"

    @property
    def concurrency(self) -> int:
        """One document at a time: Python would not do two any faster."""
        return 1

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        """What each passage says, in order."""
        return [self._extracted(document, passage) for passage in passages]

    def _extracted(self, document: Document, passage: Passage) -> Extraction:
        declared = structure(document, passage)
        read = [Sentence(text, names_in(text)) for text in sentences(declared.prose)]
        said = extraction(passage.title or document.title, read, declared)
        return with_known(said, document, passage, self._known) if self._known else said


def sentences(text: str) -> list[str]:
    """The sentences of a text, each on one line."""
    found, start = [], 0
    for cut in _SENTENCES.finditer(text):
        found.append(text[start : cut.end()])
        start = cut.end()
    lines = (" ".join(sentence.split()) for sentence in [*found, text[start:]])
    return [line.lstrip("-*+#>| ") for line in lines if any(map(str.isalnum, line))]


def names_in(sentence: str) -> dict[str, str]:
    """What a sentence names, as far as spelling tells, in the order of the text."""
    places = dict.fromkeys(_capitalised(sentence), "")
    quoted = (found.span(found.lastindex or 0) for found in _QUOTED.finditer(sentence))
    places |= {(start, end): "" for start, end in quoted if _is_title(sentence[start:end])}
    places |= {found.span(): "code" for found in _IDENTIFIER.finditer(sentence)}
    return tidied((sentence[start:end], places[start, end]) for start, end in sorted(places))


def tidied(names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Names without articles, possessives and what is no name at all; the first type of each."""
    found: dict[str, str] = {}
    for name, type_ in names:
        bare = _POSSESSIVE.sub("", _ARTICLE.sub("", " ".join(name.split()))).strip(" .,;:!?\"'`“”‘’()[]*")
        if len(normalise(bare)) > 1 and (bare.casefold() not in _OPENERS or is_short(bare)):
            found.setdefault(bare, type_)
    return found


def extraction(title: str, read: Sequence[Sentence], declared: Structure | None = None) -> Extraction:
    """What a page with this title says in these sentences, with what it declares."""
    about = without_aside(title) or title.strip()
    whole = _whole_names([about, *(name for sentence in read for name in sentence.names)])
    claims: dict[tuple[str, str], Claim] = {}
    names: dict[str, str] = {about: ""} if about else {}
    for sentence in read:
        told = {whole.get(name, name): type_ for name, type_ in sentence.names.items()}
        names |= {name: type_ or names.get(name, "") for name, type_ in told.items()}
        for claim in _claims(about, sentence.text, told):
            claims.setdefault((normalise(claim.subject), normalise(claim.object)), claim)
    stated = [*(declared.claims if declared else ()), *claims.values()][:MOST_CLAIMS]
    return Extraction(tuple(stated), {**names, **(declared.names if declared else {})})


def with_known(said: Extraction, document: Document, passage: Passage, known: Collection[str]) -> Extraction:
    """An extraction and, of the names known already (normalised), those that it missed; a claim for each."""
    about = without_aside(passage.title) or passage.title.strip()
    had = {normalise(name) for name in said.names}
    fresh: dict[str, str] = {}
    claims: list[Claim] = []
    for sentence in sentences(structure(document, passage).prose or passage.text):
        missed = [name for name in known_names(sentence, known) if name not in had]
        had.update(missed)
        names = {_as_written(name, sentence): "" for name in missed}
        claims += _claims(about, sentence, names)
        fresh |= names
    room = max(MOST_CLAIMS - len(said.claims), 0)
    return Extraction((*said.claims, *claims[:room]), {**said.names, **fresh})


def possible_names(text: str) -> dict[tuple[int, int], str]:
    """Runs of words that may be a known name, normalised, the longest first, by start and length in words."""
    words = units(normalise(text))
    return {
        (start, length): name
        for length in range(min(LONGEST_NAME, len(words)), 0, -1)
        for start in range(len(words) - length + 1)
        if _may_be_known(name := "".join(words[start : start + length]).strip())
    }


def known_names(text: str, known: Collection[str]) -> list[str]:
    """Which known names a text has: the longest first, and no word in two of them."""
    found: dict[str, None] = {}
    used: set[int] = set()
    for (start, length), name in possible_names(text).items():
        taken = range(start, start + length)
        if name in known and used.isdisjoint(taken):
            used.update(taken)
            found[name] = None
    return list(found)


def _may_be_known(name: str) -> bool:
    if is_unspaced(name):
        return len(name) > 1
    return len(name) > 2 and not all(word in _OPENERS or word.isdigit() for word in name.split())


def _as_written(name: str, sentence: str) -> str:
    """A normalised name as the sentence writes it, where it is found letter by letter."""
    pattern = r"[\W_]+".join(map(re.escape, name.split()))
    found = re.search(pattern, sentence, re.IGNORECASE)
    return found[0] if found else name


def _claims(about: str, sentence: str, names: Mapping[str, str]) -> Iterator[Claim]:
    """A claim of what the page is about for each other name; without a title, of the first name."""
    others = {normalise(name): name for name in names if normalise(name) != normalise(about)}
    subject = about or next(iter(others.values()), "")
    statement = _stated(about, sentence)
    for normal, name in others.items():
        if normal != normalise(subject):
            yield Claim(
                subject,
                _predicate(subject, name, statement),
                name,
                statement,
                weight=WEIGHT,
                confidence=CONFIDENCE,
                object_type=names[name],
            )


def _predicate(subject: str, name: str, statement: str) -> str:
    """The few plain words between a subject and a name, else that it is mentioned."""
    _, _, after = statement.partition(subject)
    between, _, found = after.partition(name)
    words = between.split()
    while words and words[-1] in {"a", "an", "the"}:
        words.pop()
    is_plain = all(word.isalpha() and word.islower() for word in words)
    return " ".join(words) if found and is_plain and 0 < len(words) <= LONGEST_PREDICATE else MENTIONS


def _stated(about: str, sentence: str) -> str:
    """The sentence with what it is about: in place of the pronoun that begins it, or before it."""
    said = sentence[:LONGEST_STATEMENT]
    if not about or normalise(about) in normalise(said):
        return said
    if pronoun := _PRONOUN.match(said):
        whose = "'s" if pronoun[2] else ""
        return f"{about}{whose} {said[pronoun.end() :]}"
    return f"{about}: {said}"


def _whole_names(names: Sequence[str]) -> dict[str, str]:
    """For each last word of a longer name of two or three words that name, if it is the only one."""
    wholes: dict[str, set[str]] = {}
    for name in names:
        words = name.split()
        if len(words) in {2, 3}:
            wholes.setdefault(words[-1], set()).add(name)
    return {last: next(iter(found)) for last, found in wholes.items() if len(found) == 1}


def _capitalised(sentence: str) -> Iterator[tuple[int, int]]:
    """Where runs of capitalised words begin and end, with the small words that join them."""
    run: list[re.Match[str]] = []
    joins: list[re.Match[str]] = []
    last = 0
    for word in _WORD.finditer(sentence):
        gap = sentence[last : word.start()]
        last = word.end()
        if run and gap.strip():
            yield run[0].start(), run[-1].end()
            run, joins = [], []
        if word[0][0].isupper() or (run and not joins and word[0][0].isdigit()):
            if run or word[0].casefold() not in _OPENERS or (is_short(word[0]) and not sentence.isupper()):
                run, joins = [*run, *joins, word], []
        elif run and word[0] in _JOINS and len(joins) < 2:
            joins.append(word)
        elif run:
            yield run[0].start(), run[-1].end()
            run, joins = [], []
    if run:
        yield run[0].start(), run[-1].end()


def _is_title(quoted: str) -> bool:
    """Whether what stands in quotes reads like a name: short, and not a sentence."""
    words = quoted.split()
    return (
        bool(words)
        and len(words) <= LONGEST_NAME
        and (quoted[0].isupper() or is_unspaced(quoted) or len(words) == 1)
    )
