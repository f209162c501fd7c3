"""Questions are made from pages by rules: the same pages give the same questions, whatever their order."""

import random

import pytest

from waylore.evaluation.datasets import spread
from waylore.evaluation.folders.known_items import CHOSEN, make_questions, to_singular
from waylore.evaluation.folders.scoring import RankedHit, has_passage, split_words
from waylore.indexing.pipeline import index_text
from waylore.types.identity import document_id
from waylore.types.knowledge import Document, IndexedDocument

SENTENCES = {
    "harbour.md": "The harbour office registers every vessel before dawn and files yellow forms in wooden drawers.",
    "bakery.md": "Our bakery buys rye flour from two mills and bakes dark loaves in brick ovens each Friday morning.",
    "short.md": "Too short. Nothing here.",
}


def index_pages() -> list[IndexedDocument]:
    documents = [Document(document_id(uri=uri), uri=uri) for uri in SENTENCES]
    return [index_text(document, SENTENCES[document.uri]) for document in documents]


def test_question_has_words_of_its_sentence() -> None:
    questions = make_questions(index_pages())
    assert [question.gold[0][0].path for question in questions] == ["bakery.md", "harbour.md"]
    for question in questions:
        [[gold]] = question.gold
        assert has_passage(RankedHit(gold.path, SENTENCES[gold.path]), gold)
        words = question.text.split()
        assert len(words) == CHOSEN
        assert set(words) <= {to_singular(word) for word in split_words(gold.quote)}


def test_order_of_pages_does_not_matter() -> None:
    pages = index_pages()
    shuffled = random.Random(5).sample(pages, len(pages))
    assert make_questions(shuffled) == make_questions(pages)


def test_questions_are_limited_and_spread() -> None:
    assert len(make_questions(index_pages(), limit=1)) == 1
    assert list(spread(range(10), 3)) == [0, 3, 6]
    assert list(spread(range(2), 3)) == [0, 1]
    assert list(spread([], 3)) == []


@pytest.mark.parametrize(
    ("word", "expected"),
    [("loaves", "loave"), ("bakeries", "bakery"), ("glass", "glass"), ("bus", "bus"), ("rye", "rye")],
)
def test_plural_becomes_singular(word: str, expected: str) -> None:
    assert to_singular(word) == expected
