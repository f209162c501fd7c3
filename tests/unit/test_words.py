"""The table of ordinary words: what is in it, how languages are detected, and how long loading takes."""

import subprocess
import sys

import pytest

from waylore.words import OCCURRENCES, detect_language, load_words

MAX_LOADING_SECONDS = 0.02
LOADING = """
import time, waylore.words
best = 9.0
for _ in range(5):
    for cached in (waylore.words.load_words, waylore.words._read_table):
        cached.cache_clear()
    began = time.process_time()
    waylore.words.load_words("en")
    best = min(best, time.process_time() - began)
print(best)
"""


@pytest.mark.parametrize("word", ["check", "note", "create", "install", "running", "scripts", "film", "song", "user"])
def test_ordinary_words_are_in_the_table(word: str) -> None:
    assert load_words("en").is_ordinary(word.capitalize())


@pytest.mark.parametrize("word", ["kubernetes", "postgresql", "berlin", "github", "messi"])
def test_names_are_not_in_the_table(word: str) -> None:
    assert not load_words("en").is_ordinary(word)


@pytest.mark.parametrize("language", ["de", "en", "es", "fr", "it", "pt", "ru"])
def test_tables_hold_shares_of_capitals(language: str) -> None:
    words = load_words(language)
    assert len(words.capitals) > 2_000
    assert all(0 <= capitals < OCCURRENCES and word == word.lower() for word, capitals in words.capitals.items())
    assert len(words.frequent) == 1_000


def test_inflections_of_ordinary_words_are_recognised() -> None:
    assert load_words("en").is_inflected("Scoping")
    assert not load_words("en").is_inflected("Kubernetes")
    assert not load_words("fi").is_inflected("talo")


@pytest.mark.parametrize(
    ("words", "language"),
    [
        ("how do I stop this", "en"),
        ("wer hat das mit der", "de"),
        ("dans les et pour", "fr"),
        ("и не в", "ru"),
        ("", ""),
    ],
)
def test_language_is_detected(words: str, language: str) -> None:
    assert detect_language(dict.fromkeys(words.split(), 1)) == language


def test_unknown_language_has_no_words() -> None:
    assert not load_words("fi").capitals


def test_table_is_loaded_quickly() -> None:
    seconds = float(subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=True).stdout)
    assert seconds < MAX_LOADING_SECONDS
