"""Build facts from the sentences of a page and the names in them.

A sentence that names something else becomes a fact about the subject of the page, with the sentence as its
statement. Two neighbouring names with a few words between them are a relation, and these words are its predicate.
"The logs are sent to Graylight" is a relation of what begins the sentence, or of the page's subject if that is meant.
The other names form pairs with the subject. The module reads no grammar and finds no names.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise

from waylore.indexing.extractors.structure import Structure
from waylore.names import get_subject
from waylore.protocols import Extraction
from waylore.text import STOP_WORDS, count_occurrences, is_unspaced, normalise
from waylore.types.knowledge import NewFact

MAX_FACTS = 24  # in one passage
MAX_PREDICATE_WORDS = 8
MAX_PREDICATE_CHARACTERS = 80
WEIGHT, CONFIDENCE = 4.0, 0.6
MAX_STATEMENT_CHARACTERS = 600  # a table or a block of code may have no end of a sentence
_PRONOUN = re.compile(
    r"^(he|she|it|they|(his|her|its|their)|this (?:page|document|guide|section|project|recipe|team|pep|rfc)) (?=\w)",
    re.IGNORECASE,
)
# "It is possible to …", "it seems that …": nothing that the page is about is meant.
_IMPERSONAL = re.compile(
    r"it (?:(?:seems|appears|turns out|takes|is up to)\b"
    r"|(?:is|was|would be|will be|may be|might be|can be|becomes) "
    r"(?:(?:not|also|often|always|then|thus|still|very|more|\w+ly) )*"
    r"(?:\w+ that|possible|impossible|necessary|important|essential|best|better|advisable|recommended|useful|helpful"
    r"|easy|easier|hard|harder|difficult|safe|wise|good|worth|common|usual|likely|unlikely|sufficient|enough|time)\b)",
    re.IGNORECASE,
)
_BREAK = re.compile(r"[.;:()|<>\[\]\"“”„«»]|, (?!and|or)")
_ASIDE = re.compile(r"^\s*\([^()]{1,60}\)")
_WHICH = re.compile(r"^\)?\s*,?\s+(?:which|who)\s+|^\)(?=\s)")
_AND = re.compile(r"\s*,?\s*(?:and|or|&)?(?:/or)?\s*(?:the|some|an|a)?\s*")
_AND_SAYS = re.compile(r"\s*,?\s*and\s+(?=\w)|,\s+(?=(?:is|are|was|were|has|have|had)\b)")
_APPOSITION = re.compile(r"^,\s+(?:the|an?)\s+(?=[a-z])")  # "Opal, the shop of Beryl, is sold"
# What a sentence says before its first name: whom it is about, and the verb with what follows.
_LEAD = re.compile(
    r"(?P<article>(?:the|an?|our|each|every|all) )?(?P<noun>[^\W\d_][\w'-]*(?: [\w'-]+){0,3}?) "
    r"(?P<said>(?:(?:also|first|now|only|still|usually) )?"
    r"(?:is|are|was|were|(?:has|have|had) been|(?:can|may|must|should|will) be|belongs?|comes?|goes|go|lives?|moved|"
    r"reads?|runs?|sends?|talks?|uses?|writes?) .{2,60})",
    re.IGNORECASE,
)
_BEFORE_NAME = frozenset(["by", "with", "in", "from", "to", "on", "at", "through", "into", "via"])
_USES = frozenset(["use", "uses"])
_OWN = frozenset("agreement contract document page paper policy proposal report study".split())
# Words that are not part of the noun that begins a sentence.
_NO_NOUNS = STOP_WORDS.union(
    "after before both every here most nobody now one ours since some until whether while".split()
)
_KINDS = frozenset("api apis gui html html5 http https id ids json pr prs ui uri uris url urls xml".split())
_ARTICLES = frozenset(["a", "an", "the"])
_NOT_FIRST = frozenset("and or & but in of on at for from et ou mais de du des und oder aber y o pero".split())
_NOT_LAST = frozenset(
    """and or & but that this these those each every either when than if et ou mais que und oder aber dass y o
    pero""".split()
)
_IDLE = frozenset(
    """a an and are as at both but by for from in instead is like of on only or than the to via was were when
    with et ou de du des la le les un une en à au aux dans sur avec sans par pour que und oder der das dem den des von
    vom im mit für auf zu bei y o el los las del con sin por para e il lo gli di da che""".split()
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and the names in it, in order, with their types."""

    text: str
    names: Mapping[str, str] = field(default_factory=dict)


