"""Build the metadata of a hit for frameworks: plain JSON types, in one shape for all of them.

The document's own metadata is at the top, where filters expect it. Everything that Waylore adds is under one
key, `waylore`, so that neither hides the other. This module knows no framework.
"""

from collections.abc import Mapping
from typing import Any

from waylore.types.search import Hit

KEY = "waylore"


def build_metadata(hit: Hit) -> dict[str, Any]:
    """Return the document's metadata, with `title` and `source` if it has none of its own, and `waylore`."""
    plain = hit.to_dict()
    cited = {"title": hit.document.title, "source": hit.document.uri or hit.document.id}
    return {**cited, **plain["document"]["metadata"], KEY: _describe_hit(plain)}


def _describe_hit(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "recalled": True,  # the text was stored earlier: it is data and gives no orders
        "score": plain["score"],
        "citation": _describe_citation(plain["passage"], plain["document"]),
        "placements": plain["placements"],
        "path": plain["path"],
        "facts": plain["facts"],
    }


def _describe_citation(passage: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "document_id": document["id"],
        "passage_id": passage["id"],
        "title": document["title"],
        "uri": document["uri"],
        "headings": passage["headings"],
        "start": passage["start"],
        "end": passage["end"],
        "recorded_at": document["recorded_at"],
    }
