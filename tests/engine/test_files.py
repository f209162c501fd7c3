"""Folders become memory: what is new is added, what changed replaced, what vanished forgotten if asked to."""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waylore import Filter, Waylore
from waylore.indexing.blocks import Limits, Refusal
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.indexing.files import add as ingesting
from waylore.indexing.files.progress import Progress
from waylore.protocols import Extraction
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.types.knowledge import Document, Passage

EMBEDDER = HashingEmbedder(64, quiet=True)
THEN = datetime(2024, 5, 1, tzinfo=UTC)
LOGIN = "---\nowner: Mara\n---\n# Login\n\nLogin checks passwords. It asks Sessions for tokens.\n"


def opened(path: Path) -> Waylore:
    return Waylore.open(path, embedder=EMBEDDER, clock=lambda: THEN)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "login.md").write_text(LOGIN)
    (notes / "people.csv").write_text("name,team,text\nMara,Payments,likes tea\nKofi,Search,likes dogs\n")
    return notes


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with opened(tmp_path / "notes.waylore") as waylore:
        yield waylore


def told(memory: Waylore, document: str) -> set[str]:
    return {str(fact) for fact in memory.get(document).facts}


def addresses(memory: Waylore) -> list[str]:
    return [document.uri for document in memory.documents()]


def test_what_files_declare_and_say_becomes_facts(memory: Waylore, folder: Path) -> None:
    added = memory.add_files(folder, root=folder)
    assert (added.files, added.documents, added.passages, added.refusals) == (2, 3, 3, ())
    assert addresses(memory) == ["login.md", "people.csv#row=2", "people.csv#row=3"]
    login, mara, _ = memory.documents()
    assert told(memory, login.id) == {"Login —owner→ Mara", "Login —asks→ Sessions"}
    assert told(memory, mara.id) == {"Mara —team→ Payments"}
    found = memory.search("Which team has the owner of Login?")
    assert ("people.csv#row=2", "Login —owner→ Mara → this passage") in {
        (hit.document.uri, str(hit.path)) for hit in found.hits
    }


def test_unchanged_files_are_not_read_again(memory: Waylore, folder: Path) -> None:
    memory.add_files(folder, root=folder)
    version = memory.stats().version
    os.utime(folder / "login.md")
    again = memory.add_files(folder, root=folder)
    assert (again.unchanged, again.documents, again.forgotten) == (2, 0, 0)
    assert memory.stats().version == version


def test_a_thousand_unchanged_files_take_less_than_two_seconds(memory: Waylore, folder: Path) -> None:
    for number in range(1_000):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\nMara wrote note {number} for Kofi.\n")
    memory.add_files(folder)
    began = time.monotonic()
    assert memory.add_files(folder).unchanged == 1_002
    assert time.monotonic() - began < 2.0


def test_a_changed_file_replaces_what_it_said(memory: Waylore, folder: Path) -> None:
    memory.add_files(folder, root=folder)
    (folder / "login.md").write_text("# Login\n\nLogin needs Vault now.\n")
    (folder / "people.csv").write_text("name,team,text\nMara,Payments,likes tea\n")
    again = memory.add_files(folder, root=folder)
    assert (again.documents, again.forgotten, again.unchanged) == (1, 1, 0)
    assert addresses(memory) == ["login.md", "people.csv#row=2"]
    assert told(memory, memory.documents()[0].id) == {"Login —needs→ Vault"}
    assert not memory.search("Kofi").entities


def test_a_vanished_file_is_forgotten_only_if_asked(memory: Waylore, folder: Path) -> None:
    memory.add("Added by hand.", uri="notes/hand.md")
    memory.add_files(folder, root=folder.parent)
    (folder / "people.csv").unlink()
    assert memory.add_files(folder, root=folder.parent).forgotten == 0
    assert memory.add_files(folder, root=folder.parent, prune=True).forgotten == 2
    assert addresses(memory) == ["notes/hand.md", "notes/login.md"]


