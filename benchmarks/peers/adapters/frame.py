"""Run one phase of a peer in its own environment: index passages, answer questions, or delete a passage.

    python -m benchmarks.peers.adapters.NAME index|ask|delete SET WORK URL

SET is a folder that `prepare` wrote, WORK a folder for the peer's store and for what is done, URL the address of the
embeddings. Each phase continues where an earlier run of it stopped. This module has only the standard library.
"""

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

MODEL = "bge-small-en-v1.5"
DIMENSION = 384
STORE, INDEXED, ANSWERS = "store", "indexed.jsonl", "answers.jsonl"
Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class PeerPassage:
    """A passage with its triples. `page` is what it comes from; in a folder a file below `root`."""

    id: str
    title: str
    text: str
    page: str
    triples: tuple[Triple, ...] = ()
    entities: tuple[str, ...] = ()
    speaker: str = ""
    session: str = ""
    at: str = ""
    root: str = ""

    @property
    def whole(self) -> str:
        """The text with its title, as every peer stores it."""
        said = f"{self.speaker}: {self.text}" if self.speaker else self.text
        return f"{self.title}\n{said}" if self.title else said


class Peer(ABC):
    """A system under test, which indexes `batch` passages at a time."""

    batch = 50

    @abstractmethod
    def index(self, passages: list[PeerPassage]) -> None:
        """Store passages, and return after they are as safe as the system can make them."""

    @abstractmethod
    def search(self, question: str, limit: int) -> list[str]:
        """Return the ids of passages, best first."""

    @abstractmethod
    def delete(self, passage: PeerPassage) -> None:
        """Delete a passage with all that came from it."""

    def show(self, _question: str) -> list[tuple[str, str, str]]:
        """Return page, title and text of what a context of 1,000 tokens shows; empty if there are only passages."""
        return []


OpenPeer = Callable[[Path, str], AbstractContextManager[Peer]]


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of JSON lines; none if it does not exist. A last line that was cut off is left out."""
    if file.exists():
        for line in file.read_text("utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                return


def read_passages(folder: Path) -> list[PeerPassage]:
    """Read the passages of a set."""
    return [
        PeerPassage(**{**row, "triples": tuple(map(tuple, row["triples"])), "entities": tuple(row["entities"])})
        for row in read_lines(folder / "passages.jsonl")
    ]


def run(open_peer: OpenPeer) -> None:
    """Run the phase that the command line names."""
    phase, folder, work, url = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    (work / STORE).mkdir(parents=True, exist_ok=True)
    with open_peer(work / STORE, url) as peer:
        if phase == "index":
            index_passages(peer, folder, work)
        elif phase == "ask":
            ask_questions(peer, folder, work)
        else:
            peer.delete(next(each for each in read_passages(folder) if each.id == sys.argv[5]))


def index_passages(peer: Peer, folder: Path, work: Path) -> None:
    """Index the passages that are not indexed yet, and note each batch after the peer has returned."""
    known = {row["id"] for row in read_lines(work / INDEXED)}
    left = [passage for passage in read_passages(folder) if passage.id not in known]
    with (work / INDEXED).open("a", encoding="utf-8") as done:
        size = int(os.environ.get("PEER_BATCH", peer.batch))
        for start in range(0, len(left), size):
            batch = left[start : start + size]
            peer.index(batch)
            done.writelines(json.dumps({"id": passage.id}) + "\n" for passage in batch)
            done.flush()


def ask_questions(peer: Peer, folder: Path, work: Path) -> None:
    """Answer the questions that have no answer yet, and write each answer at once."""
    limit = int(json.loads((folder / "set.json").read_text("utf-8"))["limit"])
    known = {row["id"] for row in read_lines(work / ANSWERS)}
    with (work / ANSWERS).open("a", encoding="utf-8") as done:
        for row in read_lines(folder / "questions.jsonl"):
            if row["id"] not in known:
                start = time.perf_counter()
                ranked = peer.search(row["question"], limit)
                seconds = time.perf_counter() - start
                answer = {"id": row["id"], "ranked": list(dict.fromkeys(ranked))[:limit], "seconds": seconds}
                shown = peer.show(row["question"]) if row["answers"] or row["support"] else []
                done.write(json.dumps({**answer, "shown": shown}) + "\n")
                done.flush()


def embed(url: str, texts: list[str]) -> list[list[float]]:
    """Return the vectors of texts from the server, for peers that take vectors instead of an address."""
    import urllib.request  # noqa: PLC0415

    body = json.dumps({"model": MODEL, "input": texts}).encode()
    request = urllib.request.Request(f"{url}/embeddings", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return [cast("list[float]", item["embedding"]) for item in json.load(response)["data"]]
