"""Find the names in a sentence: by how the page writes each word, by their shape, and by the author's marks.

A run of capitalised words is a name if the page and ordinary text write its words so (`extractors.spelling`). Shapes,
code, links and strong words are read by `extractors.marked`. Months and days are values. Scripts without capitals are
read by `extractors.unspaced`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from waylore.indexing.extractors.marked import (
    MAX_NAME_WORDS,
    SHORT_FORMS,
    is_shouted,
    list_numbered_links,
    list_places,
)
from waylore.indexing.extractors.markup import MarkedSentence
from waylore.indexing.extractors.spelling import Spelling
from waylore.names import is_section, is_short
from waylore.text import STOP_WORDS, normalise

MAX_NAME_CHARACTERS = 100
MAX_LISTED_WORDS = 2
MIN_LISTED_ITEMS = 3
MIN_RUN_NAMENESS = 0.35  # of the best word of a run of several words
MAX_SMALL_SHARE = 0.25  # of small occurrences of a word in capitals that is a name

_NAMES_IN_CODE = re.compile(
    r"\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+\b|\bc\.[A-Z]\w+\.\w+\b|(?<=[\"'])[a-z][\w.]*(?:[-:][\w.-]+)+(?=[\"'])"
)
_APOSTROPHES = ("'", "’")
_POSSESSIVE = re.compile(r"['’]s?$")
_ARTICLE = re.compile(r"^(?:the|a|an|mr\.|mrs\.|ms\.)\s+", re.IGNORECASE)
_CONTRACTION = re.compile(r"(?:I|You|We|They|He|She|It|That|What|There|Let)['’]\w{1,2}$|\w+n['’]t$")
_JOINS = "of the de la le du des del della di da dos van von der den zu & for bin ibn al y e".split()
_LETTERS = r"(?:[\w&]|['’](?!s\b)(?=\w)|[.-](?=\w)|(?<=[A-Z])/(?=[A-Z]))*"
_ABBREVIATED = r"(?=[A-Z][a-z]{0,3}\.\s)(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|Prof|Gen|Col|Capt|Lt|Rev|Mt|Ft|[A-Z])\."
_CAPITALISED = rf"(?:{_ABBREVIATED}|(?:[^\W\d_a-zß-öø-ÿа-яё]|\d+[A-Z]){_LETTERS})"  # other small letters are rare
_RUN = re.compile(
    rf"(?<!\w){_CAPITALISED}"
    rf"(?: (?:{_CAPITALISED}|\d{{1,5}}(?!\w|\.\d))| (?:(?:{'|'.join(_JOINS)}) ){{1,2}}{_CAPITALISED})*"
)
_WORD_OF_RUN = re.compile(r"\S+")
_BEGINNING = re.compile(r"(?:^|[!?:;|•–—][^\w\s]*\s| - )[^\w|]*$")
_DAYS = frozenset(
    """january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays
    saturdays sundays
    januar februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag
    janvier février mars avril juin juillet août septembre octobre novembre décembre
    lundi mardi mercredi jeudi vendredi samedi dimanche
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    lunes martes miércoles jueves viernes sábado domingo
    понедельник вторник среда четверг пятница суббота воскресенье
    """.split()
)
_MEASURES = re.compile(r"(?:[A-Za-z]{1,2}[:=] ?\d[\d.]*%?[\s,;/]*)+")  # `V:47, I:398`, `w=20`

# Kinds of things: an ordinary word with a capital before one of them is part of a name, as in `the Search team`.
_KIND = re.compile(
    r" (?:team|service|squad|guild|department|committee|project|app|API|library|database|cluster|server|tool)\b"
)
# Relations whose object is a thing. A capitalised word after one of them is a name, even if it is an ordinary word.
_RELATIONS = (
    "depends? on|relies on|rely on|needs?|requires?|uses?|calls?|owns|leads|manages|heads|joined|"
    "maintains?|replaces?|supersedes?|extends?|"
    "(?:based|built|hosted|deployed|runs?|running) on|(?:owned|maintained|used|called|replaced|superseded|built|run|"
    "written|led|managed|operated|provided|powered) by|(?:connects?|talks?|writes?|belongs?) to|reads? from|part of"
)
_BEFORE_RELATED = re.compile(rf"\b(?:{_RELATIONS}) (?:[A-Z]\w+(?:, and |, or |, | and | or ))*$")
_AFTER_RELATED = re.compile(r"[.,;)]|$| (?:and|or|for|to|as|in|on|at|when|while|which|that|with|from|by|but|via)\b")


def find_names(sentence: MarkedSentence, spelling: Spelling) -> dict[str, str]:
    """Return the names in a sentence with their types, in the order of the text."""
    text, places = sentence.text, _find_places(sentence, spelling)
    return clean_names((text[start:end], places[start, end]) for start, end in sorted(places))


def _find_places(sentence: MarkedSentence, spelling: Spelling) -> dict[tuple[int, int], str]:
    text, places = sentence.text, dict[tuple[int, int], str]()
    for start, end, type_ in list_places(sentence, spelling):
        if not any(start < other_end and other_start < end for other_start, other_end in places):
            places[start, end] = type_
    if sentence.kind != "heading" and not (text.isupper() and len(text.split()) > MIN_LISTED_ITEMS):
        blank = _blank(text, [*places, *list_numbered_links(sentence)])
        is_item = sentence.kind == "item"
        places |= dict.fromkeys(_find_runs(blank, spelling, is_item=is_item), "")
    return places


def find_listed_names(sentences: Iterable[MarkedSentence], spelling: Spelling) -> Iterator[int]:
    """Yield the numbers of list items that are nothing but a name: three or more short ones in a row.

    Items that capitalise the first of several ordinary words are phrases.
    """
    row: list[int] = []
    for number, sentence in enumerate([*sentences, MarkedSentence("")]):
        if sentence.kind == "item" and _is_short_item(sentence.text, spelling):
            row.append(number)
            continue
        if len(row) >= MIN_LISTED_ITEMS:
            yield from row
        row = []


def find_names_in_code(code: str) -> dict[str, str]:
    """Return variables of the environment and quoted slugs in a block of code."""
    return {match[0]: "code" for match in _NAMES_IN_CODE.finditer(code) if len(match[0]) <= MAX_NAME_CHARACTERS}


def clean_names(names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return names without articles and possessives, each with its first type; drop words that are no names."""
    found: dict[str, str] = {}
    for name, type_ in names:
        bare = " ".join(name.split()) if " " in name else name
        if " " in bare:
            bare = _ARTICLE.sub("", bare)
        bare = _POSSESSIVE.sub("", bare) if bare[-2:-1] in _APOSTROPHES or bare[-1:] in _APOSTROPHES else bare
        bare = bare.strip(" .,;:!?\"'`“”‘’()[]*|")
        if "(" in bare and ")" not in bare:
            bare = bare.partition(" (")[0]
        is_plain = (bare.lower() in STOP_WORDS and not is_short(bare)) or is_measure(bare) or is_section(bare)
        if 1 < len(bare) <= MAX_NAME_CHARACTERS and not is_plain and not is_date(bare) and len(normalise(bare)) > 1:
            found.setdefault(bare, type_)
    return found


