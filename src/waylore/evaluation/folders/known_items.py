"""Make questions from the passages of a folder, for an owner without questions.

Such a question looks for a known item: it has four words of a sentence of a passage. The sentence is the one whose
words are rarest in the folder. Its three rarest words are left out, because an owner who remembers them needs no
search, and plurals become singulars. The question still repeats the words of the page, so it favours word search.
Equal documents give equal questions.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from waylore.evaluation.datasets import spread
from waylore.evaluation.folders.questions import FolderQuestion, GoldPassage
from waylore.evaluation.folders.scoring import normalise_path, split_words
from waylore.text import STOP_WORDS
from waylore.types.knowledge import IndexedDocument, Passage

MAX_QUESTIONS = 100
MAX_WORDS = 40  # of a sentence
MIN_LETTERS = 3  # of a word of a question
LEFT_OUT = 3  # rarest words of a sentence
CHOSEN = 4  # words of a sentence in a question
TYPE = "known item"
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+|\n\s*\n")


def make_questions(documents: Sequence[IndexedDocument], limit: int = MAX_QUESTIONS) -> tuple[FolderQuestion, ...]:
    """Make at most `limit` questions, about passages that are evenly spread over the documents."""
    ordered = sorted(documents, key=lambda each: (each.document.uri, each.document.id))
    passages = [passage for each in ordered for passage in each.passages]
    frequencies = Counter(word for passage in passages for word in set(split_words(passage.text)))
    made = [question for each in ordered for question in _make_from_document(each, frequencies)]
    return tuple(spread(made, limit))


def _make_from_document(indexed: IndexedDocument, frequencies: Mapping[str, int]) -> Iterator[FolderQuestion]:
    for passage in indexed.passages:
        if sentence := _choose_sentence(passage, frequencies):
            gold = GoldPassage(normalise_path(indexed.document.uri), sentence)
            yield FolderQuestion(passage.id, _ask_for(sentence, frequencies), ((gold,),), type=TYPE)


def _choose_sentence(passage: Passage, frequencies: Mapping[str, int]) -> str:
    """Return the sentence with the rarest words, empty if no sentence has enough words."""
    sentences = [" ".join(sentence.split()) for sentence in _SENTENCE_END.split(passage.text)]
    usable = [s for s in sentences if len(s.split()) <= MAX_WORDS and len(_list_content(s)) >= LEFT_OUT + CHOSEN]
    return min(usable, key=lambda sentence: _measure_frequency(sentence, frequencies), default="")


def _measure_frequency(sentence: str, frequencies: Mapping[str, int]) -> float:
    """Return the mean number of passages that have each of the chosen words."""
    chosen = _choose_words(_list_content(sentence), frequencies)
    return sum(frequencies[word] for word in chosen) / len(chosen)


def _ask_for(sentence: str, frequencies: Mapping[str, int]) -> str:
    content = _list_content(sentence)
    chosen = set(_choose_words(content, frequencies))
    return " ".join(to_singular(word) for word in content if word in chosen)


def _choose_words(content: Iterable[str], frequencies: Mapping[str, int]) -> list[str]:
    """Return rare words, but not the rarest."""
    rarest_first = sorted(content, key=lambda word: (frequencies[word], word))
    return rarest_first[LEFT_OUT : LEFT_OUT + CHOSEN]


def _list_content(sentence: str) -> list[str]:
    """Return the distinct words of a sentence that carry its content."""
    words = dict.fromkeys(split_words(sentence))
    return [word for word in words if len(word) >= MIN_LETTERS and word.isalpha() and word not in STOP_WORDS]


def to_singular(word: str) -> str:
    """Return the singular of an English word by its ending; a word that is no plural may lose its last letters."""
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
