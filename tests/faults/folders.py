"""A folder whose files change at random, for the tests of interrupted adding."""

from datetime import UTC, datetime
from pathlib import Path
from random import Random

from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder

EMBEDDER = HashingEmbedder(64, quiet=True)
THEN = datetime(2024, 5, 1, tzinfo=UTC)
NAMES = ["Ada Lovelace", "Charles Babbage", "Mary Somerville", "Analytical Engine", "London", "Ockham Park"]
VERBS = ["met", "wrote to", "lived near", "worked on", "spoke of"]


def open_file(path: Path) -> Waylore:
    """Open a collection in which all documents have the same time."""
    return Waylore.open(path, embedder=EMBEDDER, clock=lambda: THEN)


def edit(folder: Path, chosen: Random, *, files: int, edits: int) -> None:
    """Write, rewrite or remove some of the files that a folder may have."""
    for _ in range(edits):
        number = chosen.randrange(files)
        path = folder / f"part{number % 7}" / (f"{number}.csv" if number % 5 == 0 else f"{number}.md")
        if path.exists() and chosen.random() < 0.2:
            path.unlink()
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(_table(chosen) if path.suffix == ".csv" else _page(number, chosen), encoding="utf-8")


def _page(number: int, chosen: Random) -> str:
    head = f"---\nowner: {chosen.choice(NAMES)}\n---\n# Note {number}\n\n"
    return head + "\n\n".join(f"## Part {n}\n\n" + " ".join(_sentence(chosen) for _ in range(6)) for n in range(4))


def _table(chosen: Random) -> str:
    rows = (
        f"{chosen.choice(NAMES)},{chosen.randrange(99)},{_sentence(chosen)}" for _ in range(chosen.randrange(1, 30))
    )
    return "\n".join(["title,age,text", *rows]) + "\n"


def _sentence(chosen: Random) -> str:
    first, second = chosen.sample(NAMES, 2)
    return f"{first} {chosen.choice(VERBS)} {second} in {chosen.randrange(1800, 1850)}."
