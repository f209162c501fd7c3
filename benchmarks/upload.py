"""What a large upload takes: a real `waylore serve` on PostgreSQL is sent a file, and watched until the job is done.

    python -m benchmarks.upload --megabytes 512
    python -m benchmarks.upload --megabytes 512 --format txt --embedder hashing --extractor none

The file is made up: Zipfian words of a small vocabulary, names among them, in sentences and paragraphs; as lines of
JSON (a document each, about 1 kB), as plain text, or as Markdown. The memory is that of the service's process, the
largest of samples taken every 50 ms, after a small upload has loaded all there is to load; the database is another
process and not counted. By default there is no embedder: what an embedder takes is its own affair (a model of 130 MB
is 130 MB more), and `hashing` shows that vectors need no more than their own bytes.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import psutil
from tools.postgres import HASTY, SAFE, plain, server
from tools.serving import Served, over, serving

from benchmarks.corpus import SYLLABLES

WORDS = 20_000
NAMES = 2_000
SENTENCE = 14  # words, about
PIECE = 1_000_000  # bytes that are made at a time
FORMATS = ("jsonl", "txt", "md")
LIMIT = 300_000_000


@dataclass
class Watch:
    """The most memory that a process had."""

    served: Served
    most: int = 0
    samples: list[int] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self._ended.wait(0.05):
            try:
                now = self.served.resident
            except psutil.NoSuchProcess:
                return
            self.most = max(self.most, now)
            self.samples.append(now)

    def end(self) -> None:
        self._ended.set()


@contextmanager
def watched(served: Served) -> Iterator[Watch]:
    watch = Watch(served)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.end()
        thread.join()


def sentences(chance: np.random.Generator) -> Iterator[str]:
    """Sentences without end: common words often, names now and then."""
    syllables = np.array(SYLLABLES)
    words = ["".join(chance.choice(syllables, n)) for n in chance.integers(1, 5, WORDS)]
    names = [" ".join("".join(chance.choice(syllables, 3)).title() for _ in range(2)) for _ in range(NAMES)]
    verbs = ("needs", "owns", "is part of", "works at", "calls")
    while True:
        for few in chance.zipf(1.3, (2_000, SENTENCE)) % WORDS:
            said = " ".join(words[n] for n in few)
            name, other = (names[n] for n in chance.zipf(1.2, 2) % NAMES)
            verb = verbs[int(few[0]) % len(verbs)]
            yield f"{name} {verb} {other}." if few[1] % 4 == 0 else f"{said.capitalize()} by {name}."


def lines(format_: str, chance: np.random.Generator) -> Iterator[str]:
    """Documents or paragraphs without end."""
    said = sentences(chance)
    number = 0
    while True:
        number += 1
        paragraph = " ".join(next(said) for _ in range(10))
        if format_ == "jsonl":
            yield (
                json.dumps({"title": f"Note {number}", "text": paragraph, "team": f"team {number % 50}"}) + "\n"
            )
        else:
            yield (
                f"## Section {number}\n\n{paragraph}\n\n"
                if format_ == "md" and number % 5 == 0
                else f"{paragraph}\n\n"
            )


def made(path: Path, format_: str, megabytes: float) -> int:
    """A file of that size; its number of bytes."""
    size, most = 0, int(megabytes * 1_000_000)
    chance = np.random.default_rng(6)
    with path.open("w", encoding="utf-8") as file:
        for line in lines(format_, chance):
            size += file.write(line)
            if size >= most:
                return size
    return size


def sent(client: httpx.Client, path: Path, uri: str) -> str:
    """The job of an upload."""
    with path.open("rb") as file:
        answer = client.put(f"/uploads/{uri}", content=file, timeout=600.0)
    answer.raise_for_status()
    return str(answer.json()["id"])


def followed(client: httpx.Client, job: str, *, quiet: bool) -> None:
    """Print how far a job is, until it is over."""
    with client.stream("GET", f"/jobs/{job}/events", timeout=3_600.0) as events:
        latest = 0.0
        for line in events.iter_lines():
            if line.startswith("data:") and not quiet and time.monotonic() - latest > 10:
                latest = time.monotonic()
                told = json.loads(line.removeprefix("data:"))["progress"]
                print(
                    f"  {told['bytes'] / 1e6:8.1f} MB {told['passages']:>9,} passages {told['facts']:>9,} facts {told['seconds']:7.0f} s",
                    file=sys.stderr,
                    flush=True,
                )


def measured(given: argparse.Namespace, folder: Path, url: str) -> bool:
    path = folder / f"large.{given.format}"
    size = made(path, given.format, given.megabytes)
    others = {"WAYLORE_EMBEDDING_PROVIDER": given.embedder, "WAYLORE_EXTRACTION_PROVIDER": given.extractor}
    small = folder / f"small.{given.format}"
    made(small, given.format, 0.3)
    with serving(url, folder, others=others, max_upload=2_000_000_000) as served, served.client() as client:
        over(client, sent(client, small, f"small.{given.format}"))
        before = served.resident
        with watched(served) as watch:
            began = time.monotonic()
            job = sent(client, path, path.name)
            uploaded = time.monotonic() - began
            while_sent = watch.most
            followed(client, job, quiet=given.quiet)
            done = over(client, job)
            took = time.monotonic() - began
        assert done["state"] == "done", done
        assert not served.spooled(), served.spooled()
    result = done["result"]
    print(
        f"{given.format}, {size / 1e6:.0f} MB, embedder {given.embedder}, extractor {given.extractor}: "
        f"sent in {uploaded:.1f} s ({size / 1e6 / uploaded:.0f} MB/s), added in {took:.0f} s ({size / 1e6 / took:.2f} MB/s), "
        f"{result['documents']:,} documents, {result['passages']:,} passages, {result['facts']:,} facts; "
        f"memory {before / 1e6:.0f} MB before, {while_sent / 1e6:.0f} MB at most while it was sent, {watch.most / 1e6:.0f} MB at most"
    )
    return watch.most < LIMIT


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=float, default=16)
    parser.add_argument("--format", choices=FORMATS, default="jsonl")
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--extractor", default="rules")
    parser.add_argument("--hasty", action="store_true", help="a database that does not wait for its disk")
    parser.add_argument("--quiet", action="store_true", help="print the result alone")
    given = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="waylore-upload-") as folder,
        server(plain(), settings=HASTY if given.hasty else SAFE) as database,
        database.database() as url,
    ):
        is_small = measured(given, Path(folder), url)
    if not is_small:
        print(f"the service took more than {LIMIT / 1e6:.0f} MB")
    return 0 if is_small else 1


if __name__ == "__main__":
    sys.exit(main())
