"""Extract names with spaCy, and facts about them by the same rules as without spaCy.

Names are spaCy's entities and its chunks of proper nouns. Each alone misses many: entities miss titles such as
*Inception*, chunks miss names inside longer ones. Declarations in links, front matter and source code are extracted by
rules. Numbers and dates are not names, because they connect too much. This module does not use spaCy's grammar for
facts, and supports only the language of its model.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from waylore.deadline import check_each
from waylore.errors import ModelUnavailable
from waylore.indexing.extractors.facts import Sentence, build_extraction
from waylore.indexing.extractors.naming import clean_names
from waylore.indexing.extractors.structure import extract_structure
from waylore.protocols import Extraction
from waylore.providers.optional import require
from waylore.types.knowledge import Document, Passage

TYPES = {
    "PERSON": "person",
    "NORP": "group",
    "FAC": "place",
    "ORG": "organisation",
    "GPE": "place",
    "LOC": "place",
    "PRODUCT": "product",
    "EVENT": "event",
    "WORK_OF_ART": "work",
    "LAW": "law",
    "LANGUAGE": "language",
}
EXCLUDED_COMPONENTS = ("lemmatizer", "senter")


class SpacyExtractor:
    """A spaCy pipeline by the name of its package, or from a directory without a network."""

    def __init__(self, model: str | Path = "en_core_web_sm") -> None:
        self._model = _load(model)
        meta = self._model.meta
        self._name = f"spacy-1:{meta['lang']}_{meta['name']}-{meta['version']}"

    @property
    def name(self) -> str:
        """The pipeline with its version."""
        return self._name

    @property
    def concurrency(self) -> int:
        """One document at a time, because two would not be faster in Python."""
        return 1

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        """Return the facts and names of each passage, in order."""
        declared = [extract_structure(document, passage) for passage in passages]
        read = self._model.pipe(d.prose for d in declared)
        titles = (passage.title or document.title for passage in passages)
        return [
            build_extraction(title, list(_list_sentences(doc)), d)
            for title, doc, d in check_each(zip(titles, read, declared, strict=True))
        ]


def _list_sentences(doc: Any) -> Iterator[Sentence]:
    for sentence in doc.sents:
        if text := " ".join(sentence.text.split()):
            yield Sentence(text, clean_names(_list_names(sentence)))


def _list_names(sentence: Any) -> Iterable[tuple[str, str]]:
    spans = [(e.start, e.end, TYPES[e.label_]) for e in sentence.ents if e.label_ in TYPES]
    chunks = [chunk for c in sentence.noun_chunks if (chunk := _find_proper_span(c))]
    inside = {(s, e) for s, e, _ in spans}
    spans += [(s, e, "") for s, e in chunks if (s, e) not in inside]
    return [(sentence.doc[s:e].text, type_) for s, e, type_ in sorted(spans)]


def _find_proper_span(chunk: Any) -> tuple[int, int] | None:
    """Return the span from the first to the last proper noun of a chunk; None without a proper noun."""
    proper = [token.i for token in chunk if token.pos_ == "PROPN"]
    return (proper[0], proper[-1] + 1) if proper else None


def _load(model: str | Path) -> Any:
    spacy = require("spacy", extra="spacy")
    try:
        return spacy.load(model, exclude=EXCLUDED_COMPONENTS)
    except Exception as error:
        raise ModelUnavailable(
            f"spaCy cannot load {model}: {error}\nRun `python -m spacy download {model}`, or pass the `Path` "
            "of a directory with a pipeline (config.cfg, meta.json and weights)"
        ) from error
