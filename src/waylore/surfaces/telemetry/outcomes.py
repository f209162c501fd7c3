"""Telemetry: what goes on inside, told to whom the settings name; to nobody, by default.

`configured` makes it once a process, from the settings. Traces (`telemetry_spans`), metrics
(`telemetry_metrics`) and logs (`telemetry_logs`) need the extra `telemetry`; this file does not, and puts them
together. Nothing here may fail or hold up what is observed.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from waylore.retrieval.search import NO_EMBEDDER
from waylore.types.search import Found

if TYPE_CHECKING:  # they need the extra
    pass


log = logging.getLogger(__name__)
MAY_BE_LOST = ("dense", "lexical", "link", "graph", "reranker")


@contextmanager
def quietly() -> Iterator[None]:
    """Whatever goes wrong with telling is logged: what was asked for is worth more."""
    try:
        yield
    except Exception:
        log.warning("telemetry could not be recorded", exc_info=True)


def lost(found: Found) -> list[str]:
    """What could not be searched, in words that are few: a stage's name, or `cells`.

    That no embedder was given is as it should be, and not told.
    """
    stages = (missing.partition(":")[0] for missing in found.missing if missing != NO_EMBEDDER)
    return sorted({stage if stage in MAY_BE_LOST else "cells" for stage in stages})
