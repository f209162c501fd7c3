"""Measure a large upload to a real `waylore serve` on PostgreSQL: time, and memory until the job is done.

    python -m benchmarks.upload --megabytes 512
    python -m benchmarks.upload --megabytes 512 --format txt --embedder hashing --extractor none

The file is synthetic: Zipfian words of a small vocabulary with names, in sentences and paragraphs. Its format
is JSON Lines (documents of about 1 kB), plain text or Markdown. Memory is that of the service's process: the
largest sample, taken every 50 ms, after a small upload has loaded all modules. The database is another process
and is not counted. By default there is no embedder, because its memory does not depend on Waylore (a model of
130 MB takes 130 MB more). `hashing` shows that vectors need no more than their own bytes.
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
from tools.postgres.builds import find_plain_build
from tools.postgres.server import DURABLE_SETTINGS, FAST_SETTINGS, start_server
from tools.serving import RunningService, start_service, wait_for_job

from benchmarks.corpus import SYLLABLES

VOCABULARY_SIZE = 20_000
NAME_COUNT = 2_000
SENTENCE_WORDS = 14  # average
FORMATS = ("jsonl", "txt", "md")
MAX_BYTES = 300_000_000


@dataclass
class MemoryWatch:
    """Samples the memory of a service in a thread."""

    service: RunningService
    max_bytes: int = 0
    samples: list[int] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Sample until `end` is called."""
        while not self._ended.wait(0.05):
            try:
                now = self.service.resident_bytes
            except psutil.NoSuchProcess:
                return
            self.max_bytes = max(self.max_bytes, now)
            self.samples.append(now)

    def end(self) -> None:
        """Stop sampling."""
        self._ended.set()


@contextmanager
def watch_memory(service: RunningService) -> Iterator[MemoryWatch]:
    """Sample the memory of a service while the block runs."""
    watch = MemoryWatch(service)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.end()
        thread.join()


def make_sentences(chance: np.random.Generator) -> Iterator[str]:
    """Yield sentences without end, with frequent common words and some names."""
    syllables = np.array(SYLLABLES)
    words = ["".join(chance.choice(syllables, n)) for n in chance.integers(1, 5, VOCABULARY_SIZE)]
    names = [" ".join("".join(chance.choice(syllables, 3)).title() for _ in range(2)) for _ in range(NAME_COUNT)]
    verbs = ("needs", "owns", "is part of", "works at", "calls")
    while True:
        for few in chance.zipf(1.3, (2_000, SENTENCE_WORDS)) % VOCABULARY_SIZE:
            text = " ".join(words[n] for n in few)
            name, other = (names[n] for n in chance.zipf(1.2, 2) % NAME_COUNT)
            verb = verbs[int(few[0]) % len(verbs)]
            yield f"{name} {verb} {other}." if few[1] % 4 == 0 else f"{text.capitalize()} by {name}."


def make_lines(format_: str, chance: np.random.Generator) -> Iterator[str]:
    """Yield documents or paragraphs without end."""
    sentences = make_sentences(chance)
    number = 0
    while True:
        number += 1
        paragraph = " ".join(next(sentences) for _ in range(10))
        if format_ == "jsonl":
            yield (json.dumps({"title": f"Note {number}", "text": paragraph, "team": f"team {number % 50}"}) + "\n")
        else:
            yield (
                f"## Section {number}\n\n{paragraph}\n\n" if format_ == "md" and number % 5 == 0 else f"{paragraph}\n\n"
            )


def write_file(path: Path, format_: str, megabytes: float) -> int:
    """Write a file of about this size; return its number of bytes."""
    size, limit = 0, int(megabytes * 1_000_000)
    chance = np.random.default_rng(6)
    with path.open("w", encoding="utf-8") as file:
        for line in make_lines(format_, chance):
            size += file.write(line)
            if size >= limit:
                return size
    return size


def upload_file(client: httpx.Client, path: Path, uri: str) -> str:
    """Upload a file and return the id of its job."""
    with path.open("rb") as file:
        answer = client.put(f"/uploads/{uri}", content=file, timeout=600.0)
    answer.raise_for_status()
    return str(answer.json()["id"])


def follow_job(client: httpx.Client, job: str, *, quiet: bool) -> None:
    """Print the progress of a job until it has ended."""
    with client.stream("GET", f"/jobs/{job}/events", timeout=3_600.0) as events:
        latest = 0.0
        for line in events.iter_lines():
            if line.startswith("data:") and not quiet and time.monotonic() - latest > 10:
                latest = time.monotonic()
                progress = json.loads(line.removeprefix("data:"))["progress"]
                print(
                    f"  {progress['bytes'] / 1e6:8.1f} MB {progress['passages']:>9,} passages {progress['facts']:>9,} facts {progress['seconds']:7.0f} s",
                    file=sys.stderr,
                    flush=True,
                )


def measure_upload(given: argparse.Namespace, folder: Path, url: str) -> bool:
    """Upload a file, print the figures, and return whether the memory stayed below the limit."""
    path = folder / f"large.{given.format}"
    size = write_file(path, given.format, given.megabytes)
    others = {"WAYLORE_EMBEDDING_PROVIDER": given.embedder, "WAYLORE_EXTRACTION_PROVIDER": given.extractor}
    small = folder / f"small.{given.format}"
    write_file(small, given.format, 0.3)
    with (
        start_service(url, folder, others=others, max_upload=2_000_000_000) as served,
        served.open_client() as client,
    ):
        wait_for_job(client, upload_file(client, small, f"small.{given.format}"))
        before = served.resident_bytes
        with watch_memory(served) as watch:
            began = time.monotonic()
            job = upload_file(client, path, path.name)
            uploaded = time.monotonic() - began
            while_sent = watch.max_bytes
            follow_job(client, job, quiet=given.quiet)
            done = wait_for_job(client, job)
            took = time.monotonic() - began
        assert done["state"] == "done", done
        assert not served.list_spooled(), served.list_spooled()
    result = done["result"]
    print(
        f"{given.format}, {size / 1e6:.0f} MB, embedder {given.embedder}, extractor {given.extractor}: "
        f"sent in {uploaded:.1f} s ({size / 1e6 / uploaded:.0f} MB/s), added in {took:.0f} s ({size / 1e6 / took:.2f} MB/s), "
        f"{result['documents']:,} documents, {result['passages']:,} passages, {result['facts']:,} facts; "
        f"memory {before / 1e6:.0f} MB before, at most {while_sent / 1e6:.0f} MB during the upload and {watch.max_bytes / 1e6:.0f} MB in all"
    )
    return watch.max_bytes < MAX_BYTES


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=float, default=16, help="size of the file")
    parser.add_argument("--format", choices=FORMATS, default="jsonl", help="format of the file")
    parser.add_argument("--embedder", default="none", help="embedder of the service")
    parser.add_argument("--extractor", default="rules", help="extractor of the service")
    parser.add_argument("--hasty", action="store_true", help="use a database that does not wait for the disk")
    parser.add_argument("--quiet", action="store_true", help="print only the result")
    given = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="waylore-upload-") as folder,
        start_server(find_plain_build(), settings=FAST_SETTINGS if given.hasty else DURABLE_SETTINGS) as database,
        database.create_database() as url,
    ):
        is_small = measure_upload(given, Path(folder), url)
    if not is_small:
        print(f"the service used more than {MAX_BYTES / 1e6:.0f} MB")
    return 0 if is_small else 1


if __name__ == "__main__":
    sys.exit(main())