def is_date(name: str) -> bool:
    """Return whether a name consists of months, days and numbers."""
    if not name[-1:].isdigit() and name.rpartition(" ")[2].lower() not in _DAYS:
        return False
    return all(word.isdigit() or word in _DAYS for word in normalise(name).split())


def is_measure(name: str) -> bool:
    """Return whether a name consists of letters with numbers, as in `V:47, I:398`."""
    return name[-1:].isdigit() and _MEASURES.fullmatch(name) is not None


def _is_short_item(text: str, spelling: Spelling) -> bool:
    words = text.split()
    if not 0 < len(words) <= MAX_LISTED_WORDS or text.endswith((".", ":", "!", "?")):
        return False
    is_phrase = text[0].isupper() and not any(map(spelling.is_unknown, words))
    return not is_phrase or any(map(spelling.is_name, words))


def _blank(text: str, places: Iterable[tuple[int, int]]) -> str:
    """Return a text of the same length in which places that are names already cannot join a run."""
    for start, end in places:
        text = text[:start] + "|" * (end - start) + text[end:]
    return text


def _find_runs(sentence: str, spelling: Spelling, *, is_item: bool) -> Iterator[tuple[int, int]]:
    """Yield the spans of runs of capitalised words that are names, including the small words that join them.

    A list item that is one run is a name. The first word of a longer item says nothing by its capital.
    """
    for match in _RUN.finditer(sentence):
        start, text = match.start(), match[0]
        begins = _is_beginning(sentence, start)
        if is_item and len(text) == len(sentence.rstrip()) and " " in text:
            yield match.span()
            continue
        if " " not in text:
            is_phrase = begins and is_item and len(sentence) > len(text) and not text.isupper()
            if is_phrase and not spelling.is_name(text):
                continue
            may_be_name = text[0].isupper() or text[0].isdigit()
            if may_be_name and (_is_named_alone(text, spelling, begins=begins) or _is_related(sentence, match)):
                yield match.span()
            elif not begins and (end := _find_kind(sentence, text, match.end())):
                yield start, end
            continue
        for run in _split_run(match, begins=begins):
            kept = _trim_run(run, spelling)
            if kept and _is_named_run(kept, spelling, is_inside=not begins):
                yield kept[0].start, kept[-1].end
            elif len(kept) == 1 and not kept[0].begins and (end := _find_kind(sentence, kept[0].text, kept[0].end)):
                yield kept[0].start, end