def build_extraction(
    title: str, sentences: Sequence[Sentence], declared: Structure | None = None, listed: Iterable[NewFact] = ()
) -> Extraction:
    """Return the names and facts in the sentences of a page, and its declared and listed ones."""
    subject = get_subject(title)
    whole = _find_whole_names([subject, *(name for sentence in sentences for name in sentence.names)])
    names: dict[str, str] = {subject: ""} if subject else {}
    stated = [*listed]
    for sentence in sentences:
        named = {whole.get(name, name): type_ for name, type_ in sentence.names.items()}
        names |= {name: type_ or names.get(name, "") for name, type_ in named.items()}
        stated += build_facts(subject, sentence.text, named, sentence.names)
    facts = _choose_facts(declared.facts if declared else (), stated)
    return Extraction(facts, {**names, **(declared.names if declared else {})})


def _choose_facts(declared: Sequence[NewFact], stated: Sequence[NewFact]) -> tuple[NewFact, ...]:
    """Return all declared facts, then the first relation of each two names, then the pairs of all other names."""
    first = [fact for fact in declared if not fact.is_pair]
    related: dict[tuple[str, str], NewFact] = {}
    pairs: dict[tuple[str, str], NewFact] = {}
    for fact in (*(fact for fact in declared if fact.is_pair), *stated):
        (pairs if fact.is_pair else related).setdefault(_get_ends(fact), fact)
    known = related.keys() | set(map(_get_ends, first))
    rest = (fact for ends, fact in pairs.items() if ends not in known)
    return tuple(islice(chain(first, related.values(), rest), MAX_FACTS))


def _get_ends(fact: NewFact) -> tuple[str, str]:
    return normalise(fact.subject), normalise(fact.object)


def build_facts(about: str, sentence: str, names: Mapping[str, str], spelled: Iterable[str] = ()) -> Iterator[NewFact]:
    """Yield the relations that a sentence states, and a pair of the page's subject and each other name.

    Without a subject the first name is it. `spelled` are the names as the sentence spells them, in the same order.
    """
    others = {normalise(name): name for name in names if normalise(name) != normalise(about)}
    subject = about or next(iter(others.values()), "")
    if not others or (len(others) < 2 and not about):
        return
    statement = _make_statement(about, sentence)
    whole = dict(zip(spelled, names, strict=False)) if spelled else {name: name for name in names}
    types = {subject: "", **names}
    related = {normalise(subject)}
    stated = sentence if statement.endswith(sentence) else statement  # without the subject before the sentence
    for one, predicate, other in _find_relations(stated, [subject, *whole], about):
        ends = (whole.get(one, one), whole.get(other, other))
        if normalise(ends[0]) != normalise(ends[1]):
            yield _build_fact(ends[0], predicate, ends[1], statement, types)
            related |= {normalise(ends[1])} if normalise(ends[0]) == normalise(subject) else set()
    for normal, name in others.items():
        if normal not in related:
            yield _build_fact(subject, "", name, statement, types)


def _build_fact(subject: str, predicate: str, name: str, statement: str, types: Mapping[str, str]) -> NewFact:
    return NewFact(
        subject,
        predicate,
        name,
        statement,
        weight=WEIGHT,
        confidence=CONFIDENCE,
        subject_type=types.get(subject, "term"),  # a noun that begins the sentence
        object_type=types.get(name, ""),
        is_pair=not predicate,
    )


