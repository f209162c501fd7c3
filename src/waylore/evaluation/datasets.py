"""Reads a benchmark set: passages, questions with the passages that answer them, and ready-made triples.

A set is a folder with `corpus.jsonl.gz`, `queries.jsonl.gz` and, where there are any, `triples.jsonl.gz`. Gold
annotations that tell how a question is to be answered (`decomposition`, `evidences`, `query_entities`) are
not read: retrieval must not see them. Nothing here searches or scores.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waylore.errors import ConfigError
from waylore.text import normalise, without_aside
from waylore.types.identity import document_id, entity_id, fact_id, passage_id
from waylore.types.knowledge import Contribution, Document, Entity, Fact, Mention, Passage


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the pages that answer it, and where to look: within `scope`, but not at `without`."""

    id: str
    text: str
    gold: frozenset[str]
    type: str = ""
    scope: str = ""
    without: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A set: contributions, one for each page of the corpus, and questions."""

    name: str
    contributions: tuple[Contribution, ...]
    questions: tuple[Question, ...]


def load(folder: Path, *, sample: int | None = None) -> Dataset:
    """Read a set; `sample` takes that many of its questions, evenly spread, and all of its pages."""
    if not (folder / "corpus.jsonl.gz").exists():
        raise ConfigError(f"{folder} holds no corpus.jsonl.gz: give the folder of one set")
    triples = {row["passage_id"]: row for row in _rows(folder / "triples.jsonl.gz")}
    pages = tuple(_page(row, triples.get(row["id"], {})) for row in _rows(folder / "corpus.jsonl.gz"))
    asked = [question for row in _rows(folder / "queries.jsonl.gz") if (question := _question(row)).gold]
    step = 1.0 if sample is None else max(len(asked) / sample, 1.0)
    chosen = [asked[int(i * step)] for i in range(int(len(asked) / step))]
    return Dataset(folder.name, pages, tuple(chosen))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _question(row: dict[str, Any]) -> Question:
    return Question(
        id=row["id"],
        text=row["question"],
        gold=frozenset() if row.get("abstention") else frozenset(row["gold"]),
        type=row.get("type", ""),
        scope=row.get("scope", ""),
        without=row.get("source_paper") or "",
    )


def _page(row: dict[str, Any], told: dict[str, Any]) -> Contribution:
    """A page of the corpus: its triples are facts; their ends, its entities and its title are mentioned."""
    document = Document(
        id=document_id(uri=row["id"]),
        uri=row["id"],
        title=row["title"],
        metadata={"scope": row["scope"]} if row.get("scope") else {},
    )
    passage = Passage(
        passage_id(document.id, row["text"]), document.id, row["text"], row["title"], end=len(row["text"])
    )
    triples = [t for t in told.get("triples", ()) if normalise(t[0]) and normalise(t[1]) and normalise(t[2])]
    names = [name for t in triples for name in (t[0], t[2])] + told.get("entities", [])
    counts = Counter(normalise(name) for name in names)
    own = normalise(without_aside(row["title"]))
    counts[own] += 2
    del counts[""]
    facts = {f.id: f for f in (_fact(t, passage) for t in triples)}
    return Contribution(
        document,
        (passage,),
        tuple(Entity(entity_id(name), name) for name in counts),
        tuple(Mention(entity_id(name), passage.id, n, name == own) for name, n in counts.items()),
        tuple(facts.values()),
    )


def _fact(triple: list[str], passage: Passage) -> Fact:
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