def _find_kind(sentence: str, word: str, end: int) -> int:
    """Return the end of the kind of thing that follows a capitalised word, or 0."""
    kind = _KIND.match(sentence, end) if word.isalpha() and word[0].isupper() else None
    return kind.end() if kind else 0


def _is_related(sentence: str, word: re.Match[str]) -> bool:
    """Return whether a word is all that follows a relation, as in `depends on Quarry`."""
    is_alone = _AFTER_RELATED.match(sentence, word.end()) is not None
    return is_alone and _BEFORE_RELATED.search(sentence, 0, word.start()) is not None


def _is_beginning(sentence: str, place: int) -> bool:
    """Return whether a word at a place begins a sentence or a part of it."""
    if place > 1 and sentence[place - 1] == " " and (sentence[place - 2].isalnum() or sentence[place - 2] == ","):
        return False
    return not place or _BEGINNING.search(sentence, max(place - 5, 0), place) is not None


class _Word(NamedTuple):
    """A word of a run, its place, and whether it begins a sentence."""

    text: str
    start: int
    end: int
    begins: bool = False


def _split_run(match: re.Match[str], *, begins: bool) -> Iterator[list[_Word]]:
    """Yield the words of a run; one with a small first letter that the pattern does not know separates two runs."""
    run: list[_Word] = []
    for word in _WORD_OF_RUN.finditer(match.string, match.start(), match.end()):
        text = word[0]
        if text[0].isupper() or text[0].isdigit() or text in _JOINS:
            run.append(_Word(text, word.start(), word.end(), begins and word.start() == match.start()))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _trim_run(run: list[_Word], spelling: Spelling) -> list[_Word]:
    """Return a run without the ordinary word that begins its sentence, and without dates at its ends."""
    first = run[0]
    if first.begins and not _keeps_first_word(first.text, spelling):
        run = _drop_joins(run[1:])
    if spelling.capitalises_nouns:
        while run and spelling.is_ordinary_noun(run[0].text):
            run = _drop_joins(run[1:])
        while run and (run[-1].text in _JOINS or spelling.is_ordinary_noun(run[-1].text)):
            run = run[:-1]
    while run and is_shouted(run[-1].text, spelling):
        run = run[:-1]
    if len(run) > 1 and any(word.text.isdigit() for word in run):
        while run and is_date(run[0].text):
            run = run[1:]
        while len(run) > 1 and run[-2].text.lower() in _DAYS and is_date(run[-1].text):
            run = run[:-2]
    return run


def _drop_joins(run: list[_Word]) -> list[_Word]:
    while run and run[0].text in _JOINS:
        run = run[1:]
    return run


def _keeps_first_word(word: str, spelling: Spelling) -> bool:
    if is_short(word) or spelling.is_name(word):
        return True
    return spelling.is_unknown(word)


def _is_named_run(run: list[_Word], spelling: Spelling, *, is_inside: bool) -> bool:
    """Return whether the words of a run are written as names are; several inside a sentence always are."""
    if len(run) == 1:
        return _is_named_alone(run[0].text, spelling, begins=run[0].begins)
    words = [word.text for word in run if word.text not in _JOINS and not word.text.isdigit()]
    if not words or len(run) > MAX_NAME_WORDS or all(is_date(word) for word in words):
        return False
    if all(len(word) > 1 and word.isupper() for word in words):
        return any(_is_named_in_capitals(word, spelling) for word in words)
    is_certain = is_inside and not spelling.capitalises_nouns
    return is_certain or max(map(spelling.compute_nameness, words)) >= MIN_RUN_NAMENESS


def _is_named_in_capitals(word: str, spelling: Spelling) -> bool:
    if word in SHORT_FORMS or is_shouted(word, spelling):
        return word in SHORT_FORMS
    is_rarely_small = spelling.count_small(word) <= MAX_SMALL_SHARE * (spelling.count_capital(word) + 1)
    return is_rarely_small or spelling.is_name(word)


def _is_adjective(word: str, spelling: Spelling) -> bool:
    """Return whether an ordinary word ends a compound in small letters, as in Hub-managed."""
    end = word.rpartition("-")[2]
    return "-" in word and end.islower() and spelling.ordinary.is_ordinary(end)


def _is_named_alone(word: str, spelling: Spelling, *, begins: bool) -> bool:
    if not word.isalpha() and (_CONTRACTION.fullmatch(word) or _is_adjective(word, spelling)):
        return False
    if len(word) < 2 or word.lower() in _DAYS:
        return False
    if word.isupper():
        return _is_named_in_capitals(word, spelling)
    return spelling.is_name(word) or (begins and spelling.ordinary.is_large and spelling.is_unknown(word))
