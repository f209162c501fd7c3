"""Names through spaCy: its entities united with its proper noun chunks, and claims from them by the same rules.

Either alone misses much: entities miss titles such as *Inception*, chunks miss names inside longer ones. What
links, front matter and source code declare is found as without spaCy. Numbers and dates are no names: they
join too much. It does not use spaCy's grammar for facts, and knows the language of its model only.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from waylore.errors import ModelUnavailable
from waylore.indexing.extractors.rules import Sentence, extraction, tidied
from waylore.indexing.extractors.structure import structure
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
UNUSED = ("lemmatizer", "senter")


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
        """One document at a time: Python would not do two any faster."""
        return 1

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        """What each passage says, in order."""
        declared = [structure(document, passage) for passage in passages]
        read = self._model.pipe(d.prose for d in declared)
        titles = (passage.title or document.title for passage in passages)
        return [
            extraction(title, list(_sentences(doc)), d)
            for title, doc, d in zip(titles, read, declared, strict=True)
        ]


def _sentences(doc: Any) -> Iterator[Sentence]:
    for sentence in doc.sents:
        if text := " ".join(sentence.text.split()):
            yield Sentence(text, tidied(_names(sentence)))


def _names(sentence: Any) -> Iterable[tuple[str, str]]:
    spans = [(e.start, e.end, TYPES[e.label_]) for e in sentence.ents if e.label_ in TYPES]
    chunks = [chunk for c in sentence.noun_chunks if (chunk := _proper(c))]
    inside = {(s, e) for s, e, _ in spans}
    spans += [(s, e, "") for s, e in chunks if (s, e) not in inside]
    return [(sentence.doc[s:e].text, type_) for s, e, type_ in sorted(spans)]


def _proper(chunk: Any) -> tuple[int, int] | None:
    """A chunk from its first proper noun to its last, if it has any."""
    proper = [token.i for token in chunk if token.pos_ == "PROPN"]
    return (proper[0], proper[-1] + 1) if proper else None


def _load(model: str | Path) -> Any:
    spacy = require("spacy", extra="spacy")
    try:
        return spacy.load(model, exclude=UNUSED)
    except Exception as error:
        raise ModelUnavailable(
            f"spaCy cannot load {model}: {error}\nRun `python -m spacy download {model}`, or pass the `Path` "
            "of a directory with a pipeline (config.cfg, meta.json and weights)."
        ) from error