def test_pruning_leaves_other_places_alone(memory: Waylore, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("# Other\n\nAnother place.\n")
    memory.add_files(other, root=other)
    memory.add_files(folder, root=folder, prune=True)
    assert "a.md" in addresses(memory)
    (other / "a.md").unlink()
    assert memory.add_files(other, root=other, prune=True).forgotten == 1
    assert "login.md" in addresses(memory)


def test_a_forgotten_document_comes_back_when_its_file_is_added_again(memory: Waylore, folder: Path) -> None:
    memory.add_files(folder, root=folder)
    memory.forget(memory.documents()[0].id)
    assert memory.add_files(folder, root=folder).documents == 1


def test_other_labels_are_a_change(memory: Waylore, folder: Path) -> None:
    memory.add_files(folder, root=folder)
    assert memory.add_files(folder, root=folder, labels=["staff"], metadata={"team": "all"}).documents == 3
    assert memory.documents(where=Filter(labels=frozenset())) == ()
    assert {d.metadata["team"] for d in memory.documents()} == {"all"}


def test_what_cannot_be_read_is_told_each_time_and_stops_nothing(memory: Waylore, folder: Path) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    (folder / "half.jsonl").write_text('{"text": "whole"}\n{"text": \n')
    for documents in (4, 0):
        added = memory.add_files(folder, root=folder)
        assert added.documents == documents
        assert [r.uri for r in added.refusals] == ["broken.pdf", "half.jsonl#line=2"]
    (folder / "half.jsonl").unlink()
    (folder / "broken.pdf").write_text("")
    assert memory.add_files(folder, root=folder, prune=True).forgotten == 1


def test_a_file_that_cannot_be_read_any_more_keeps_what_it_said(memory: Waylore, folder: Path) -> None:
    memory.add_files(folder, root=folder)
    (folder / "login.md").write_bytes(b"\x00\x01")
    added = memory.add_files(folder, root=folder, prune=True)
    assert (added.forgotten, len(added.refusals)) == (0, 1)
    assert "login.md" in addresses(memory)


def test_progress_is_told_to_its_end(memory: Waylore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingesting, "PARTS", 1)
    seen: list[Progress] = []
    memory.add_files(folder, progress=seen.append)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert (seen[-1].files, seen[-1].done, seen[-1].left) == (2, 1.0, 0.0)
    assert "100%  2/2 files  3 passages" in str(seen[-1])


def test_ctrl_c_leaves_what_is_whole_and_the_next_run_goes_on(
    memory: Waylore, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ingesting, "PARTS", 1)

    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.add_files(folder, root=folder, progress=interrupt)
    memory.add_files(folder, root=folder)
    with opened(tmp_path / "once.waylore") as once:
        once.add_files(folder, root=folder)
        assert exported(once, tmp_path) == exported(memory, tmp_path)


def exported(memory: Waylore, folder: Path) -> bytes:
    memory.export(folder / "export")
    return (folder / "export").read_bytes()


def test_a_hash_in_a_name_is_no_place_in_a_file(memory: Waylore, tmp_path: Path) -> None:
    folder = tmp_path / "C# 100%"
    folder.mkdir()
    (folder / "C").write_text("The language C.")
    (folder / "C#.md").write_text("The language C sharp.")
    memory.add_files(folder, root=tmp_path)
    (folder / "C").write_text("The language C, again.")
    assert memory.add_files(folder, root=tmp_path).forgotten == 0
    assert addresses(memory) == ["C%23 100%25/C", "C%23 100%25/C%23.md"]


class Unsteady(RuleExtractor):
    """Cannot be had at first."""

    is_there = False

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        said = super().extract(document, passages)
        return said if self.is_there else [Extraction(provisional=True) for _ in said]


def test_what_a_substitute_read_is_read_again(tmp_path: Path, folder: Path) -> None:
    extractor = Unsteady()
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER, extractor=extractor) as memory:
        memory.add_files(folder)
        assert memory.add_files(folder).unchanged == 0
        extractor.is_there = True
        assert memory.add_files(folder).documents == 1  # rows say nothing but what they declare
        assert memory.add_files(folder).unchanged == 2


