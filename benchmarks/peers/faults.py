"""Kill a peer in the middle of indexing, let it go on, delete a passage, and look for what is left of it on the disk.

Every passage has a code word of its own, in its text and in a triple. A passage counts as lost if the peer had returned
from storing it, does not find it after the kill, but finds it after indexing to the end.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.peers.adapters.frame import ANSWERS, INDEXED, STORE, PeerPassage, read_lines
from benchmarks.peers.measure import PeerFailed, Place, run_phase
from benchmarks.peers.server import ModelServer
from benchmarks.peers.sets import PeerQuestion, PeerSet, read_set, write_set
from waylore.evaluation.contexts.questions import ContextQuestion

SET, SOURCE = "faults", "musique"
PASSAGES = 300
KILLED_AFTER = 1 / 3  # of the passages
DELETED = 7  # the place of the passage that is deleted
QUESTION_LENGTH = 150
RESULT = "faults.json"
DEPTH = 5


@dataclass(frozen=True, slots=True)
class FaultResult:
    """What happened to a peer. `left` are the files that still have the word of the deleted passage."""

    peer: str
    acknowledged: int
    lost: int
    found_at_end: int
    passages: int
    problem: str = ""
    is_deleted: bool | None = None
    left: tuple[str, ...] = ()


def write_fault_set(folder: Path, number: int = PASSAGES) -> PeerSet:
    """Write the set for faults from the first passages of another."""
    source = read_set(folder / "sets" / SOURCE)
    passages = tuple(_mark(number, each) for number, each in enumerate(source.passages[:number]))
    found = PeerSet(SET, passages, tuple(map(_ask_for, passages)), DEPTH)
    write_set(found, folder / "sets" / SET)
    return found


def _mark(number: int, passage: PeerPassage) -> PeerPassage:
    code = make_code(number)
    triple = (passage.title.casefold(), "has the code", code)
    return replace(passage, text=f"Code {code}. {passage.text}", triples=(*passage.triples, triple))


def make_code(number: int) -> str:
    """Return a word that no text has."""
    return f"zqxkv{number:05}"


def _ask_for(passage: PeerPassage) -> PeerQuestion:
    asked = ContextQuestion(passage.id, passage.text[:QUESTION_LENGTH], frozenset((passage.id,)))
    return PeerQuestion(asked, ((passage.id,),))


def run_faults(place: Place, found: PeerSet, server: ModelServer) -> FaultResult:
    """Kill, resume and delete; write the result."""
    result = _run_faults(place, found, server)
    (place.work / RESULT).write_text(json.dumps(asdict(result)), encoding="utf-8")
    return result


def _run_faults(place: Place, found: PeerSet, server: ModelServer) -> FaultResult:
    enough = KILLED_AFTER * len(found.passages)
    run_phase(place, "index", server, is_over=lambda: count_rows(place.work / INDEXED) >= enough)
    stored = {row["id"] for row in read_lines(place.work / INDEXED)}
    try:
        after_kill = ask(place, server)
        run_phase(place, "index", server)
        at_end = ask(place, server)
    except PeerFailed as error:
        return FaultResult(place.peer, len(stored), len(stored), 0, len(found.passages), str(error).splitlines()[-1])
    lost = sum(not after_kill[id_] and at_end[id_] for id_ in stored)
    result = FaultResult(place.peer, len(stored), lost, sum(at_end.values()), len(found.passages))
    return delete(place, found, server, result)


def delete(place: Place, found: PeerSet, server: ModelServer, result: FaultResult) -> FaultResult:
    """Delete a passage, and look for it by search and in the files."""
    passage = found.passages[DELETED]
    try:
        run_phase(place, "delete", server, passage.id)
        is_found = ask(place, server)[passage.id]
    except PeerFailed as error:
        return replace(result, problem=str(error).splitlines()[-1])
    return replace(result, is_deleted=not is_found, left=tuple(find_word(place.work / STORE, make_code(DELETED))))


def ask(place: Place, server: ModelServer) -> Mapping[str, bool]:
    """Return for each passage whether a question with its first words finds it."""
    (place.work / ANSWERS).unlink(missing_ok=True)
    run_phase(place, "ask", server)
    return {row["id"]: row["id"] in row["ranked"] for row in read_lines(place.work / ANSWERS)}


def count_rows(file: Path) -> int:
    """Return the number of rows of a file."""
    return sum(1 for _ in read_lines(file))


def find_word(folder: Path, word: str) -> Iterator[str]:
    """Yield the files that have a word, in small letters or as written, as UTF-8 or UTF-16."""
    forms = {form.encode(code) for form in (word, word.upper()) for code in ("utf-8", "utf-16-le")}
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        content = file.read_bytes()
        if any(form in content for form in forms):
            yield str(file.relative_to(folder))


def read_results(folder: Path) -> list[FaultResult]:
    """Read the results of all peers."""
    files = sorted((folder / "runs" / SET).glob(f"*/{RESULT}"))
    rows = [json.loads(file.read_text("utf-8")) for file in files]
    return [FaultResult(**{**row, "left": tuple(row["left"])}) for row in rows]
