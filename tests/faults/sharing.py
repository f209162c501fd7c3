"""Writers and readers that share a store for a while, each in a process or a thread of its own.

`python -m faults.sharing KIND FILE SECONDS SEED REPORT` runs one of them. A writer owns its documents, so what
must be there in the end follows from how many steps it took. A reader looks at everyone's, and counts as an
error what no caller should see: an exception, a search left out, a document in part or of someone else.
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

from faults.checking import shape
from faults.documents import EMBEDDER, NOW, WORDS, Edition, contribution, identity, steps, take
from waylore.engine.waylore import Waylore
from waylore.errors import NotFound
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import Contribution
from waylore.types.search import Filter

WRITERS = 4
DOCUMENTS = 15  # of each writer
EXPORTED = 5  # documents that a reader looks at before it turns away


@dataclass
class Report:
    """What one of them did, and what went wrong."""

    writes: int = 0
    searches: int = 0
    errors: list[str] = field(default_factory=list)


def numbers(seed: int) -> range:
    """The documents that a writer owns."""
    return range(seed * DOCUMENTS, (seed + 1) * DOCUMENTS)


def write(waylore: Waylore, seed: int, until: float, report: Report) -> None:
    """Take steps; stop at the first that fails, for what follows is built on it."""
    for step in steps(seed, numbers(seed)):
        if time.monotonic() > until or report.errors:
            break
        with_report(report, partial(take, waylore, step))
        report.writes += not report.errors


def read(waylore: Waylore, store: Store, seed: int, until: float, report: Report) -> None:
    """Search, fetch, count and export, in random order."""
    chosen = Random(seed)
    looks: list[Callable[[], None]] = [
        lambda: search(waylore, chosen),
        lambda: search(waylore, chosen),
        lambda: fetch(waylore, chosen.randrange(WRITERS * DOCUMENTS)),
        lambda: counted(waylore),
        lambda: export(store),
    ]
    while time.monotonic() < until:
        look = chosen.choice(looks)
        with_report(report, look)
        report.searches += look in looks[:2]


def search(waylore: Waylore, chosen: Random) -> None:
    """Ask as one of a team, or as one who may see all."""
    team = chosen.choice([None, *(frozenset({f"team {n}"}) for n in range(3))])
    found = waylore.search(" ".join(chosen.choices(WORDS, k=3)), where=Filter(labels=team))
    assert not found.missing, found.missing
    for hit in found.hits:
        labels = hit.document.labels
        assert team is None or not labels or labels & team, f"{labels} was shown to {team}"


def fetch(waylore: Waylore, number: int) -> None:
    """A document is there whole or not at all."""
    try:
        found = waylore.get(identity(number))
    except NotFound:
        return
    wanted = contribution(edition_of(found))
    assert found.passages == wanted.passages, f"other passages than of {wanted.document.uri}"
    told, meant = {f.id for f in found.facts}, {f.id for f in wanted.facts}
    assert told == meant, f"{len(told)} facts of {len(meant)} with {wanted.document.uri}"


def counted(waylore: Waylore) -> None:
    """Each document has three passages at least, and an entity of its own."""
    counts = waylore.stats()
    assert counts.passages >= 3 * counts.documents, counts
    assert counts.entities >= counts.documents, counts


def export(store: Store) -> None:
    """Begin to export, and turn away."""
    for found in islice(store.export(), EXPORTED):
        wanted = contribution(edition_of(found))
        assert shape(found) == shape(wanted), f"{found} is not {wanted}"


def edition_of(found: Contribution) -> Edition:
    """The edition that a document claims to be, by the marker of its first passage."""
    assert found.passages, f"{found.document.uri} has no passages"
    number, rest = found.passages[0].text.split()[0].removeprefix("n").split("e")
    return Edition(int(number), int(rest.split("p")[0]))


def with_report(report: Report, run: Callable[[], None]) -> None:
    """Run, and keep what went wrong."""
    try:
        run()
    except Exception:  # noqa: BLE001 - whatever reaches a caller is what we look for
        report.errors.append(traceback.format_exc())


def main(kind: str, path: str, seconds: str, seed: str, report_to: str) -> None:
    """Be one writer or reader, and report."""
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
