"""Extract names and facts from text by rules, without a model and without dependencies.

 Names are capitalised runs, quoted titles and code identifiers. Links, front matter and source code are read
by `extractors.structure`. A sentence of a page that names something else becomes a fact about the subject of
the page, with the sentence as its statement. In scripts without capitals the names come from links, quotes,
front matter and the list of `known` names. The rules read no grammar: a fact says that two things are named
together, and where.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from waylore.deadline import check_each
from waylore.indexing.extractors.structure import Structure, extract_structure
from waylore.names import is_short
from waylore.protocols import Extraction
from waylore.text import STOP_WORDS, is_unspaced, normalise, split_units, strip_parentheses
from waylore.types.identity import identity
from waylore.types.knowledge import MENTIONS, Document, NewFact, Passage

MAX_FACTS = 24  # in one passage
MAX_NAME_WORDS = 8
MAX_PREDICATE_WORDS = 4
MAX_STATEMENT_CHARACTERS = 600  # a table or a block of code may have no end of a sentence
WEIGHT, CONFIDENCE = 4.0, 0.6

_TITLES = "Mr Mrs Ms Dr St Jr Sr Prof Gen Col Capt Lt Rev Mt Ft"
_FINISHED = "".join(rf"(?<!\b{word}\.)" for word in ["[A-Z]", *_TITLES.split(), "vs", "No", "Vol"])
_NEXT = r"[\"'”’)\]]*\s+(?=[\"'“‘`(\[]*[^\W_a-z])"
# Each alternative begins with one character, so that the engine skips all others quickly.
_SENTENCES = re.compile(rf"\.{_FINISHED}{_NEXT}|!{_NEXT}|\?{_NEXT}|。|！|？|\n\s*\n|\n(?=\s*[-*+#>|])")
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
_OPENERS = STOP_WORDS | frozenset(  # words that begin sentences and are not names
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
    """Extracts names and facts by rules; `known` names are recognised anywhere in a text, in any script."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = frozenset(map(normalise, known)) - {""}

    @property
    def name(self) -> str:
        """The version of the rules, with a fingerprint of the known names."""
        return f"rules-2@{identity('known', *sorted(self._known))[:8]}" if self._known else "rules-2"

    @property
    def concurrency(self) -> int:
        """One document at a time, because threads would not make pure Python faster."""
        return 1

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        """Return an extraction for each passage, in order."""
        return [self._extract_passage(document, passage) for passage in check_each(passages)]

    def _extract_passage(self, document: Document, passage: Passage) -> Extraction:
        declared = extract_structure(document, passage)
        sentences = [Sentence(text, find_names(text)) for text in split_sentences(declared.prose)]
        extraction = build_extraction(passage.title or document.title, sentences, declared)
        if not self._known:
            return extraction
        return add_known_names(extraction, document, passage, self._known)


@lru_cache(maxsize=64)  # rules and definitions split the same passages
def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, each on one line."""
    found, start = [], 0
    for cut in _SENTENCES.finditer(text):
        found.append(text[start : cut.end()])
        start = cut.end()
    lines = (" ".join(sentence.split()) for sentence in [*found, text[start:]])
    return tuple(line.lstrip("-*+#>| ") for line in lines if any(map(str.isalnum, line)))


def find_names(sentence: str) -> dict[str, str]:
    """Return the names in a sentence with their types, by spelling alone, in the order of the text."""
    places = dict.fromkeys(_find_capitalised(sentence), "")
    quoted = (match.span(match.lastindex or 0) for match in _QUOTED.finditer(sentence))
    places |= {(start, end): "" for start, end in quoted if _is_title(sentence[start:end])}
    places |= {match.span(): "code" for match in _IDENTIFIER.finditer(sentence)}
    return clean_names((sentence[start:end], places[start, end]) for start, end in sorted(places))


def clean_names(names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return names without articles and possessives, each with its first type; drop words that are no names."""
    found: dict[str, str] = {}
    for name, type_ in names:
        bare = _POSSESSIVE.sub("", _ARTICLE.sub("", " ".join(name.split()))).strip(" .,;:!?\"'`“”‘’()[]*")
        if len(normalise(bare)) > 1 and (bare.casefold() not in _OPENERS or is_short(bare)):
            found.setdefault(bare, type_)
    return found


