"""Share what metrics, spans and their setup need: the failed stages of a search, and errors of telemetry itself."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from waylore.retrieval.search import NO_EMBEDDER
from waylore.types.search import SearchResult

log = logging.getLogger(__name__)
FALLIBLE_STAGES = (
    *("vector", "keyword", "scores", "link", "graph", "part", "rewrite", "search again", "conversation", "stating"),
    *("superseding", "set", "reranker", "index"),
)


@contextmanager
def log_errors() -> Iterator[None]:
    """Log errors of telemetry instead of raising them, so that the observed call does not fail."""
    try:
        yield
    except Exception:
        log.warning("telemetry could not be recorded", exc_info=True)


def list_failed_stages(result: SearchResult) -> list[str]:
    """Return the searches that could not run, by a few fixed words: the name of a stage, or `cells`.

    A missing embedder is not a failure and is left out.
    """
    stages = (missing.partition(":")[0] for missing in result.missing if missing != NO_EMBEDDER)
    return sorted({stage if stage in FALLIBLE_STAGES else "cells" for stage in stages})
