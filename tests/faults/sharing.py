"""Run writers and readers that share a store for a while, each in its own process or thread.

`python -m faults.sharing KIND FILE SECONDS SEED REPORT` runs one of them. A writer owns its documents, so its
number of steps decides the final state. A reader reads all documents and reports as an error whatever no
caller should see: an exception, a search left out, an incomplete document or one of another writer.
"""

import json
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

from faults.checking import to_shape
from faults.documents import EMBEDDER, NOW, WORDS, Edition, get_id, make_document, make_steps, run_step
from waylore.engine.waylore import Waylore
from waylore.errors import NotFound
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import IndexedDocument
from waylore.types.search import Filter

WRITERS = 4
DOCUMENTS = 15  # of each writer
EXPORTED = 5  # documents of an export that a reader reads


@dataclass
class Report:
    """The steps of one writer or reader, and its errors."""

    writes: int = 0
    searches: int = 0
    errors: list[str] = field(default_factory=list)


def list_numbers(seed: int) -> range:
    """Return the numbers of the documents that a writer owns."""
    return range(seed * DOCUMENTS, (seed + 1) * DOCUMENTS)


def write(waylore: Waylore, seed: int, until: float, report: Report) -> None:
    """Run steps; stop at the first error, because later steps depend on it."""
    for step in make_steps(seed, list_numbers(seed)):
        if time.monotonic() > until or report.errors:
            break
        run_reported(report, partial(run_step, waylore, step))
        report.writes += not report.errors


def read(waylore: Waylore, store: Store, seed: int, until: float, report: Report) -> None:
    """Search, fetch, count and export, in random order."""
    chosen = Random(seed)
    looks: list[Callable[[], None]] = [
        lambda: search(waylore, chosen),
        lambda: search(waylore, chosen),
        lambda: fetch(waylore, chosen.randrange(WRITERS * DOCUMENTS)),
        lambda: check_counts(waylore),
        lambda: export(store),
    ]
    while time.monotonic() < until:
        look = chosen.choice(looks)
        run_reported(report, look)
        report.searches += look in looks[:2]


def search(waylore: Waylore, chosen: Random) -> None:
    """Search as a member of a team, or without a filter."""
    team = chosen.choice([None, *(frozenset({f"team {n}"}) for n in range(3))])
    found = waylore.search(" ".join(chosen.choices(WORDS, k=3)), where=Filter(labels=team))
    assert not found.missing, found.missing
    for hit in found.hits:
        labels = hit.document.labels
        assert team is None or not labels or labels & team, f"{labels} was shown to {team}"


def fetch(waylore: Waylore, number: int) -> None:
    """Check that a document is complete or missing."""
    try:
        found = waylore.get(get_id(number))
    except NotFound:
        return
    wanted = make_document(get_edition(found))
    assert found.passages == wanted.passages, f"other passages than of {wanted.document.uri}"
    stored, expected = {f.id for f in found.facts}, {f.id for f in wanted.facts}
    assert stored == expected, f"{len(stored)} facts of {len(expected)} with {wanted.document.uri}"


def check_counts(waylore: Waylore) -> None:
    """Check that each document has at least three passages and an entity of its own."""
    counts = waylore.stats()
    assert counts.passages >= 3 * counts.documents, counts
    assert counts.entities >= counts.documents, counts


def export(store: Store) -> None:
    """Begin an export and abandon it."""
    for found in islice(store.export(), EXPORTED):
        wanted = make_document(get_edition(found))
        assert to_shape(found) == to_shape(wanted), f"{found} is not {wanted}"


def get_edition(found: IndexedDocument) -> Edition:
    """Return the edition of a document by the marker of its first passage."""
    assert found.passages, f"{found.document.uri} has no passages"
    number, rest = found.passages[0].text.split()[0].removeprefix("n").split("e")
    return Edition(int(number), int(rest.split("p")[0]))


def run_reported(report: Report, run: Callable[[], None]) -> None:
    """Run, and record an error in the report."""
    try:
        run()
    except Exception:  # noqa: BLE001 - any error that reaches a caller is reported
        report.errors.append(traceback.format_exc())


def main(kind: str, path: str, seconds: str, seed: str, report_to: str) -> None:
    """Run one writer or reader, and write its report."""
    report = Report()
    until = time.monotonic() + float(seconds)
    store = SqliteStore(path)
    with Waylore(store, EMBEDDER, clock=lambda: NOW) as waylore:
        if kind == "writer":
            write(waylore, int(seed), until, report)
        else:
            read(waylore, store, int(seed), until, report)
    Path(report_to).write_text(json.dumps(asdict(report)))


if __name__ == "__main__":
    main(*sys.argv[1:])