FILES = ["a.md", "b.md", "c/a.md", "rows.csv", "talk.jsonl"]
CONTENT = [
    "# Ada\n\nAda met Byron.\n",
    "Byron wrote.\n\nAda read.",
    "title,text\nx,Ada\ny,Bob\n",
    '{"text": "Ada"}\n',
    "",
]
edits = st.lists(st.tuples(st.sampled_from(FILES), st.sampled_from([None, *CONTENT])), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(edits, min_size=1, max_size=4))
def test_however_a_folder_came_to_be_as_it_is_so_is_memory(rounds: list[list[tuple[str, str | None]]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        folder = place / "folder"
        (folder / "c").mkdir(parents=True)
        with opened(place / "grown.waylore") as grown, opened(place / "fresh.waylore") as fresh:
            for some in rounds:
                apply(folder, some)
                grown.add_files(folder, root=folder, prune=True)
            for waylore in (grown, fresh):
                keep_readable(folder, waylore.add_files(folder, root=folder, prune=True).refusals)
                waylore.add_files(folder, root=folder, prune=True)
            assert exported(grown, place) == exported(fresh, place)


def apply(folder: Path, some: list[tuple[str, str | None]]) -> None:
    for file, content in some:
        if content is None:
            (folder / file).unlink(missing_ok=True)
        else:
            (folder / file).write_text(content)


def keep_readable(folder: Path, refusals: tuple[Refusal, ...]) -> None:
    """A file that can no longer be read keeps what it said, so only what can be read may be compared."""
    for refusal in refusals:
        (folder / refusal.uri.partition("#")[0]).unlink(missing_ok=True)


def test_a_large_file_that_shrank_is_forgotten_a_little_at_a_time(memory: Waylore, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"text": "Row {n}."}}\n' for n in range(3_000)))
    assert memory.add_files(path, root=tmp_path).documents == 3_000
    path.write_text("".join(f'{{"text": "Row {n}."}}\n' for n in range(10)))
    again = memory.add_files(path, root=tmp_path)
    assert (again.documents, again.forgotten) == (0, 2_990)
    assert memory.stats().documents == 10
    assert memory.add_files(path, root=tmp_path).unchanged == 1


def test_a_file_lies_where_it_lies_and_has_the_address_it_is_given(memory: Waylore, tmp_path: Path) -> None:
    for name, said in (("a1.md", "# Login\n\nMara owns it."), ("b2.md", "# Login\n\nKofi owns it.")):
        (tmp_path / name).write_text(said)
        memory.add_files(tmp_path / name, uri="https://example.org/login")
    assert addresses(memory) == ["https://example.org/login"]
    assert memory.search("owner of login").hits[0].passage.text.endswith("Kofi owns it.")
    again = memory.add_files(tmp_path / "b2.md", uri="https://example.org/login")
    assert (again.unchanged, again.documents) == (1, 0)


def test_a_file_that_grows_long_comes_in_parts_and_back(memory: Waylore, tmp_path: Path) -> None:
    path, limits = tmp_path / "a.txt", Limits(whole=100)
    path.write_text("A short one.\n")
    memory.add_files(path, root=tmp_path, limits=limits)
    assert addresses(memory) == ["a.txt"]
    path.write_text("A short one.\n\n" * 20)
    told = memory.add_files(path, root=tmp_path, limits=limits)
    assert (addresses(memory), told.forgotten) == (["a.txt#part=1"], 1)
    path.write_text("A short one.\n")
    told = memory.add_files(path, root=tmp_path, limits=limits)
    assert (addresses(memory), told.forgotten) == (["a.txt"], 1)


def test_progress_is_told_within_a_large_file(
    memory: Waylore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingesting, "PARTS", 64)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"text": "Row {n}."}}\n' for n in range(2_000)))
    told: list[Progress] = []
    memory.add_files(path, root=tmp_path, progress=told.append)
    read = [progress.bytes for progress in told]
    assert read == sorted(read)
    assert len(set(read)) > 3
    assert read[-1] == told[-1].of_bytes == path.stat().st_size


def test_only_so_many_refusals_are_kept(memory: Waylore, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("{}\n" * 2_500 + '{"text": "A row."}\n')
    added = memory.add_files(path, root=tmp_path)
    assert (added.documents, added.refused, len(added.refusals)) == (1, 2_500, 1_000)
