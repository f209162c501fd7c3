"""What a framework is told of a hit beside its text: metadata of plain JSON types, in one shape for all.

The document's own metadata stands at the top, where those who filter by it look; all that Waylore knows stands
under one key, `waylore`, so that neither hides the other. Nothing here knows a framework.
"""

from dataclasses import asdict
from typing import Any

from pydantic_core import to_jsonable_python

from waylore.types.knowledge import Fact
from waylore.types.search import FactPath, Hit

KEY = "waylore"
TOLD = (
    "id subject subject_id predicate object object_id statement weight confidence source status "
    "valid_from valid_to passage_id"
).split()


def metadata(hit: Hit) -> dict[str, Any]:
    """The document's metadata, `title` and `source` where it has none of its own, and `waylore`."""
    cited = {"title": hit.document.title, "source": hit.document.uri or hit.document.id}
    plain: dict[str, Any] = to_jsonable_python({**cited, **hit.document.metadata, KEY: _why(hit)})
    return plain


def _why(hit: Hit) -> dict[str, Any]:
    return {
        "score": hit.score,
        "citation": _citation(hit),
        "placements": [asdict(placement) for placement in hit.placements],
        "path": _path(hit.path) if hit.path else None,
        "explanation": asdict(hit.explanation),
    }


def _citation(hit: Hit) -> dict[str, Any]:
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


def _path(path: FactPath) -> dict[str, Any]:
    steps = [{"fact": _fact(step.fact), "is_forward": step.is_forward} for step in path.steps]
    return {"text": path.text, "start": path.start, "steps": steps}


def _fact(fact: Fact) -> dict[str, Any]:
    return {name: getattr(fact, name) for name in TOLD}