def build_extraction(title: str, sentences: Sequence[Sentence], declared: Structure | None = None) -> Extraction:
    """Return the names and facts in the sentences of a page, and its declared ones."""
    subject = strip_parentheses(title) or title.strip()
    whole = _find_whole_names([subject, *(name for sentence in sentences for name in sentence.names)])
    facts: dict[tuple[str, str], NewFact] = {}
    names: dict[str, str] = {subject: ""} if subject else {}
    for sentence in sentences:
        named = {whole.get(name, name): type_ for name, type_ in sentence.names.items()}
        names |= {name: type_ or names.get(name, "") for name, type_ in named.items()}
        for fact in _build_facts(subject, sentence.text, named):
            facts.setdefault((normalise(fact.subject), normalise(fact.object)), fact)
    stated = [*(declared.facts if declared else ()), *facts.values()][:MAX_FACTS]
    return Extraction(tuple(stated), {**names, **(declared.names if declared else {})})


def add_known_names(extraction: Extraction, document: Document, passage: Passage, known: Collection[str]) -> Extraction:
    """Add the known names (normalised) that an extraction missed, with a fact for each."""
    subject = strip_parentheses(passage.title) or passage.title.strip()
    seen = {normalise(name) for name in extraction.names}
    new_names: dict[str, str] = {}
    facts: list[NewFact] = []
    for sentence in split_sentences(extract_structure(document, passage).prose or passage.text):
        missed = [name for name in find_known_names(sentence, known) if name not in seen]
        seen.update(missed)
        names = {_find_spelling(name, sentence): "" for name in missed}
        facts += _build_facts(subject, sentence, names)
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
    return len(name) > 2 and not all(word in _OPENERS or word.isdigit() for word in name.split())


def _find_spelling(name: str, sentence: str) -> str:
    """Return a normalised name as the sentence spells it, or unchanged if it is not found."""
    pattern = r"[\W_]+".join(map(re.escape, name.split()))
    match = re.search(pattern, sentence, re.IGNORECASE)
    return match[0] if match else name


def _build_facts(about: str, sentence: str, names: Mapping[str, str]) -> Iterator[NewFact]:
    """Yield a fact about the page's subject, or else about the first name, for each other name."""
    others = {normalise(name): name for name in names if normalise(name) != normalise(about)}
    subject = about or next(iter(others.values()), "")
    statement = _make_statement(about, sentence)
    for normal, name in others.items():
        if normal != normalise(subject):
            yield NewFact(
                subject,
                _find_predicate(subject, name, statement),
                name,
                statement,
                weight=WEIGHT,
                confidence=CONFIDENCE,
                object_type=names[name],
            )


def _find_predicate(subject: str, name: str, statement: str) -> str:
    """Return the few plain words between a subject and a name, or MENTIONS."""
    _, _, after = statement.partition(subject)
    between, _, found = after.partition(name)
    words = between.split()
    while words and words[-1] in {"a", "an", "the"}:
        words.pop()
    is_plain = all(word.isalpha() and word.islower() for word in words)
    return " ".join(words) if found and is_plain and 0 < len(words) <= MAX_PREDICATE_WORDS else MENTIONS


def _make_statement(about: str, sentence: str) -> str:
    """Return the sentence with its subject: in place of the pronoun that begins it, or before it."""
    text = sentence[:MAX_STATEMENT_CHARACTERS]
    if not about or normalise(about) in normalise(text):
        return text
    if pronoun := _PRONOUN.match(text):
        whose = "'s" if pronoun[2] else ""
        return f"{about}{whose} {text[pronoun.end() :]}"
    return f"{about}: {text}"


def _find_whole_names(names: Sequence[str]) -> dict[str, str]:
    """Map the last word of each name of two or three words to that name, if only one name ends so."""
    wholes: dict[str, set[str]] = {}
    for name in names:
        words = name.split()
        if len(words) in {2, 3}:
            wholes.setdefault(words[-1], set()).add(name)
    return {last: next(iter(found)) for last, found in wholes.items() if len(found) == 1}


def _find_capitalised(sentence: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of runs of capitalised words, including the small words that join them."""
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
    """Return whether a quoted text looks like a name: short, and not a sentence."""
    words = quoted.split()
    return (
        bool(words) and len(words) <= MAX_NAME_WORDS and (quoted[0].isupper() or is_unspaced(quoted) or len(words) == 1)
    )
