"""After random histories, a store that forgot documents equals one that never had them, byte for byte.

The file and its log are searched for every word, address, label, value and name of the removed documents.
"""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore import NewFact, Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.text import terms

EMBEDDER = HashingEmbedder(32, quiet=True)
THEN = datetime(2024, 5, 1, tzinfo=UTC)

# Words that occur by chance neither in a schema, nor in another word, nor across two columns.
HAN = "東京都庁舎駅前川山田村町海空雲雪雨花鳥風月星火水木金土石竹糸虫貝車門馬魚麦音色光"
spaced = st.text("bdfgkpqvwxz", min_size=7, max_size=9)
words = spaced | spaced.map(str.title) | st.text(HAN, min_size=4, max_size=6)
sentences = st.lists(words, min_size=1, max_size=12).map(lambda found: " ".join(found) + ".")
facts = st.builds(NewFact, subject=words, predicate=words, object=words, statement=st.just("") | sentences)


@dataclass(frozen=True)
class AddCall:
    """The arguments of one call of `add`."""

    text: str
    title: str
    uri: str
    labels: frozenset[str]
    metadata: dict[str, str]
    facts: Sequence[NewFact]

    @property
    def strings(self) -> Iterator[str]:
        """Yield all its strings, and each word of them. The audit log keeps labels, which are no content."""
        strings = [self.text, self.title, self.uri, *self.metadata, *self.metadata.values()]
        strings += [s for c in self.facts for s in (c.subject, c.predicate, c.object, c.statement)]
        for string in strings:
            yield from (string, string.casefold(), *string.strip(".").split(), *terms(string))


additions = st.builds(
    AddCall,
    text=st.lists(sentences, min_size=1, max_size=60).map(" ".join),
    title=st.just("") | words,
    uri=st.just("") | st.sampled_from(["page/1", "page/2"]) | words,
    labels=st.frozensets(words, max_size=2),
    metadata=st.dictionaries(words, words, max_size=2),
    facts=st.lists(facts, max_size=3),
)
steps = st.lists(additions | st.integers(0, 9), min_size=1, max_size=9)


def add(memory: Waylore, added: AddCall) -> str:
    return memory.add(
        added.text,
        title=added.title,
        uri=added.uri,
        labels=added.labels,
        metadata=added.metadata,
        facts=added.facts,
    )


def open_memory(folder: Path, name: str) -> Waylore:
    return Waylore.open(folder / name, embedder=EMBEDDER, clock=lambda: THEN)


def export(memory: Waylore, folder: Path) -> bytes:
    memory.export(folder / "export.jsonl")
    return (folder / "export.jsonl").read_bytes()


def read_disk(path: Path) -> bytes:
    """Return the bytes of the file and its log, read by another process: reading here would drop our locks."""
    files = [str(p) for p in (path, Path(f"{path}-wal")) if p.exists()]
    return subprocess.run(["cat", *files], capture_output=True, check=True).stdout


def find_traces(gone: Sequence[AddCall], kept: Sequence[AddCall], path: Path) -> list[str]:
    """Return the strings of removed documents that are in the file and not in remaining ones."""
    strings = "\n".join(s for each in kept for s in each.strings)
    held = read_disk(path)
    looked_for = {s for each in gone for s in each.strings if len(s.encode()) >= 7 and s not in strings}
    return sorted(s for s in looked_for if s.encode() in held and s not in ("page/1", "page/2"))


@pytest.mark.timeout(400)
@given(steps)
def test_forgotten_documents_leave_no_trace(taken: Sequence[AddCall | int]) -> None:
    with tempfile.TemporaryDirectory() as name, open_memory(Path(name), "a.waylore") as memory:
        folder, held, gone = Path(name), dict[str, AddCall](), list[AddCall]()
        for step in taken:
            if isinstance(step, AddCall):
                id_ = add(memory, step)
                gone += [held.pop(id_)] if id_ in held else []
                held[id_] = step
            elif held:
                id_ = sorted(held)[step % len(held)]
                gone.append(held.pop(id_))
                assert memory.verify_forgotten(memory.forget(id_)) == ()
                assert find_traces(gone, list(held.values()), folder / "a.waylore") == []
        with open_memory(folder, "never.waylore") as never:
            for each in held.values():
                add(never, each)
            assert export(memory, folder) == export(never, folder)


def test_many_forgotten_documents_leave_no_trace(tmp_path: Path) -> None:
    """SQLite moves rows between pages as a file grows and shrinks, and leaves copies behind."""
    chosen = Random(7)
    common = ["".join(chosen.choices("abcdefghijklmnop", k=6)) for _ in range(500)]

    def made(number: int) -> AddCall:
        own = ["".join(chosen.choices("qrstuvwxyz", k=10)) for _ in range(7)]
        text = " ".join([*chosen.choices(common, k=chosen.randint(5, 90)), *own[:2]])
        fact = NewFact(own[2], "knows", chosen.choice(common))
        labels = frozenset(own[3:4] if number % 9 == 0 else [])
        return AddCall(text, own[4], own[5], labels, {"key": own[6]}, [fact])

    with open_memory(tmp_path, "a.waylore") as memory:
        added = [made(number) for number in range(400)]
        ids = [add(memory, each) for each in added]
        places = chosen.sample(range(400), 150)
        receipts = [memory.forget(*(ids[p] for p in places[at : at + 5])) for at in range(0, 150, 5)]
        gone, kept = [added[p] for p in places], [a for p, a in enumerate(added) if p not in places]
        assert [line for receipt in receipts[-2:] for line in memory.verify_forgotten(receipt)] == []
        assert find_traces(gone, kept, tmp_path / "a.waylore") == []


def test_open_reader_delays_the_proof_not_the_forgetting(tmp_path: Path) -> None:
    kept = AddCall("Whatever stays stays.", "", "", frozenset(), {}, ())
    gone = AddCall("Qwertzuiop asdfghjkl.", "", "", frozenset(), {}, ())
    path = tmp_path / "a.waylore"
    with open_memory(tmp_path, "a.waylore") as memory, closing(apsw.Connection(str(path))) as reader:
        ids = [add(memory, each) for each in (kept, gone)]
        reader.execute("BEGIN; SELECT count(*) FROM passages").fetchall()
        receipt = memory.forget(ids[1])
        assert gone.text not in [hit.passage.text for hit in memory.search("Qwertzuiop").hits]
        (remaining,) = memory.verify_forgotten(receipt)
        assert "verify again" in remaining
        reader.execute("COMMIT")
        assert memory.verify_forgotten(receipt) == ()
        assert find_traces([gone], [kept], path) == []


def test_replaced_text_leaves_with_the_log(tmp_path: Path) -> None:
    old, new = (AddCall(text, "", "page", frozenset(), {}, ()) for text in ("Qwertzuiop.", "Asdfghjkl."))
    with open_memory(tmp_path, "a.waylore") as memory:
        add(memory, old)
        add(memory, new)
    assert find_traces([old], [new], tmp_path / "a.waylore") == []
