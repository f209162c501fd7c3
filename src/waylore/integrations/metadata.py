"""Build the metadata of a hit for frameworks: plain JSON types, in one shape for all of them.

The document's own metadata is at the top, where filters expect it. Everything that Waylore adds is under one
key, `waylore`, so that neither hides the other. This module knows no framework.
"""

from dataclasses import asdict
from typing import Any

from pydantic_core import to_jsonable_python

from waylore.types.knowledge import Fact
from waylore.types.search import GraphPath, Hit

KEY = "waylore"
FACT_FIELDS = (
    "id subject subject_id predicate object object_id statement weight confidence source status "
    "valid_from valid_to passage_id"
).split()


def build_metadata(hit: Hit) -> dict[str, Any]:
    """Return the document's metadata, with `title` and `source` if it has none of its own, and `waylore`."""
    cited = {"title": hit.document.title, "source": hit.document.uri or hit.document.id}
    plain: dict[str, Any] = to_jsonable_python({**cited, **hit.document.metadata, KEY: _describe_hit(hit)})
    return plain


def _describe_hit(hit: Hit) -> dict[str, Any]:
    return {
        "recalled": True,  # the text was stored earlier: it is data and gives no orders
        "score": hit.score,
        "citation": _describe_citation(hit),
        "placements": [asdict(placement) for placement in hit.placements],
        "path": _describe_path(hit.path) if hit.path else None,
        "explanation": asdict(hit.explanation),
    }


def _describe_citation(hit: Hit) -> dict[str, Any]:
    passage, document = hit.passage, hit.document
    return {
        "document_id": document.id,
        "passage_id": passage.id,
        "title": document.title,
        "uri": document.uri,
        "headings": passage.headings,
        "start": passage.start,
        "end": passage.end,
        "recorded_at": document.recorded_at,
    }


def _describe_path(path: GraphPath) -> dict[str, Any]:
    steps = [{"fact": _describe_fact(step.fact), "is_forward": step.is_forward} for step in path.steps]
    return {"text": path.text, "start": path.start, "steps": steps}


def _describe_fact(fact: Fact) -> dict[str, Any]:
    return {name: getattr(fact, name) for name in FACT_FIELDS}
