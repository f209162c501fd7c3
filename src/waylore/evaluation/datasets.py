"""Read a benchmark set: passages, questions with the passages that answer them, and ready-made triples.

A set is a folder with `corpus.jsonl.gz`, `queries.jsonl.gz` and, if there are any, `triples.jsonl.gz`. Gold
annotations that describe how to answer a question (`decomposition`, `evidences`, `query_entities`) are not
read, because retrieval must not see them. This module neither searches nor scores.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from waylore.errors import ConfigError
from waylore.text import normalise, strip_parentheses
from waylore.types.identity import document_id, entity_id, fact_id, passage_id
from waylore.types.knowledge import Document, Entity, Fact, IndexedDocument, Mention, Passage

DRAWN_SEED = 7  # random seed for the pages of a limited set
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EvaluationQuestion:
    """A question and the pages that answer it. Only `scope` is searched, except for the page `without`."""

    id: str
    text: str
    gold: frozenset[str]
    type: str = ""
    scope: str = ""
    without: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A set: an indexed document for each page of the corpus, and questions."""

    name: str
    pages: tuple[IndexedDocument, ...]
    questions: tuple[EvaluationQuestion, ...]


def read_dataset(folder: Path, *, sample: int | None = None) -> Dataset:
    """Read a set. `sample` is the number of questions, evenly spread; all pages are read."""
    if not (folder / "corpus.jsonl.gz").exists():
        raise ConfigError(f"{folder} has no corpus.jsonl.gz; pass the folder of one set")
    triples = {row["passage_id"]: row for row in read_rows(folder / "triples.jsonl.gz")}
    pages = tuple(make_page(row, triples.get(row["id"], {})) for row in read_rows(folder / "corpus.jsonl.gz"))
    questions = [question for row in read_rows(folder / "queries.jsonl.gz") if (question := _make_question(row)).gold]
    return Dataset(folder.name, pages, tuple(spread(questions, sample)))


def spread(items: Sequence[T], limit: int | None) -> Iterator[T]:
    """Yield at most `limit` items, evenly spread; None yields all."""
    step = 1.0 if limit is None else max(len(items) / limit, 1.0)
    return (items[int(i * step)] for i in range(int(len(items) / step)))


def limit_pages(dataset: Dataset, limit: int) -> Dataset:
    """Return the set with a number of pages: all that its questions need, and others at random."""
    gold = {page for question in dataset.questions for page in question.gold}
    others = [page.document.uri for page in dataset.pages if page.document.uri not in gold]
    Random(DRAWN_SEED).shuffle(others)  # noqa: S311  # nosec B311 (a sample, not a secret)
    kept = gold.union(others[: max(limit - len(gold), 0)])
    pages = tuple(page for page in dataset.pages if page.document.uri in kept)
    name = f"{dataset.name}, {len(dataset.questions)} questions, {len(pages)} pages"
    return replace(dataset, name=name, pages=pages)


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a gzipped file of JSON lines; none if it does not exist."""
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _make_question(row: dict[str, Any]) -> EvaluationQuestion:
    return EvaluationQuestion(
        id=row["id"],
        text=row["question"],
        gold=frozenset() if row.get("abstention") else frozenset(row["gold"]),
        type=row.get("type", ""),
        scope=row.get("scope", ""),
        without=row.get("source_paper") or "",
    )


def make_page(row: dict[str, Any], annotations: dict[str, Any]) -> IndexedDocument:
    """Return a page of the corpus with facts from its triples. It mentions its title and the ends of its facts."""
    document = Document(
        id=document_id(uri=row["id"]),
        uri=row["id"],
        title=row["title"],
        metadata={"scope": row["scope"]} if row.get("scope") else {},
    )
    passage = Passage(
        passage_id(document.id, row["text"]), document.id, row["text"], row["title"], end=len(row["text"])
    )
    triples = [t for t in annotations.get("triples", ()) if normalise(t[0]) and normalise(t[1]) and normalise(t[2])]
    names = [name for t in triples for name in (t[0], t[2])] + annotations.get("entities", [])
    counts = Counter(normalise(name) for name in names)
    own = normalise(strip_parentheses(row["title"]))
    counts[own] += 2
    del counts[""]
    facts = {f.id: f for f in (_make_fact(t, passage) for t in triples)}
    return IndexedDocument(
        document,
        (passage,),
        tuple(Entity(entity_id(name), name) for name in counts),
        tuple(Mention(entity_id(name), passage.id, n, name == own) for name, n in counts.items()),
        tuple(facts.values()),
    )


def _make_fact(triple: list[str], passage: Passage) -> Fact:
    subject, object_ = normalise(triple[0]), normalise(triple[2])
    ends = entity_id(subject), entity_id(object_)
    return Fact(
        id=fact_id(ends[0], triple[1], ends[1], is_entity=True),
        subject_id=ends[0],
        subject=subject,
        predicate=triple[1],
        object=object_,
        object_id=ends[1],
        passage_id=passage.id,
        statement=f"{subject} {triple[1]} {object_}",
    )