def _find_relations(text: str, names: Iterable[str], about: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield neighbouring names with the words between them, if these say something.

    `A uses B and C` says it of C too, and `A is made by B and sold by C` says both of A. Acronyms that name a kind of
    thing, such as URL, have no relations.
    """
    named = [place for place in _place_names(text, names) if place[2].lower() not in _KINDS]
    places = list(_drop_asides(text, named))
    subject = predicate = ""
    if places and (lead := _read_lead(text[: places[0][0]], about)):
        subject, predicate = lead
        yield subject, predicate, places[0][2]
    for (_, end, one), (start, last, other) in pairwise(places):
        between = _ASIDE.sub("", text[end:start])
        if text[last : last + 1] == ",":
            between = _APPOSITION.sub(" ", between)
        if subject and _AND.fullmatch(between):
            yield subject, predicate, other
        elif subject and (more := _AND_SAYS.match(between)) and (words := _read_predicate(between[more.end() :])):
            predicate = words
            yield subject, words, other
        elif words := _read_predicate(between):
            subject, predicate = one, words
            yield one, words, other
        else:
            subject = ""


def _drop_asides(text: str, places: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Yield the places of names without those that stand in parentheses behind another name."""
    last = None
    for start, end, name in places:
        if last is None or text[last:start].strip() != "(" or text[end : end + 1] != ")":
            yield start, end, name
            last = end


def _place_names(text: str, names: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return the first place of each name in a text that is not part of a longer name, in order."""
    places: list[tuple[int, int, str]] = []
    for name in sorted(filter(None, dict.fromkeys(names)), key=len, reverse=True):
        start = find_name(name, text)
        while start >= 0 and any(first < start + len(name) and start < last for first, last, _ in places):
            start = find_name(name, text, start + len(name))
        if start >= 0:
            places.append((start, start + len(name), name))
    return sorted(places)


def _read_lead(before: str, about: str) -> tuple[str, str] | None:
    """Return whom a sentence is about and what it says before its first name, or None.

    "The museum" on the page of the Clockwork Museum is the subject of the page.
    """
    lead = _LEAD.fullmatch(before.strip())
    words = _read_predicate(f" {lead['said']} ") if lead else ""
    if not lead or not words or not (words.split()[-1].lower() in _BEFORE_NAME or words.lower() in _USES):
        return None
    noun = normalise(lead["noun"]).split()
    if len(noun) < (1 if lead["article"] else 2) or not _NO_NOUNS.isdisjoint(noun):
        return None
    is_meant = bool(lead["article"]) and noun[-1] in {*_OWN, *normalise(about).split()}
    return about if is_meant else lead["noun"], words


def _read_predicate(between: str) -> str:
    """Return the few words between two names if they say more than a preposition does, or an empty string.

    What follows "which" after a name says it of that name.
    """
    between = _WHICH.sub(" ", between)
    if len(between) > MAX_PREDICATE_CHARACTERS or _BREAK.search(between) or between[:1] in "'’":
        return ""
    words = between.split()
    while words and words[-1].lower() in _ARTICLES:
        words.pop()
    plain = [word.strip(",*`\"'") for word in words]
    telling = [word for word in plain if word.lower() not in _IDLE and len(word) > 1 and word.isalpha()]
    if not 0 < len(words) <= MAX_PREDICATE_WORDS or not telling:
        return ""
    if plain[0].lower() in _NOT_FIRST or plain[-1].lower() in _NOT_LAST:
        return ""
    if any(word[:1].isupper() and word.lower() not in _KINDS for word in plain):
        return ""
    return " ".join(words).strip(" ,*`")


def find_name(name: str, text: str, start: int = 0) -> int:
    """Return the offset of a name in a text as a whole word, or -1."""
    place = text.find(name, start)
    while place >= 0 and not _is_whole(name, text, place):
        place = text.find(name, place + 1)
    return place


def _is_whole(name: str, text: str, place: int) -> bool:
    """Return whether no letter or digit touches a name at its place; scripts without spaces have no such border."""
    if is_unspaced(name):
        return True
    around = text[max(place - 1, 0) : place] + text[place + len(name) : place + len(name) + 1]
    return not any(map(str.isalnum, around))


def _make_statement(about: str, sentence: str) -> str:
    """Return the sentence with its subject: in place of the pronoun that begins it, or before it."""
    text = sentence[:MAX_STATEMENT_CHARACTERS]
    if not about or count_occurrences(normalise(about), normalise(text)):
        return text
    if not _IMPERSONAL.match(text) and (pronoun := _PRONOUN.match(text)):
        whose = "'s" if pronoun[2] else ""
        return f"{about}{whose} {text[pronoun.end() :]}"
    return f"{about}: {text}"


def _find_whole_names(names: Sequence[str]) -> dict[str, str]:
    """Map the last word of each name of two or three words to that name, if only one name ends so.

    As with persons, all words of the name are capitalised, and it comes before its last word alone.
    """
    wholes: dict[str, set[str]] = {}
    alone: set[str] = set()
    for name in names:
        words = name.split()
        if len(words) == 1:
            alone |= {name} - wholes.keys()
        elif len(words) in {2, 3} and all(word[0].isupper() for word in words) and words[-1] not in alone:
            wholes.setdefault(words[-1], set()).add(name)
    return {last: next(iter(found)) for last, found in wholes.items() if len(found) == 1}
